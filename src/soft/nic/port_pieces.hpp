// SPDX-License-Identifier: Apache-2.0
// Memory behind a port costs a copy of its vendor's for every call, ten microseconds and more, however few bytes. So
// long messages go through it in large pieces, whatever the carrier's own are; short ones are one call.
//
// At most one piece is held for each direction of a queue pair, and only while a message is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "soft/nic/memory.hpp"

namespace strait::soft::nic {

inline constexpr std::uint64_t kPortPieceBytes = 1 << 20;

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

// Of one queue pair.
struct PortPieces {
  ReadAhead sent;        // payload of its work requests
  ReadAhead answered;    // of peers' reads
  WriteBehind landing;   // what peers write and send
  WriteBehind returned;  // what its own reads bring
};

}  // namespace strait::soft::nic
