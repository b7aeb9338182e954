// SPDX-License-Identifier: Apache-2.0
// A lock for sections of well under a microsecond: one exchange to take, one store to leave.
//
// Who finds it taken lets others run between looks, so a holder that was preempted gets on. Not for sections that make
// system calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace strait {

class SpinLock {
 public:
  [[nodiscard]] bool try_lock() {
    return taken_.load(std::memory_order_relaxed) == 0 && taken_.exchange(1, std::memory_order_acquire) == 0;
  }
  void lock() {
    while (!try_lock()) std::this_thread::yield();
  }
  void unlock() { taken_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> taken_{0};
};

}  // namespace strait
