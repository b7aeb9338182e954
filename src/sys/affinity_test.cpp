// SPDX-License-Identifier: Apache-2.0
// A pinned thread runs where it was pinned, and only there.
#include "sys/affinity.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace strait::sys {
namespace {

TEST(Affinity, BindsOnlyTheCallingThread) {
  const int before = usable_cpus();
  ASSERT_GE(before, 1);
  int inside = 0;
  bool pinned = false;
  bool beyond = true;
  std::thread([&] {
    beyond = pin_thread_to_nth_cpu(before);
    pinned = pin_thread_to_nth_cpu(before - 1);
    inside = usable_cpus();
  }).join();
  EXPECT_FALSE(beyond);
  EXPECT_TRUE(pinned);
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(usable_cpus(), before);
}

TEST(Affinity, NamesTheCpusThatMayBeUsed) {
  const int cpu = nth_usable_cpu(usable_cpus() - 1);
  ASSERT_GE(cpu, 0);
  EXPECT_EQ(nth_usable_cpu(usable_cpus()), -1);
  EXPECT_EQ(nth_usable_cpu(-1), -1);
  int ran_on = -1;
  std::thread([&] {
    if (pin_thread_to_cpu(cpu)) ran_on = ::sched_getcpu();
  }).join();
  EXPECT_EQ(ran_on, cpu);
  EXPECT_FALSE(pin_thread_to_cpu(-1));
  EXPECT_FALSE(pin_thread_to_cpu(1 << 20));
}

}  // namespace
}  // namespace strait::sys
