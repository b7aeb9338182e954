// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/reservation.hpp"

#include <algorithm>
#include <chrono>

namespace strait::soft::kernel {

bool Fence::wait(const sys::Deadline& deadline) const {
  std::unique_lock lock(mutex_);
  while (!done_) {
    const std::int64_t left = deadline.left_ns();
    if (left <= 0) return false;
    // Woken in between so that a deadline that never ends does not need a duration that long.
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min<std::int64_t>(left, 100'000'000)));
  }
  return true;
}

bool Reservation::wait_kernel_fences(const sys::Deadline& deadline) {
  for (const auto& fence : fences_) {
    if (!fence->wait(deadline)) return false;
  }
  fences_.clear();
  return true;
}

}  // namespace strait::soft::kernel
