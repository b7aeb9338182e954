// SPDX-License-Identifier: Apache-2.0
// Core: the composition root behind strait_node. Owns devices, registrations, rendezvous and progress; every handle
// keeps it alive, and after close() they answer that the Node is gone.
//
// Threads: any. Locks, in the order they may be taken: peers_mutex, regions_mutex, lanes_mutex. Nothing on the path of
// an operation takes one of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counters.hpp"
#include "base/log.hpp"
#include "base/options.hpp"
#include "buffer/providers.hpp"
#include "keys/cache.hpp"
#include "keys/ticket.hpp"
#include "node/export_book.hpp"
#include "node/fork.hpp"
#include "node/progress.hpp"
#include "node/region.hpp"
#include "node/settings.hpp"
#include "node/sleeper.hpp"
#include "plan/planner.hpp"
#include "rail/mlx5/nic.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/service.hpp"
#include "strait/c.h"
#include "sys/clock.hpp"
#include "sys/library.hpp"

namespace strait::node {

// A NIC with what the Node remembers about it.
struct Rail {
  std::unique_ptr<rail::Nic> nic;
  exports::NicAbilities abilities;
  std::unique_ptr<keys::Cache> cache;  // local registrations; gone before the NIC
};

class Core final : public rendezvous::Handler, public std::enable_shared_from_this<Core> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Core>> open(Options options, Log log);
  Core() = default;
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Stops serving, detaches and flushes, revokes; handles stay as shells. Once.
  void close();
  // Code::gone after close() and in a forked child.
  [[nodiscard]] Status usable(const char* what) const;
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

  // The Node's default when a duration is negative.
  [[nodiscard]] sys::Deadline deadline(std::int64_t timeout_ns) const {
    return sys::Deadline::after_ns(timeout_ns < 0 ? settings_.deadline_ns : timeout_ns);
  }
  [[nodiscard]] sys::Deadline connect_deadline(std::int64_t timeout_ns) const {
    return sys::Deadline::after_ns(timeout_ns < 0 ? settings_.connect_deadline_ns : timeout_ns);
  }

  // memory.cpp
  [[nodiscard]] Result<strait_memory*> allocate(std::uint64_t length_bytes, const std::string& near_device);
  [[nodiscard]] Status free(strait_memory* memory);  // the handle goes with it
  void drop(strait_memory* memory);

  // region.cpp
  [[nodiscard]] Result<strait_region*> share(void* address, std::uint64_t length_bytes, std::uint32_t access);
  [[nodiscard]] Status revoke(strait_region& region, sys::Deadline deadline);
  void drop(strait_region* region);
  [[nodiscard]] Status wait_signal(strait_region& region, std::uint32_t index, std::uint64_t at_least,
                                   sys::Deadline deadline, std::uint64_t& value);
  // Frees dropped regions whose operations have drained. Cheap when there is none.
  void sweep();
  [[nodiscard]] std::size_t draining() const { return draining_count_.load(std::memory_order_relaxed); }

  // publish.cpp
  [[nodiscard]] Result<strait_published*> publish(const std::string& name, strait_region& region);
  void withdraw(const strait_published& published);
  [[nodiscard]] Status make_ticket(strait_region& region, std::uint64_t offset, std::uint64_t length_bytes,
                                   std::uint32_t access, std::int64_t lifetime_ns, strait_ticket& out);

  // peer.cpp
  [[nodiscard]] Result<strait_peer*> connect(const std::string& address, sys::Deadline deadline);
  [[nodiscard]] Result<strait_peer*> accept(sys::Deadline deadline);
  [[nodiscard]] Status lookup(strait_peer& peer, const std::string& name, sys::Deadline deadline, strait_target& out);
  [[nodiscard]] Status redeem(strait_peer& peer, const strait_ticket& ticket, sys::Deadline deadline,
                              strait_target& out);
  [[nodiscard]] Result<strait_lane*> open_lane(strait_peer& peer, std::uint32_t depth, std::uint32_t signal_every,
                                               sys::Deadline deadline);
  void close_peer(strait_peer* peer);
  void close_lane(strait_lane* lane);

  // serve.cpp: what peers ask, on the service's thread.
  Result<rendezvous::ConnectReply> on_connect(rendezvous::PeerId peer,
                                              const rendezvous::ConnectRequest& request) override;
  Status on_ready(rendezvous::PeerId peer, const rendezvous::Ready& ready) override;
  Result<rendezvous::Target> on_lookup(rendezvous::PeerId peer, const std::string& name) override;
  Result<rendezvous::Target> on_redeem(rendezvous::PeerId peer, const rendezvous::TicketBytes& ticket) override;
  void on_gone(rendezvous::PeerId peer) override;

  // Lanes tell the Node that they exist, so that regions in use can be found and the progress thread can keep away.
  void add_lane(strait_lane* lane);
  void remove_lane(strait_lane* lane);
  // Of all lanes: how often their callers polled. Changes while a caller drives the engine itself.
  [[nodiscard]] std::uint64_t caller_polls();
  // One bounded pass over every NIC.
  std::int32_t drive_all();
  void reap_shared_lanes();

