// SPDX-License-Identifier: Apache-2.0
// Bytes that both ends of a lab test can make and check: a stream given by a seed, and the CRC-32 of memory. The
// guest's program and the host's client share it, so that neither has to send what it expects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strait::lab {

// Eight bytes per step of splitmix64; `seed` picks the stream. Long enough a period that no packet equals another.
inline void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t word = state;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    word ^= word >> 31;
    for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
      bytes[at + i] = static_cast<std::byte>(word >> (8 * i));
  }
}

// The reflected CRC-32 that zlib and Ethernet use.
[[nodiscard]] inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const std::byte byte : bytes) crc = kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// The CRC of what fill() writes.
[[nodiscard]] inline std::uint32_t crc32_of_fill(std::size_t length_bytes, std::uint64_t seed) {
  std::vector<std::byte> bytes(length_bytes);
  fill(bytes, seed);
  return crc32(bytes);
}

}  // namespace strait::lab
