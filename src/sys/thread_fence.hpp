// SPDX-License-Identifier: Apache-2.0
// A store and a later load of one thread, ordered against those of another, where one side does it all the time and the
// other seldom: the seldom one pays for both.
//
// The frequent side stores, calls keep_order_for_others(), loads. The other stores, calls fence_all_threads(), loads.
// At least one of them sees what the other stored. Where the kernel refuses (fenced_by_others() says no), the frequent
// side makes its store one that orders by itself (a sequentially consistent read-modify-write).
#pragma once

#include <atomic>

namespace strait::sys {

namespace detail {
extern constinit std::atomic<bool> fenced_by_others;
// For tests, while no other thread is at it: as if the kernel refused, or not any more.
void use_kernel_fences(bool use);
}  // namespace detail

// Before the first use by either side; any number of times.
void prepare_thread_fences();
[[nodiscard]] inline bool fenced_by_others() {
  return detail::fenced_by_others.load(std::memory_order_relaxed);
}
// For the compiler only: the processor's part is made from outside.
inline void keep_order_for_others() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
// Every thread of this process has passed a full barrier when it returns. Costs a system call and interrupts the other
// processors that run this process: a microsecond or a few.
void fence_all_threads();

}  // namespace strait::sys
