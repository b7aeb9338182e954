// SPDX-License-Identifier: Apache-2.0
// What goes between a client's process and the one that has the cards. Packets on a local socket: an ask and its
// answer, one after the other. A second socket goes the other way: memory of the client that only the client can reach.
//
// Both sides are one installation on one host; the name of the socket carries the version.
#pragma once

#include <cstdint>
#include <type_traits>

namespace strait::soft::cassini::protocol {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kMagic = 0x69787843;
inline constexpr std::size_t kMostBytes = 48 * 1024;   // of one packet
inline constexpr std::size_t kMostCommand = 22432;     // the driver's own limit
inline constexpr std::size_t kMostCarried = 2;         // pieces of device memory that one command can name
inline constexpr std::size_t kMostFaults = 4096;       // of the text
inline constexpr std::size_t kMostFindings = 64;       // in one answer
inline constexpr std::size_t kMostCopied = 32 * 1024;  // in one MemoryAsk

enum class Kind : std::uint32_t {
  hello =
      1,  // words: version, device, an address of the client and the word there; files: the other socket; rest: faults
  write,  // carried pieces, then the command
  map,    // words: offset, bytes
  unmap,  // words: offset
  wait,   // words: wait
  share,  // words: address, bytes, offset; files: the memory
  unshare,    // words: address
  tear_down,  // words: md
  counters,   // answer: text
  number,     // words: which (Number), device; answer word: value
  findings,   // answer: text, of what was found since the last time
};

enum class Number : std::uint32_t { rgids_free = 1, odp_requests, flushes, restricted, landed };

struct Ask {
  std::uint32_t magic;
  Kind kind;
  std::uint64_t words[4];
  std::uint32_t uid, gid;
  std::uint64_t network;
  std::uint8_t admin, net_raw, carried;
  std::uint8_t strict;        // of hello
  std::uint32_t strict_seed;  // of hello; 0: that of the faults
};
static_assert(sizeof(Ask) == 64 && std::is_trivial_v<Ask>);

// A piece of device memory that came with a command.
struct Carried {
  std::uint32_t by_address;  // 1: pages at `address`; 0: what the client calls descriptor `fd`
  std::int32_t fd;
  std::int32_t error;    // not 0: this is what the vendor's driver answered
  std::uint32_t memory;  // not 0: ask the client for this memory; 0: a file came along
  std::uint64_t address;
  std::uint64_t bytes;   // of the buffer, or of the pages
  std::uint64_t offset;  // of its first byte in the file
};
static_assert(sizeof(Carried) == 40 && std::is_trivial_v<Carried>);

struct Answer {
  std::int64_t result;  // >= 0, or -errno
  std::uint64_t words[3];
};
static_assert(sizeof(Answer) == 32 && std::is_trivial_v<Answer>);

enum class MemoryKind : std::uint32_t { read = 1, write, reaches, reaches_to_write };

struct MemoryAsk {
  MemoryKind kind;
  std::uint32_t memory;  // 0: the process's own; else what a Carried named
  std::uint64_t address;
  std::uint64_t bytes;
};
static_assert(sizeof(MemoryAsk) == 24 && std::is_trivial_v<MemoryAsk>);

struct MemoryAnswer {
  std::uint64_t done;  // 1: yes, all of it; bytes follow a read
};

}  // namespace strait::soft::cassini::protocol
