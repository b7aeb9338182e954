// SPDX-License-Identifier: Apache-2.0
// Monotonic nanoseconds and the deadline every wait takes. A leaf: the host's clock call is allowed here and in sys/.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/space.hpp"

#if !defined(STRAIT_TARGET_CUDA) && !defined(STRAIT_TARGET_MODEL)
#include <ctime>
#endif

namespace strait::device {

// Host and GPU clocks have different origins: a Deadline is made and tested on the same side.
STRAIT_HD inline std::uint64_t now_ns() {
#if defined(STRAIT_TARGET_MODEL)
  return model_now_ns();  // counts steps: a deadline passes at the same place in every run
#elif defined(STRAIT_TARGET_CUDA)
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
#else
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
#endif
}

struct Deadline {
  std::uint64_t at_ns;

  STRAIT_HD static Deadline after_ns(std::uint64_t ns) {
    const std::uint64_t now = now_ns();
    return {ns > ~now ? ~std::uint64_t{0} : now + ns};  // a huge wait must not wrap into the past
  }
  STRAIT_HD bool passed() const { return now_ns() >= at_ns; }
};

// For polling loops: reads the clock only every 16th time, since a clock call costs more than a poll.
struct PacedDeadline {
  Deadline deadline;
  std::uint32_t turns = 0;

  STRAIT_HD bool passed() { return (turns++ & 15) == 0 && deadline.passed(); }
  // One idle turn of the loop; true once the deadline has passed.
  STRAIT_HD bool pause() {
    if (passed()) return true;
    relax();
    return false;
  }
};

}  // namespace strait::device
