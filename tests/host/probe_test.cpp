// SPDX-License-Identifier: Apache-2.0
// Every check of the probe, each in a process of its own.
#include <gtest/gtest.h>

#include "run_of_ours.hpp"

namespace strait::testing {
namespace {

class Probe : public ::testing::TestWithParam<const char*> {};

TEST_P(Probe, IsFine) {
  const OurRun ours;
  const Outcome outcome =
      ours.run({HOST_PROBE, GetParam()}, 100, {{"PROBE_EARLY", GetParam() == std::string("early") ? "1" : ""}});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "fine\n") << outcome.err;
}

constexpr const char* kChecks[] = {"open_and_use", "mapped_nodes",    "look_at_nodes", "duplicates", "high_numbers",
                                   "ranges",       "behind_our_back", "refusals",      "folders",    "names",
                                   "relative",     "patterns",        "parents",       "streams",    "forks",
                                   "vforks",       "spawns",          "threads",       "signals",    "early"};
INSTANTIATE_TEST_SUITE_P(, Probe, ::testing::ValuesIn(kChecks),
                         [](const auto& check) { return std::string(check.param); });

TEST(ProbeItself, NoCheckIsForgotten) {
  std::string all;
  for (const char* name : kChecks) all += std::string(name) + "\n";
  EXPECT_EQ(run({HOST_PROBE, "list"}).out, all);
}

TEST(ProbeItself, WithoutARunThereIsNothing) {
  EXPECT_NE(run({HOST_PROBE, "open_and_use"}).status, 0);
  EXPECT_NE(run({HOST_PROBE, "open_and_use"}, 60, {{"LD_PRELOAD", STRAIT_HOST_LIBRARY}}).status, 0);
}

TEST(ProbeItself, WithoutDevicesThatIsSaid) {
  const OurRun ours;
  auto environment = ours.environment();
  environment.back().second = "/no/such/library.so";
  const Outcome outcome = run({HOST_PROBE, "open_and_use"}, 60, environment);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("strait run: no software device can be opened: /no/such/library.so"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace strait::testing