  [[nodiscard]] std::string info_json();  // info.cpp
  [[nodiscard]] std::string region_json(const strait_region& region) const;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::vector<Rail>& rails() { return rails_; }
  [[nodiscard]] buffer::Providers& providers() { return *providers_; }
  [[nodiscard]] Progress* progress() { return progress_.get(); }
  [[nodiscard]] const rendezvous::Secret& secret() const { return secret_; }
  [[nodiscard]] const Log& log() const { return log_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] const sys::ForkMark& mark() const { return mark_; }
  [[nodiscard]] Sleeper& sleeper() { return sleeper_; }
  std::atomic<std::uint64_t> poll_count{0};  // strait_node_poll and signal waits

 private:
  struct Incoming;  // a peer whose Ready has not come yet
  [[nodiscard]] Status open_devices();
  [[nodiscard]] Status open_nics(const Wanted& wanted);
  [[nodiscard]] Status open_rail(const strait_nic_ops* ops, const std::string& config);
  [[nodiscard]] std::string soft_library_path() const;
  [[nodiscard]] std::string soft_nic_config(std::uint32_t index) const;
  [[nodiscard]] std::string verbs_library_path() const;
  [[nodiscard]] Status register_local(strait_region& region, const buffer::Claim& claim);
  [[nodiscard]] Status register_remote(strait_region& region);
  [[nodiscard]] Result<rail::MemoryKey> register_part(const strait_region& region, Rail& rail, std::uint64_t offset,
                                                      std::uint64_t length_bytes, std::uint32_t access);
  [[nodiscard]] Result<std::uint32_t> granted_rkey_locked(strait_region& region, const keys::TicketFields& fields);
  [[nodiscard]] Status stage(strait_region& region, const buffer::Claim& claim);
  void cut_off_locked(strait_region& region);
  void release_local(strait_region& region);
  [[nodiscard]] plan::Plan plan_for(const buffer::Claim& claim) const;
  [[nodiscard]] bool in_use(const strait_region& region, std::string* by_whom);
  [[nodiscard]] rendezvous::Target target_of(const strait_region& region) const;
  [[nodiscard]] Result<std::unique_ptr<strait_lane>> make_lane(std::uint32_t depth, std::uint32_t signal_every,
                                                               bool shared);
  // Asks the peer for a queue and connects ours to it, both ways.
  [[nodiscard]] Result<rendezvous::ConnectReply> join(strait_lane& lane, rendezvous::Client& client,
                                                      rendezvous::LaneKind kind, sys::Deadline deadline);
  [[nodiscard]] strait_nic_connect_request connect_settings(const rendezvous::NicAddress& nic, std::uint32_t qpn,
                                                            sys::Deadline deadline) const;
  void wait_until_open() { const std::lock_guard open(opening_mutex_); }
  [[nodiscard]] strait_peer* find_served_locked(rendezvous::PeerId id);
  void describe_lane(strait_lane& lane, const std::string& peer_name) const;

  sys::ForkMark mark_;
  Sleeper sleeper_;
  Options options_;
  Settings settings_;
  Log log_;
  Counters counters_;
  keys::NodeId id_{};
  keys::TicketKey ticket_key_{};
  std::array<std::byte, 16> host_{};
  std::string address_;
  rendezvous::Secret secret_;
  std::vector<std::string> warnings_;
  std::atomic<bool> closed_{false};
  std::mutex opening_mutex_;  // held until the Node is open: peers may ask as soon as the service listens

  std::vector<sys::Library> nic_libraries_;  // unloaded after every device
  std::unique_ptr<buffer::Providers> providers_;
  ExportBook book_;
  std::vector<Rail> rails_;

  std::mutex lanes_mutex_;
  std::vector<strait_lane*> lanes_;

  std::mutex regions_mutex_;
  std::uint64_t next_region_ = 1;
  std::unordered_map<std::uint64_t, strait_region*> regions_;  // every one whose handle was not dropped
  std::vector<std::unique_ptr<strait_region>> draining_;
  std::atomic<std::size_t> draining_count_{0};
  std::map<std::uint64_t, strait_memory*> memories_;  // by base
  std::map<std::string, std::uint64_t> names_;

  std::mutex peers_mutex_;
  std::condition_variable accepted_;
  std::vector<strait_peer*> peers_;  // that somebody holds a handle of
  std::map<rendezvous::PeerId, std::unique_ptr<Incoming>> incoming_;
  std::deque<std::unique_ptr<strait_peer>> waiting_;  // for strait_accept

  std::unique_ptr<Progress> progress_;
  std::unique_ptr<rendezvous::Service> service_;
};

}  // namespace strait::node

struct strait_node {
  std::shared_ptr<strait::node::Core> core;
};

struct strait_memory {
  std::shared_ptr<strait::node::Core> core;
  strait::buffer::Memory memory;
  std::uint32_t shared = 0;  // regions over it; under regions_mutex
  bool dropped = false;      // goes with the last of them; the same lock
};
