// SPDX-License-Identifier: Apache-2.0
// Copies within this address space, large ones past the cache.
#pragma once

#include <cstddef>
#include <cstring>

namespace strait::sys {

// From here on a copy writes past the cache. One of this length has pushed most else out of it by its end, and itself:
// stores that first read the line they overwrite then move half as much again over the memory bus. C libraries have
// such a threshold too, made from what the CPU says of its cache, which in a virtual machine is that of the whole host.
// docs/performance.md has the figures.
inline constexpr std::size_t kPastCacheBytes = std::size_t{8} << 20;

// The bytes are in place, and seen so before any later store of this thread, when it returns. No overlap.
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t n_bytes);

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n_bytes) {
  if (n_bytes >= kPastCacheBytes) return copy_past_cache(to, from, n_bytes);
  std::memcpy(to, from, n_bytes);
}

}  // namespace strait::sys
