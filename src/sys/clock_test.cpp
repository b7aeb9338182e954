// SPDX-License-Identifier: Apache-2.0
// Deadlines: the arithmetic at its edges, and that they pass.
#include "sys/clock.hpp"

#include <gtest/gtest.h>
#include <poll.h>

namespace strait::sys {
namespace {

TEST(Clock, RunsForward) {
  const std::int64_t first = now_ns();
  EXPECT_GE(now_ns(), first);
  EXPECT_GT(wall_ns(), std::int64_t{1'600'000'000} * 1'000'000'000);
}

TEST(Deadline, ZeroHasPassed) {
  const Deadline deadline = Deadline::after_ns(0);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.left_ns(), 0);
  EXPECT_EQ(deadline.left_ms(), 0);
}

TEST(Deadline, NegativeAndHugeMeanForEver) {
  for (const std::int64_t duration : {std::int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 1}) {
    const Deadline deadline = Deadline::after_ns(duration);
    EXPECT_EQ(deadline.at_ns(), INT64_MAX) << duration;
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(deadline.left_ms(), 1'000'000) << "poll(2) takes an int: one long sleep of many";
  }
}

TEST(Deadline, MillisecondsAreRoundedUp) {
  const Deadline deadline = Deadline::after_ns(50'000'000'000);
  EXPECT_GT(deadline.left_ms(), 49'000);
  EXPECT_LE(deadline.left_ms(), 50'000);
  const Deadline soon = Deadline::after_ns(900'000);
  const int left = soon.left_ms();
  EXPECT_TRUE(left == 1 || soon.passed()) << left;
}

TEST(Deadline, PassesInTime) {
  const std::int64_t start = now_ns();
  const Deadline deadline = Deadline::after_ns(5'000'000);
  while (!deadline.passed()) ::poll(nullptr, 0, deadline.left_ms());
  EXPECT_GE(now_ns() - start, 5'000'000);
}

}  // namespace
}  // namespace strait::sys
