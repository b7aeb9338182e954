// SPDX-License-Identifier: Apache-2.0
// The checksum of a ring grant's message, where faults are made on purpose: in the top 16 bits of its sequence number.
//
// A CRC of 15 bits (the one of CAN). It finds every single damaged bit, which is what `faults` does; a hash would miss
// one message in 65536. The top bit is always set, so that "none" is never a right one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "soft/nic/channel.hpp"

namespace strait::soft::nic {

namespace detail {

inline constexpr std::uint32_t kCrcMask = 0x7fff;
inline constexpr auto kCrcTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte << 7;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x4000) != 0 ? crc << 1 ^ 0x4599 : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc & kCrcMask);
  }
  return table;
}();

}  // namespace detail

// Of a whole message but its sequence number.
template <class SlotAt>
std::uint64_t checksum(std::uint32_t slots, SlotAt slot_at) {
  std::uint32_t crc = slots;
  for (std::uint32_t i = 0; i < slots; ++i) {
    std::array<std::uint8_t, sizeof(Slot)> bytes;
    std::memcpy(bytes.data(), &slot_at(i), sizeof bytes);
    for (std::size_t b = i == 0 ? sizeof(std::uint64_t) : 0; b < bytes.size(); ++b)
      crc = (crc << 8 ^ detail::kCrcTable[(crc >> 7 ^ bytes[b]) & 0xff]) & detail::kCrcMask;
  }
  return std::uint64_t{0x8000 | crc} << 48;
}

}  // namespace strait::soft::nic
