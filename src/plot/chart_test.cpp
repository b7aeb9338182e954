// SPDX-License-Identifier: Apache-2.0
#include "plot/chart.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "plot/well_formed_test.hpp"

namespace strait::plot {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

Chart two_lines() {
  return {"latency",
          "software NIC",
          "one way, us",
          {{"strait (software NIC)", {{8, 0.3, 0.29, 0.33}, {4096, 0.9, 0.8, 1.4}, {1 << 20, 60, 55, 70}}, false, 0},
           {"memcpy", {{8, 0.01, 0.01, 0.01}, {1 << 20, 30, 29, 40}}, true, 3}}};
}

TEST(Chart, HasEverySeriesItsSpreadItsAxesAndItsLegend) {
  const std::string svg = charts_svg({two_lines()});
  EXPECT_EQ(why_not_well_formed(svg), "");
  for (const char* words : {"latency", "one way, us", "strait (software NIC)", "memcpy", ">8 B<", ">1 MiB<", "band0",
                            "band3", "hue3 dashed", "hue0 thin", "(logarithmic)"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_EQ(count(svg, "class=\"band"), 2u);
}

TEST(Chart, TwoChartsAreBelowEachOther) {
  const std::string one = charts_svg({two_lines()});
  const std::string two = charts_svg({two_lines(), two_lines()});
  EXPECT_EQ(why_not_well_formed(two), "");
  EXPECT_EQ(count(two, "class=\"band"), 2 * count(one, "class=\"band"));
}

// Whatever was measured: every place lies within the picture.
TEST(Chart, NothingIsDrawnOutside) {
  for (const Chart& chart :
       {two_lines(), Chart{"t", "r", "y", {{"one size", {{64, 5, 4, 6}}, false, 1}}},
        Chart{"t", "r", "y", {{"flat", {{8, 1, 1, 1}, {16, 1, 1, 1}}, false, 2}}},
        Chart{"t", "r", "y", {{"odd", {{1, 1e-6, 1e-7, 1e9}, {1u << 30, 1e6, 2e6, 1e5}}, false, 5}}}}) {
    const std::string svg = charts_svg({chart});
    EXPECT_EQ(why_not_well_formed(svg), "");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    const std::regex place("(?:x|y|x1|x2|y1|y2|cx|cy)=\"(-?[0-9.]+)\"");
    for (auto it = std::sregex_iterator(svg.begin(), svg.end(), place); it != std::sregex_iterator(); ++it) {
      const double at = std::stod((*it)[1]);
      EXPECT_GE(at, 0) << (*it)[0];
      EXPECT_LE(at, 760) << (*it)[0];
    }
  }
}

TEST(Chart, WhatCannotBeShownIsLeftOut) {
  const double nan = std::nan("");
  const std::string svg = charts_svg(
      {{"t", "r", "y", {{"bad", {{8, 0, 0, 0}, {64, nan, 1, 2}, {0, 1, 1, 1}, {8, -1, -1, -1}}, false, 0}}}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_NE(svg.find("nothing was measured"), std::string::npos);
  EXPECT_EQ(why_not_well_formed(charts_svg({})), "");
}

TEST(Chart, HigherIsHigher) {
  const std::string svg = charts_svg({{"t", "r", "y", {{"s", {{8, 1, 1, 1}, {64, 100, 100, 100}}, false, 0}}}});
  const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  auto it = std::sregex_iterator(svg.begin(), svg.end(), circle);
  ASSERT_NE(it, std::sregex_iterator());
  const double x1 = std::stod((*it)[1]), y1 = std::stod((*it)[2]);
  ASSERT_NE(++it, std::sregex_iterator());
  EXPECT_LT(x1, std::stod((*it)[1]));
  EXPECT_GT(y1, std::stod((*it)[2]));
}

TEST(Bars, AreWellFormedAndNameTheirLimit) {
  const std::string svg = bars_svg(
      {"goodput", "packets lost", "GB/s", {{"none", 3.5, 3.2, 3.6}, {"5 %", 0.15, 0.14, 0.2}}, 4.7, "plain UDP"});
  EXPECT_EQ(why_not_well_formed(svg), "");
  for (const char* words : {"goodput", "packets lost", "none", "5 %", "plain UDP: 4.70", "GB/s", ">3.50<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_EQ(why_not_well_formed(bars_svg({})), "");
}

}  // namespace
}  // namespace strait::plot
