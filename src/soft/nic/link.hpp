// SPDX-License-Identifier: Apache-2.0
// Link: this engine's end of a channel to another engine, in another process of this host or in this one.
//
// Set up over a local socket that stays open: when the other process dies, the kernel closes it and the link is dead.
// Only processes of the same user are let in.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "soft/nic/channel.hpp"
#include "soft/nic/piece_pool.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/fork.hpp"
#include "sys/socket.hpp"

namespace strait::soft::nic {

using EngineId = std::array<std::uint8_t, 16>;

// What fits strait_nic_address.
struct Address {
  std::uint32_t magic;
  std::uint32_t version;
  EngineId engine;
  std::uint64_t host;  // of the running kernel: engines with different ones cannot share memory
  std::array<std::uint8_t, 16> gid;
  std::uint16_t packet_bytes;  // largest path MTU; 0: it has no port for packets
  std::uint8_t wants_packets;  // even on one host
  std::uint8_t reserved[13];
};
static_assert(sizeof(Address) == 64);
inline constexpr std::uint32_t kAddressVersion = 2;
inline constexpr std::uint32_t kAddressMagic = 0x534e4943;  // "CINS"

[[nodiscard]] std::string socket_name(const EngineId& engine);
// Of the socket at which the engine listens whose queue pairs have numbers of this range on this address.
[[nodiscard]] std::string door_name(const std::array<std::uint8_t, 16>& gid, std::uint8_t range);
[[nodiscard]] std::uint64_t this_host();

// An answer that could not be sent because the ring was full. Bounded by what a peer may have outstanding.
struct PendingAnswer {
  Slot header;               // complete but for ack and sequence
  std::uint32_t sent_bytes;  // Kind::read_data: how much of `header.length` is out
  std::uint32_t local_qpn;
  std::uint32_t base;  // Kind::read_data: bytes of the read that were answered before
};

// Memory of the other process that this one has mapped: see loans.cpp.
struct Borrowed {
  std::uint64_t address;  // what the other engine calls its first byte
  std::uint64_t length_bytes;
  std::byte* bytes;
  sys::Mapping mapping;
};

class Link {
 public:
  Link(ChannelMemory* memory, unsigned side)
      : writer(memory, side), reader(memory, side), memory_(memory), side_(side) {}

  ChannelWriter writer;
  ChannelReader reader;
  EngineId peer{};
  bool loopback = false;
  pid_t peer_pid = 0;
  bool dead = false;
  bool flooded = false;     // the other side asks and asks, and takes no answer
  bool lossy = false;       // either side loses messages on purpose: see lossy.cpp
  bool paused = false;      // strict: nothing is read while a payload waits to be landed
  std::uint64_t rolls = 0;  // of messages that belong to no queue pair
  struct Held {
    std::int64_t due_ns;
    std::uint64_t due_message;
    std::vector<Slot> slots;
  };
  std::vector<Held> held;          // late on purpose
  std::vector<std::string> doors;  // where else the other engine is found
  std::string cross_reason;        // why cross copies are not used; empty when they are
  std::deque<PendingAnswer> answers;
  std::unordered_set<std::uint32_t> lent;                // keys the other engine was told
  std::unordered_map<std::uint32_t, Borrowed> borrowed;  // by the other engine's keys
  std::unique_ptr<PiecePool> pool;                       // pieces of payload for the other engine, once there were some
  bool no_pool = false;                                  // it could not be made or lent
  std::shared_ptr<PieceMemory> their_pool;               // and from it
  bool waiting = false;                                  // the next message waits for copies that were begun before it
  sys::ProcessFd socket;  // not kept open by children: the peer must see this process die
  sys::Event wake_peer;
  sys::Mapping mapping;

  [[nodiscard]] ChannelSide& own() { return memory_->sides[side_]; }
  [[nodiscard]] ChannelSide& other() { return memory_->sides[1 - side_]; }
  // May the other engine copy straight to and from this process?
  [[nodiscard]] bool peer_reaches_us() { return other().reaches_peer.load(std::memory_order_relaxed) != 0; }

  // After publishing: the other side is woken if it said that it sleeps. No barrier here: who goes to sleep runs one on
  // every processor (sys::barrier_everywhere) between saying so and looking once more.
  void ring() {
    std::atomic<std::uint32_t>& sleeping = other().sleeping;
    if (sleeping.load(std::memory_order_relaxed) != 0 && sleeping.exchange(0, std::memory_order_acq_rel) != 0)
      wake_peer.raise();
  }

 private:
  ChannelMemory* memory_;
  unsigned side_;
};

// Engines with which only packets are exchanged: by process, or by their doors where they are in another PID namespace
// and their processes have no number here.
struct Shunned {
  std::set<pid_t> processes;
  std::set<std::string> doors;
  void add(pid_t process, const std::string& door) {
    if (process != 0) {
      processes.insert(process);
    } else {
      doors.insert(door);
    }
  }
  [[nodiscard]] bool contains(pid_t process, const std::vector<std::string>& its_doors) const {
    if (process != 0) return processes.contains(process);
    return std::any_of(its_doors.begin(), its_doors.end(), [&](const auto& door) { return doors.contains(door); });
  }
};

// "process 4711"; of another PID namespace it has no number here, and the kernel says 0.
[[nodiscard]] std::string process_text(pid_t process);

struct LinkPolicy {
  bool cross_copies = true;  // option cross_memory
  bool lossy = false;        // messages are checked and sent again, because some are lost on purpose
  std::uint8_t range = 0;    // of this engine's queue pairs, on these addresses: found there by others
  std::vector<std::array<std::uint8_t, 16>> gids = {};
  const Shunned* shunned = nullptr;
  const sys::Calls* calls = &sys::real_calls();
};

// Active side: sends the channel to the engine at `to` and waits for its welcome. `progress` is called while waiting,
// so that two engines which connect to each other at the same time both get on.
// `name`: of the socket it listens on. `expected`: who has to answer there; null: whoever does.
[[nodiscard]] Result<std::unique_ptr<Link>> open_link(const EngineId& self, const std::string& name,
                                                      const EngineId* expected, int own_event_fd,
                                                      const LinkPolicy& policy, sys::Deadline deadline,
                                                      const std::function<void()>& progress,
                                                      std::optional<pid_t>* silent = nullptr);  // who was too late
// Passive side, one step: reads the hello from an accepted socket. Code::again: it has not arrived yet.
[[nodiscard]] Result<std::unique_ptr<Link>> accept_link(const EngineId& self, sys::Fd& socket, int own_event_fd,
                                                        const LinkPolicy& policy);
// Both ends in one engine, for queue pairs that are connected to their own NIC.
struct LinkPair {
  std::unique_ptr<Link> first;
  std::unique_ptr<Link> second;
};
[[nodiscard]] Result<LinkPair> open_loopback(const EngineId& self, const LinkPolicy& policy);

}  // namespace strait::soft::nic
