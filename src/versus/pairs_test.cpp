// SPDX-License-Identifier: Apache-2.0
#include "versus/pairs.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sys/affinity.hpp"
#include "versus/copy.hpp"
#include "versus/machine.hpp"

namespace strait::versus {
namespace {

constexpr Calm kStill{100, 110, 5};
constexpr Calm kMovedLine{100, 130, 5};
constexpr Calm kLostCpu{100, 100, 500};

TEST(Spread, TakesTheShareOfTheWayBetweenTwo) {
  EXPECT_FALSE(spread_of({}));
  const auto one = spread_of({3});
  EXPECT_EQ(one->median, 3);
  EXPECT_EQ(one->p10, 3);
  const auto many = spread_of({5, 1, 2, 4, 3, 0, 6, 7, 8, 9, 10});
  EXPECT_DOUBLE_EQ(many->median, 5);
  EXPECT_DOUBLE_EQ(many->p10, 1);
  EXPECT_DOUBLE_EQ(many->p90, 9);
  EXPECT_EQ(many->n, 11u);
  EXPECT_DOUBLE_EQ(spread_of({1, 2})->median, 1.5);
}

TEST(Calm, AFifthIsTheLimit) {
  EXPECT_TRUE(kStill.enough());
  EXPECT_TRUE((Calm{100, 120, 100}).enough());
  EXPECT_TRUE((Calm{120, 100, 100}).enough());
  EXPECT_FALSE((Calm{100, 121, 0}).enough());
  EXPECT_FALSE((Calm{121, 100, 0}).enough());
  EXPECT_FALSE((Calm{100, 100, 101}).enough());
}

TEST(Pairs, OnlyPairsOfAStillMachineCount) {
  Pairs pairs;
  pairs.samples = {{kStill, 2, 1, {}}, {kMovedLine, 50, 1, {}}, {kStill, 4, 1, {}}, {kLostCpu, 70, 1, {}}};
  const Json out = pairs_json(pairs);
  EXPECT_EQ(out.at("kept"), 2);
  EXPECT_EQ(out.at("discarded"), 2);
  EXPECT_EQ(out.at("line_moved"), 1);
  EXPECT_EQ(out.at("lost_cpu"), 1);
  EXPECT_EQ(out.at("noisy"), false);
  EXPECT_DOUBLE_EQ(out.at("ratio").at("median").get<double>(), 3);
  EXPECT_DOUBLE_EQ(out.at("strait").at("median").get<double>(), 3);
  EXPECT_EQ(out.at("samples").size(), 4u) << "what was discarded is shown all the same";
}

TEST(Pairs, WhenNoneIsLeftAllAreShownAndItIsSaid) {
  Pairs pairs;
  pairs.samples = {{kMovedLine, 8, 2, {}}};
  const Json out = pairs_json(pairs);
  EXPECT_EQ(out.at("noisy"), true);
  EXPECT_EQ(out.at("kept"), 0);
  EXPECT_DOUBLE_EQ(out.at("ratio").at("median").get<double>(), 4);
}

TEST(Pairs, TheRatioIsTakenPairByPair) {
  // The machine was twice as slow in the second pair: the ratios are equal, a ratio of medians would not see it.
  Pairs pairs;
  pairs.samples = {{kStill, 1, 2, {}}, {kStill, 2, 4, {}}, {kStill, 3, 6, {}}};
  const Json out = pairs_json(pairs);
  EXPECT_DOUBLE_EQ(out.at("ratio").at("p10").get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(out.at("ratio").at("p90").get<double>(), 0.5);
}

TEST(Pairs, MemcpyTakesThePlaceOfThePeer) {
  Pairs pairs;
  pairs.samples = {{kStill, 2, 1, 4}};
  const Json out = pairs_json(beside_copy(pairs));
  EXPECT_DOUBLE_EQ(out.at("ratio").at("median").get<double>(), 0.5);
  EXPECT_FALSE(out.contains("memcpy"));
  EXPECT_DOUBLE_EQ(pairs_json(pairs).at("memcpy_ratio").at("median").get<double>(), 0.5);
}

Cpus two_cpus() {
  return {sys::nth_usable_cpu(0), sys::nth_usable_cpu(1)};
}

TEST(Pairs, EachGoesFirstAsOftenAsTheOther) {
  std::string order;
  const Sides sides{.ours =
                        [&] {
                          return order += 'o', Figure{true, 1, {}, "our way"};
                        },
                    .peer =
                        [&] {
                          return order += 'p', Figure{true, 2, {}, "their way"};
                        },
                    .copy = [] { return 4.0; }};
  std::vector<int> said;
  const auto pairs = measure_pairs(two_cpus(), 2, sides, [&](int pair) { return said.push_back(pair), true; });
  ASSERT_TRUE(pairs) << pairs.error().text;
  EXPECT_EQ(order, "poop");
  EXPECT_EQ(said, (std::vector<int>{0, 1}));
  ASSERT_EQ(pairs->samples.size(), 2u);
  EXPECT_GT(pairs->samples[0].calm.line_ns_before, 0);
  EXPECT_EQ(pairs->samples[0].copy, 4.0);
  EXPECT_EQ(pairs->our_path, "our way");
}

TEST(Pairs, ThreeFailuresAreEnough) {
  int ran = 0;
  const Sides sides{.ours =
                        [&] {
                          return ++ran, Figure{true, 1, {}, {}};
                        },
                    .peer = [] { return no_figure("no such device"); },
                    .copy = {}};
  const auto pairs = measure_pairs(two_cpus(), 10, sides, nullptr);
  ASSERT_TRUE(pairs);
  EXPECT_EQ(ran, 3);
  EXPECT_TRUE(pairs->samples.empty());
  EXPECT_EQ(pairs->failures, std::vector<std::string>(3, "peer: no such device"));
}

TEST(Pairs, WhoeverIsAskedMayEndIt) {
  const Sides sides{.ours = [] { return Figure{true, 1, {}, {}}; }, .peer = {}, .copy = {}};
  const auto pairs = measure_pairs(two_cpus(), 5, sides, [](int pair) { return pair < 1; });
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->samples.size(), 1u);
  EXPECT_FALSE(pairs->samples[0].peer);
}

TEST(Pairs, OneRunMayMeasureBoth) {
  Sides sides{.ours = [] { return Figure{true, 2, {}, "way", 8}; }, .peer = {}, .copy = {}};
  sides.beside = true;
  const auto pairs = measure_pairs(two_cpus(), 1, sides, nullptr);
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->samples.at(0).peer, 8.0);
}

TEST(Probe, OneCpuIsNotEnough) {
  const int cpu = sys::nth_usable_cpu(0);
  EXPECT_EQ(line_ns({cpu, cpu}).error().code, Code::unsupported);
  EXPECT_EQ(line_ns({cpu, 1 << 20}).error().code, Code::unsupported);
}

TEST(Copy, MoreBytesTakeLonger) {
  EXPECT_GT(copy_seconds(std::uint64_t{8} << 20, 0.01, sys::nth_usable_cpu(0)),
            copy_seconds(8, 0.01, sys::nth_usable_cpu(0)));
}

TEST(Machine, IsDescribed) {
  const Json machine = describe_machine("0.1.0");
  EXPECT_GT(machine.at("cpus").get<int>(), 0);
  EXPECT_NE(machine_text(machine).find("Linux"), std::string::npos);
  EXPECT_NE(versions_text(machine).find("strait 0.1.0"), std::string::npos);
  EXPECT_EQ(today().size(), 10u);
  EXPECT_GE(load_average(), 0);
}

}  // namespace
}  // namespace strait::versus
