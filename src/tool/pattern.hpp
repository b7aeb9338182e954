// SPDX-License-Identifier: Apache-2.0
// Bytes that cannot be right by accident: every 8 bytes depend on the seed and on their position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "strait/strait.hpp"

namespace strait::tool {

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);

struct Mismatch {
  std::uint64_t offset;
  std::byte expected;
  std::byte found;
  [[nodiscard]] std::string text() const;  // "byte 4096 is 0x00 instead of 0x5a"
};
[[nodiscard]] std::optional<Mismatch> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed);

// The same for any memory the Node can copy, through a host buffer.
[[nodiscard]] Status fill_memory(Node& node, void* address, std::uint64_t length, std::uint64_t seed);
[[nodiscard]] Result<std::optional<Mismatch>> check_memory(Node& node, const void* address, std::uint64_t length,
                                                           std::uint64_t seed);

}  // namespace strait::tool
