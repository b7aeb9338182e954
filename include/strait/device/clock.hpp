// SPDX-License-Identifier: Apache-2.0
// Monotonic nanoseconds and the deadline every wait takes. A leaf: the host's clock call is allowed here and in sys/.
#pragma once

#include <cstdint>

#include "strait/device/space.hpp"

#if !defined(STRAIT_TARGET_CUDA) && !defined(STRAIT_TARGET_AMD) && !defined(STRAIT_TARGET_MODEL)
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
#elif defined(STRAIT_TARGET_AMD)
#if !defined(__gfx90a__)
#error "strait/device: the clock of this AMD GPU is not known; add its rate here (25 to 100 MHz, by model)"
#endif
  return __builtin_amdgcn_s_memrealtime() * 10u;  // 100 MHz, whatever the shader clock does
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

// A wait that has been idle for so many turns. On a CPU, whoever is waited for may need this core: a fraction of a
// millisecond later it gets it.
inline constexpr std::uint32_t kTurnsBeforeSleep = 4096;
STRAIT_HD inline void sleep_a_little() {
#if !defined(STRAIT_TARGET_CUDA) && !defined(STRAIT_TARGET_AMD) && !defined(STRAIT_TARGET_MODEL)
  const timespec shortest{0, 1};
  ::nanosleep(&shortest, nullptr);
#endif
}

}  // namespace strait::device
