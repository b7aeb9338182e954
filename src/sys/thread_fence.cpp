// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace strait::sys {
namespace {

// The frequent side may still have stores that nothing but the kernel's barrier orders.
constinit std::atomic<bool> barrier_needed{false};

bool ask_for_barrier(int command) {
  while (::syscall(SYS_membarrier, command, 0, 0) != 0) {
    if (errno != ENOMEM) return false;
    std::this_thread::yield();  // the kernel had no room for a list of processors: the next moment it has
  }
  return true;
}

}  // namespace

namespace detail {

constinit std::atomic<bool> fenced_by_others{false};

void use_kernel_fences(bool use) {
  barrier_needed.store(use, std::memory_order_seq_cst);
  fenced_by_others.store(use, std::memory_order_seq_cst);
}

}  // namespace detail

void prepare_thread_fences() {
  static const bool granted = [] {
    const bool works =
        ask_for_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && ask_for_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    detail::use_kernel_fences(works);
    return works;
  }();
  (void)granted;
}

void fence_all_threads() {
  if (!barrier_needed.load(std::memory_order_seq_cst) || ask_for_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // Refused after it was granted: a filter of system calls has been installed since. From here on the frequent side
  // orders by itself; what it stored before it noticed is in no processor's store buffer a millisecond later.
  detail::fenced_by_others.store(false, std::memory_order_seq_cst);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  barrier_needed.store(false, std::memory_order_seq_cst);
}

}  // namespace strait::sys
