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

}  // namespace
}  // namespace strait::sys
