// SPDX-License-Identifier: Apache-2.0
#include "keys/shard.hpp"

#include <bit>

namespace strait::keys::detail {

thread_local constinit std::uint32_t thread_number = kNoNumber;
thread_local constinit LastUse last_use;

// Never used again: what a thread remembers of a cache that is gone is nobody else's.
std::uint64_t number_cache() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {

std::atomic<std::uint64_t> taken{0};  // one bit per number; kCrowd is never taken

// Gives the number back when the thread ends. A thread that still uses a cache after its own destructors ran is one of
// the crowd.
struct Numbered {
  ~Numbered() {
    const std::uint32_t mine = thread_number;
    thread_number = kCrowd;
    last_use = {};  // says where to count under the old number
    if (mine < kCrowd) taken.fetch_and(~(std::uint64_t{1} << mine), std::memory_order_release);
  }
};

}  // namespace

std::uint32_t number_thread() {
  thread_local Numbered numbered;
  (void)numbered;
  std::uint64_t now = taken.load(std::memory_order_relaxed);
  for (;;) {
    const auto number = static_cast<std::uint32_t>(std::countr_one(now));
    if (number >= kCrowd) return thread_number = kCrowd;
    // acquire: what the number's last owner wrote to its counters came before.
    if (taken.compare_exchange_weak(now, now | std::uint64_t{1} << number, std::memory_order_acquire,
                                    std::memory_order_relaxed))
      return thread_number = number;
  }
}

}  // namespace strait::keys::detail
