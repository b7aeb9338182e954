// SPDX-License-Identifier: Apache-2.0
#include "plot/axis.hpp"

#include <gtest/gtest.h>

namespace strait::plot {
namespace {

std::vector<double> values_of(const std::vector<Tick>& ticks) {
  std::vector<double> values;
  for (const Tick& tick : ticks) values.push_back(tick.value);
  return values;
}

void expect_near(const std::vector<Tick>& ticks, const std::vector<double>& wanted) {
  const std::vector<double> found = values_of(ticks);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], wanted[i] * 1e-9) << i;
}

TEST(Axis, DecimalTicksEnclose) {
  expect_near(decimal_ticks({0.25, 3}), {0.2, 0.5, 1, 2, 5});
  expect_near(decimal_ticks({1, 10}), {1, 2, 5, 10});
  expect_near(decimal_ticks({0.03, 0.03}), {0.02, 0.05});
  for (const Range range : {Range{1e-5, 3e4}, Range{0.7, 0.71}, Range{999, 1001}, Range{5e-9, 6e-9}}) {
    const auto ticks = decimal_ticks(range);
    EXPECT_LE(ticks.front().value, range.low * 1.000001);
    EXPECT_GE(ticks.back().value, range.high * 0.999999);
    EXPECT_LT(ticks.front().value * 2.6, range.low * 5.2) << "no decade is wasted";
  }
}

TEST(Axis, ManyDecadesAreLabelledAtTheirPowersOnly) {
  std::size_t labelled = 0;
  for (const Tick& tick : decimal_ticks({0.01, 10000})) labelled += tick.labelled ? 1u : 0u;
  EXPECT_EQ(labelled, 7u);
  for (const Tick& tick : decimal_ticks({1, 50})) EXPECT_TRUE(tick.labelled);
}

TEST(Axis, AnyRangeEnds) {
  EXPECT_FALSE(decimal_ticks({0, 0}).empty());
  EXPECT_FALSE(decimal_ticks({-1, 5}).empty());
  EXPECT_FALSE(linear_ticks(0).empty());
}

TEST(Axis, SizesAreTheMeasuredOnesAndTheirLabelsHaveRoom) {
  EXPECT_EQ(values_of(size_ticks({64, 8, 64, 512}, 12)), (std::vector<double>{8, 64, 512}));
  std::vector<double> many;
  for (double size = 1; size <= (1 << 24); size *= 2) many.push_back(size);
  std::size_t labelled = 0;
  for (const Tick& tick : size_ticks(many, 12)) labelled += tick.labelled ? 1u : 0u;
  EXPECT_GE(labelled, 6u);
  EXPECT_LE(labelled, 13u);
  const auto close = size_ticks({8, 1000, 1024, 1u << 20}, 12);
  EXPECT_TRUE(close[1].labelled);
  EXPECT_FALSE(close[2].labelled) << "it would lie on its neighbour's";
  EXPECT_TRUE(size_ticks({}, 12).empty());
}

TEST(Axis, LinearTicksBeginAtNothing) {
  EXPECT_EQ(values_of(linear_ticks(4.7)), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of(linear_ticks(30)), (std::vector<double>{0, 5, 10, 15, 20, 25, 30}));
}

}  // namespace
}  // namespace strait::plot
