// SPDX-License-Identifier: Apache-2.0
// Which CPU a thread runs on.
#pragma once

namespace strait::sys {

// Binds the calling thread to the n-th of the CPUs it may use, counted from 0. False, and nothing changed, when there
// are not that many or the kernel refuses. Two processes that poll for each other need this on a busy machine: the
// scheduler likes to put whoever was just woken on its waker's CPU, where the two then take turns instead of working at
// once.
bool pin_thread_to_nth_cpu(int n);

// The kernel's number of the n-th CPU that the calling thread may use, counted from 0; -1: there are not that many.
[[nodiscard]] int nth_usable_cpu(int n);
// The same by the kernel's number.
bool pin_thread_to_cpu(int cpu);

// How many CPUs the calling thread may use.
[[nodiscard]] int usable_cpus();

}  // namespace strait::sys
