// SPDX-License-Identifier: Apache-2.0
#include "versus/ucx_line.hpp"

#include <gtest/gtest.h>

namespace strait::versus {
namespace {

// As ucx_perftest 1.13.1 prints it.
constexpr const char* kNames =
    "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n";

TEST(UcxLine, TakesTheOverallFiguresByTheirNames) {
  const auto line = read_ucx_line(std::string(kNames) + "100000,0.246,9.209,9.215,0.83,0.84,108587,108522\n");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->iterations, 100000);
  EXPECT_EQ(line->latency_us, 9.215);
  EXPECT_EQ(line->mib_per_s, 0.84);
  EXPECT_EQ(line->messages_per_s, 108522);
}

TEST(UcxLine, FindsThemBelowAWarningAndInAnotherOrder) {
  const auto line = read_ucx_line(
      "[1700000000.1] parser.c UCX WARN something\noverall_mr is meant below\n"
      "iterations,overall_mr,overall_lat,overall_bw\n  20,7,138234.305,1851.93\n\n");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->iterations, 20);
  EXPECT_EQ(line->messages_per_s, 7);
  EXPECT_EQ(line->latency_us, 138234.305);
}

TEST(UcxLine, RefusesWhatIsNotWhole) {
  EXPECT_FALSE(read_ucx_line(""));
  EXPECT_FALSE(read_ucx_line("Waiting for connection...\n"));
  EXPECT_FALSE(read_ucx_line(kNames));
  EXPECT_FALSE(read_ucx_line(std::string(kNames) + "100000,0.246,9.209\n"));
  EXPECT_FALSE(read_ucx_line(std::string(kNames) + "100000,0.2,9.2,nan,0.8,0.8,108587,108522\n"));
  EXPECT_FALSE(read_ucx_line(std::string(kNames) + "100000,0.2,9.2,0.000,0.8,0.8,108587,108522\n"));
  EXPECT_FALSE(read_ucx_line(std::string(kNames) + "100000,0.2,9.2,9.2x,0.8,0.8,108587,108522\n"));
  EXPECT_FALSE(read_ucx_line("iterations,overall_lat,overall_bw\n1,2,3\n"));
}

}  // namespace
}  // namespace strait::versus
