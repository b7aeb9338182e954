// SPDX-License-Identifier: Apache-2.0
// sched_setaffinity.
#include "sys/affinity.hpp"

#include <sched.h>

#include <cstddef>

namespace strait::sys {

int usable_cpus() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

int nth_usable_cpu(int n) {
  cpu_set_t allowed;
  if (n < 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && n-- == 0) return static_cast<int>(cpu);
  }
  return -1;
}

bool pin_thread_to_cpu(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  return ::sched_setaffinity(0, sizeof one, &one) == 0;
}

bool pin_thread_to_nth_cpu(int n) {
  return pin_thread_to_cpu(nth_usable_cpu(n));
}

}  // namespace strait::sys
