// SPDX-License-Identifier: Apache-2.0
// A lock that is waited for, but not for ever: for what is done at the end of a process, where its holder may be gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "sys/clock.hpp"

namespace strait::soft::cassini {

inline constexpr std::int64_t kEndPatienceNs = 1'000'000'000;

[[nodiscard]] inline std::unique_lock<std::mutex> lock_within(std::mutex& mutex, std::int64_t patience_ns) {
  std::unique_lock lock(mutex, std::try_to_lock);
  const sys::Deadline deadline = sys::Deadline::after_ns(patience_ns);
  while (!lock.owns_lock() && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    (void)lock.try_lock();
  }
  return lock;
}

}  // namespace strait::soft::cassini
