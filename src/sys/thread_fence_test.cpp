// SPDX-License-Identifier: Apache-2.0
// Two threads, each stores and then loads what the other stores: one of them sees the other.
#include "sys/thread_fence.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "sys/pause.hpp"

namespace strait::sys {
namespace {

// How often neither of the two saw the other, in `rounds` that both begin together. The frequent side's store is queued
// behind others whose cache lines the other processor has: without a fence it becomes visible long after the load.
int missed_by_both(std::uint32_t rounds) {
  struct alignas(128) Word {
    std::atomic<std::uint32_t> value{0};
  };
  Word frequent, seldom, begun, ended;
  std::array<Word, 48> ballast;
  std::uint32_t frequent_saw = 0;
  const auto wait_for = [](const Word& word, std::uint32_t round) {
    for (std::uint32_t turn = 0; word.value.load(std::memory_order_acquire) != round; ++turn) pause_turn(turn / 16);
  };
  const auto linger = [](std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::thread other([&] {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      (void)seldom.value.load(std::memory_order_relaxed);
      wait_for(begun, round);
      for (Word& each : ballast) each.value.store(round, std::memory_order_relaxed);
      if (fenced_by_others()) {
        frequent.value.store(round, std::memory_order_relaxed);
        keep_order_for_others();
      } else {
        frequent.value.exchange(round, std::memory_order_seq_cst);
      }
      frequent_saw = seldom.value.load(std::memory_order_seq_cst);
      ended.value.store(round, std::memory_order_release);
    }
  });
  int missed = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    (void)frequent.value.load(std::memory_order_relaxed);
    for (Word& each : ballast) each.value.store(0, std::memory_order_relaxed);
    begun.value.store(round, std::memory_order_seq_cst);
    linger(round % 64 * 16);
    seldom.value.store(round, std::memory_order_seq_cst);
    fence_all_threads();
    const std::uint32_t seldom_saw = frequent.value.load(std::memory_order_seq_cst);
    wait_for(ended, round);
    missed += frequent_saw != round && seldom_saw != round ? 1 : 0;
  }
  other.join();
  return missed;
}

TEST(ThreadFence, OneOfTheTwoSeesTheOther) {
  prepare_thread_fences();
  EXPECT_EQ(missed_by_both(2'000), 0);
}

TEST(ThreadFence, WithoutTheKernelTheFrequentSideFences) {
  prepare_thread_fences();
  const bool granted = fenced_by_others();
  detail::use_kernel_fences(false);
  EXPECT_EQ(missed_by_both(2'000), 0);
  detail::use_kernel_fences(granted);
}

// From now on this process's membarrier is refused.
bool refuse_membarrier() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(ThreadFence, RefusedLaterItIsDoneWithout) {
  prepare_thread_fences();
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse_membarrier()) ::_exit(1);
    fence_all_threads();
    ::_exit(fenced_by_others() ? 2 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace strait::sys
