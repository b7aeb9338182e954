// SPDX-License-Identifier: Apache-2.0
// Time: a monotonic clock and deadlines. Every wait in strait takes a Deadline.
#pragma once

#include <time.h>

#include <cstdint>

namespace strait::sys {

[[nodiscard]] inline std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Wall clock, for things that other processes read (the expiry of a ticket).
[[nodiscard]] inline std::int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class Deadline {
 public:
  // A negative or overflowing duration counts as the largest one: about 292 years.
  static Deadline after_ns(std::int64_t duration_ns) {
    const std::int64_t now = now_ns();
    if (duration_ns < 0 || duration_ns > INT64_MAX - now) return Deadline(INT64_MAX);
    return Deadline(now + duration_ns);
  }
  [[nodiscard]] bool passed() const { return now_ns() >= at_ns_; }
  [[nodiscard]] std::int64_t left_ns() const {
    const std::int64_t left = at_ns_ - now_ns();
    return left > 0 ? left : 0;
  }
  // For poll(2): rounded up, so that a loop does not spin through the last millisecond.
  [[nodiscard]] int left_ms() const {
    const std::int64_t left = left_ns();
    const std::int64_t ms = left / 1'000'000 + (left % 1'000'000 != 0 ? 1 : 0);
    return ms > 1'000'000 ? 1'000'000 : static_cast<int>(ms);
  }
  [[nodiscard]] std::int64_t at_ns() const { return at_ns_; }

 private:
  explicit Deadline(std::int64_t at_ns) : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

}  // namespace strait::sys
