// SPDX-License-Identifier: Apache-2.0
// Memory behind a port costs a copy of its vendor's for every call, ten microseconds and more, however few bytes. So
// long messages go through it in large pieces, whatever the carrier's own are; short ones are one call.
//
// Where the port's copies go on by themselves, payload for another engine goes through the pool of the link
// (piece_pool.hpp), several pieces at a time: port_copies.cpp. Everywhere else at most one piece is held for each
// direction of a queue pair, and only while a message is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "soft/nic/channel.hpp"
#include "soft/nic/memory.hpp"
#include "soft/nic/piece_pool.hpp"

namespace strait::soft::nic {

// Bytes on their way out: read in large pieces, handed out in small ones.
class ReadAhead {
 public:
  // `tag` tells messages apart; of this one `left` bytes follow at the address, the `length_bytes` included. False: the
  // port refused.
  [[nodiscard]] bool read(const Registration& from, std::uint64_t tag, std::uint64_t address, std::byte* into,
                          std::uint64_t length_bytes, std::uint64_t left);
  // A message begins, perhaps again: what is in memory now counts.
  void forget() { length_bytes_ = 0; }

 private:
  std::uint64_t tag_ = 0;
  std::uint32_t key_ = 0;
  std::uint64_t address_ = 0;
  std::uint64_t length_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

// Bytes on their way in: collected, and written when a piece is full or the message ends.
class WriteBehind {
 public:
  // `more`: the message goes on. False: the port refused, or the memory of what was collected has gone.
  [[nodiscard]] bool write(MemoryTable& table, const Registration& into, std::uint64_t address, const std::byte* from,
                           std::uint64_t length_bytes, bool more);
  // The message has ended, in memory of another kind.
  [[nodiscard]] bool finish(MemoryTable& table) { return flush(table); }
  // A message begins: what is left of one that was given up is not its.
  void forget() { bytes_.clear(); }

 private:
  [[nodiscard]] bool flush(MemoryTable& table);

  std::uint32_t key_ = 0;
  std::uint64_t address_ = 0;
  std::vector<std::byte> bytes_;
};

// A payload that arrives in several messages.
struct Arriving {
  bool active = false;
  Kind kind = Kind::none;
  std::uint8_t flags = 0;
  std::uint32_t msn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t raddr = 0;
  std::uint32_t length = 0;
  std::uint32_t landed = 0;
  std::uint32_t imm_raw = 0;
};

// Its payload lies in a piece of the sender's pool.
[[nodiscard]] inline bool names_piece(const Slot& message) {
  ListEntry entry;
  std::memcpy(&entry, message.data, sizeof entry);
  return (message.flags & kCross) != 0 && message.slots == 1 && message.pieces == 1 && entry.key == kPoolKey;
}

// A copy that goes on by itself, between memory behind a port and a piece of a pool. As long as it does, it is counted
// in the registration's in_flight, and keeps the pool mapped.
struct PortCopy {
  enum class State : std::uint8_t { under_way, ended, failed };
  State state = State::failed;
  std::uint32_t key = 0;  // of the registration
  const strait_memory_port* port = nullptr;
  std::uint64_t ticket = 0;
  std::shared_ptr<PieceMemory> memory;
  PiecePool::Taken piece;
};

// Payload of a work request, on its way into the pool; then it waits for its turn to be sent.
struct PieceOut {
  std::uint64_t index;  // of the work request
  std::uint32_t offset;
  std::uint32_t length_bytes;
  PortCopy copy;
};

// Told the peer, who has not said yet that it is done with it.
struct PieceLent {
  std::uint32_t msn;
  PiecePool::Taken piece;
};

// Payload of a peer, on its way from the pool to where it belongs.
struct PieceIn {
  Arriving message;
  bool last;   // the message ends with it
  bool stale;  // not the peer's copy any more, or not this side's: refused in its turn
  PortCopy copy;
};

// Of one queue pair.
struct PortPieces {
  ReadAhead sent;        // payload of its work requests
  ReadAhead answered;    // of peers' reads
  WriteBehind landing;   // what peers write and send
  WriteBehind returned;  // what its own reads bring

  std::deque<PieceOut> out;  // in the order of the work requests
  std::uint64_t ahead = 0;   // the work request that is read next, and from where on
  std::uint32_t ahead_bytes = 0;
  std::deque<PieceLent> lent;  // in the order of the messages
  std::deque<PieceIn> in;      // in the order of the messages
  std::uint32_t behind = 0;    // messages all of whose copies have begun, and not ended
};

}  // namespace strait::soft::nic
