// SPDX-License-Identifier: Apache-2.0
// Copies within this address space; large ones past the cache where that is quicker.
#pragma once

#include <cstddef>
#include <cstring>

namespace strait::sys {

// From here on it is worth asking. A copy of this length has pushed most else out of the cache by its end, and itself:
// stores that first read the line they overwrite then move half as much again over the memory bus. C libraries have
// such a threshold too, made from what the CPU says of its cache, which in a virtual machine is that of the whole host;
// and there are CPUs on which their way is quicker than ours. docs/performance.md has figures of both kinds.
inline constexpr std::size_t kLargeCopyBytes = std::size_t{8} << 20;

// By stores past the cache. The bytes are seen before whatever this thread releases afterwards. No overlap.
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t n_bytes);

// By memcpy or past the cache, whichever has been quicker of late in this process. The same promise.
void copy_large(std::byte* to, const std::byte* from, std::size_t n_bytes);

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n_bytes) {
  if (n_bytes >= kLargeCopyBytes) return copy_large(to, from, n_bytes);
  std::memcpy(to, from, n_bytes);
}

}  // namespace strait::sys
