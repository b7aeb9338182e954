// SPDX-License-Identifier: Apache-2.0
// What a CXI rail tells others about itself (strait_nic_address), and the match bits that both ends compute from it.
//
// A key of 32 bits would be guessed sooner or later, so the upper half of all match bits is a secret of the rail, which
// only those learn who are given its address.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "strait/plugin.h"
#include "strait/wire/cxi.hpp"

namespace strait::rail::cxi {

// Where a rail's two portal entries lie in its PID.
inline constexpr std::uint32_t kMemoryIndex = 8;
inline constexpr std::uint32_t kMessageIndex = 9;

struct Address {
  std::uint32_t nid = 0;
  std::uint32_t pid = 0;
  std::uint32_t pid_bits = 0;
  std::uint32_t vni = 0;
  std::uint32_t secret = 0;

  [[nodiscard]] strait_nic_address bytes() const;
  // Code::unsupported when it is that of another kind of NIC.
  [[nodiscard]] static Result<Address> parse(const strait_nic_address& bytes);
  [[nodiscard]] std::uint64_t match_bits(std::uint32_t key) const { return std::uint64_t{secret} << 32 | key; }
  [[nodiscard]] std::uint32_t match_id() const { return wire::cxi::match_id(pid_bits, pid, nid); }
  [[nodiscard]] std::string text() const;  // "nid 0x100 pid 3"
};

// Keys of the memory portal: the directory is key 0; others have their place in the directory below, and above it how
// often that place was used before. Atomics ask with kAtomicKey added, since a list entry cannot tell them from a put
// and a get.
inline constexpr std::uint32_t kPlaceBits = 14;
inline constexpr std::uint32_t kPlaces = 1u << kPlaceBits;
inline constexpr std::uint32_t kGenerationBits = 16;
inline constexpr std::uint32_t kAtomicKey = 1u << 30;
inline constexpr std::uint32_t kLocalKey = 1u << 31;  // of memory that nobody else reaches
[[nodiscard]] constexpr std::uint32_t place_of(std::uint32_t key) {
  return key & (kPlaces - 1);
}

// One place of the directory, as a peer reads it.
struct DirectoryEntry {
  std::uint64_t key;    // 0: nobody's. Of a queue pair: kQueueEntry and its number
  std::uint64_t value;  // what work requests call the first byte; of a queue pair: 1 while it takes messages
};
static_assert(sizeof(DirectoryEntry) == 16);
inline constexpr std::uint64_t kQueueEntry = std::uint64_t{1} << 32;

// header_data of a message.
enum class MessageKind : std::uint8_t { send = 0, send_imm = 1, write_imm = 2 };
struct MessageHeader {
  MessageKind kind = MessageKind::send;
  std::uint32_t imm_raw = 0;
  std::uint32_t bytes = 0;  // of a write with immediate: how much was written

  [[nodiscard]] constexpr std::uint64_t word() const {
    if (kind == MessageKind::write_imm)
      return std::uint64_t{1} << 63 | std::uint64_t{bytes & 0x7fffffffu} << 32 | imm_raw;
    return static_cast<std::uint64_t>(kind) << 32 | imm_raw;
  }
  [[nodiscard]] static constexpr MessageHeader of(std::uint64_t word) {
    MessageHeader out;
    out.imm_raw = static_cast<std::uint32_t>(word);
    if (word >> 63 != 0) {
      out.kind = MessageKind::write_imm;
      out.bytes = static_cast<std::uint32_t>(word >> 32) & 0x7fffffffu;
    } else {
      out.kind = (word >> 32 & 1) != 0 ? MessageKind::send_imm : MessageKind::send;
    }
    return out;
  }
};

}  // namespace strait::rail::cxi
