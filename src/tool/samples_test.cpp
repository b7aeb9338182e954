// SPDX-License-Identifier: Apache-2.0
// Percentiles, also when there are more samples than room.
#include "tool/samples.hpp"

#include <gtest/gtest.h>

namespace strait::tool {
namespace {

TEST(Samples, PercentilesOfAKnownRow) {
  Samples samples(1000);
  for (int ns = 1; ns <= 100; ++ns) samples.add(ns);
  EXPECT_EQ(samples.min_ns(), 1);
  EXPECT_EQ(samples.max_ns(), 100);
  EXPECT_EQ(samples.percentile(50), 51u);
  EXPECT_EQ(samples.percentile(99), 100u);
  EXPECT_EQ(samples.percentile(100), 100u);
}

TEST(Samples, ThinsOutEvenlyAndKeepsTheExtremes) {
  Samples samples(64);
  for (int i = 0; i < 100'000; ++i) samples.add(1000 + i % 1000);
  samples.add(5);
  samples.add(1'000'000);
  EXPECT_EQ(samples.seen(), 100'002u);
  EXPECT_EQ(samples.min_ns(), 5);
  EXPECT_EQ(samples.max_ns(), 1'000'000);
  EXPECT_NEAR(samples.percentile(50), 1500, 300);
}

TEST(Samples, NoneIsZero) {
  Samples samples(4);
  EXPECT_EQ(samples.percentile(50), 0u);
  EXPECT_EQ(samples.min_ns(), 0);
}

}  // namespace
}  // namespace strait::tool
