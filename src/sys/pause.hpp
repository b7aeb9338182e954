// SPDX-License-Identifier: Apache-2.0
// Waiting for something that is about to happen: spin, then let others run, then sleep a little.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace strait::sys {

// `turn` counts up from 0 with every look that found nothing.
inline void pause_turn(std::uint32_t turn) {
  if (turn < 64) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  } else if (turn < 256) {
    ::sched_yield();
  } else {
    const timespec nap{0, 20'000};
    ::nanosleep(&nap, nullptr);
  }
}

}  // namespace strait::sys
