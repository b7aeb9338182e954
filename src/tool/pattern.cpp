// SPDX-License-Identifier: Apache-2.0
// A hash of (seed, position), eight bytes at a time.
#include "tool/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace strait::tool {
namespace {

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed * 0xd6e8'feb8'6659'fd93u + index;
  x ^= x >> 32;
  x *= 0xd6e8'feb8'6659'fd93u;
  x ^= x >> 32;
  x *= 0xd6e8'feb8'6659'fd93u;
  return x ^ (x >> 32);
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
}

std::string Mismatch::text() const {
  return fmt::format("byte {} is 0x{:02x} instead of 0x{:02x}", offset, static_cast<unsigned>(found),
                     static_cast<unsigned>(expected));
}

std::optional<Mismatch> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    const std::size_t length = std::min<std::size_t>(8, bytes.size() - at);
    if (std::memcmp(bytes.data() + at, &word, length) == 0) continue;
    std::byte expected[8];
    std::memcpy(expected, &word, 8);
    std::size_t i = 0;
    while (bytes[at + i] == expected[i]) ++i;
    return Mismatch{at + i, expected[i], bytes[at + i]};
  }
  return std::nullopt;
}

Status fill_memory(Node& node, void* address, std::uint64_t length, std::uint64_t seed) {
  std::vector<std::byte> host(length);
  fill_pattern(host, seed);
  return node.copy(address, host.data(), length);
}

Result<std::optional<Mismatch>> check_memory(Node& node, const void* address, std::uint64_t length,
                                             std::uint64_t seed) {
  std::vector<std::byte> host(length);
  STRAIT_CHECK(node.copy(host.data(), address, length));
  return find_mismatch(host, seed);
}

}  // namespace strait::tool
