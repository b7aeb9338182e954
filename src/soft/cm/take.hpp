// SPDX-License-Identifier: Apache-2.0
// A command out of the bytes that a program wrote; what it left out is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace strait::soft::cm {

inline constexpr std::size_t kLongestCommand = 512;

template <class Command>
[[nodiscard]] Command take(std::span<const std::byte> in) {
  static_assert(sizeof(Command) <= kLongestCommand);
  Command out{};
  std::memcpy(&out, in.data(), std::min(in.size(), sizeof out));
  return out;
}

}  // namespace strait::soft::cm
