// SPDX-License-Identifier: Apache-2.0
// Bars beside each other, and a line that they are held against.
#include <fmt/format.h>

#include <algorithm>

#include "plot/axis.hpp"
#include "plot/chart.hpp"
#include "plot/svg.hpp"
#include "plot/units.hpp"

namespace strait::plot {
namespace {

constexpr double kBarsWidth = 640, kBarsHeight = 330;
constexpr double kBarsLeft = 72, kBarsRight = 20, kBarsTop = 72, kBarsBottom = 64;
constexpr double kBarShare = 0.5;  // of the room that a bar has

}  // namespace

std::string bars_svg(const BarChart& chart) {
  Svg svg(kBarsWidth, kBarsHeight, chart.title, chart.x_title + ". Thin lines: 10th to 90th percentile.");
  svg.text(kBarsLeft, 30, "start", chart.title, "head");
  if (chart.limit > 0) {
    svg.line(kBarsLeft, 49.5, kBarsLeft + 26, 49.5, "hue1 dashed");
    svg.text(kBarsLeft + 33, 54, "start", fmt::format("{}: {}", chart.limit_label, figure_text(chart.limit)), "dim");
  }
  double greatest = chart.limit;
  for (const Bar& bar : chart.bars) greatest = std::max({greatest, bar.median, bar.high});
  const std::vector<Tick> ticks = linear_ticks(greatest);
  const auto at = [&](double value) {
    return kBarsHeight - kBarsBottom - value / ticks.back().value * (kBarsHeight - kBarsTop - kBarsBottom);
  };
  for (const Tick& tick : ticks) {
    svg.line(kBarsLeft, at(tick.value), kBarsWidth - kBarsRight, at(tick.value), tick.value == 0 ? "axis" : "grid");
    svg.text(kBarsLeft - 9, at(tick.value) + 4.5, "end", fmt::format("{:g}", tick.value), "dim");
  }
  const double room =
      (kBarsWidth - kBarsLeft - kBarsRight) / static_cast<double>(std::max<std::size_t>(chart.bars.size(), 1));
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double middle = kBarsLeft + room * (static_cast<double>(i) + 0.5);
    svg.rect(middle - room * kBarShare / 2, at(bar.median), room * kBarShare, at(0) - at(bar.median), "fill0");
    svg.line(middle, at(bar.low), middle, at(bar.high), "axis");
    svg.text(middle, at(std::max(bar.high, bar.median)) - 7, "middle", figure_text(bar.median));
    svg.text(middle, kBarsHeight - kBarsBottom + 20, "middle", bar.label);
  }
  if (chart.limit > 0) svg.line(kBarsLeft, at(chart.limit), kBarsWidth - kBarsRight, at(chart.limit), "hue1 dashed");
  svg.text((kBarsLeft + kBarsWidth - kBarsRight) / 2, kBarsHeight - 16, "middle", chart.x_title, "dim");
  svg.text_up(20, (kBarsTop + kBarsHeight - kBarsBottom) / 2, chart.y_title);
  return std::move(svg).finish();
}

}  // namespace strait::plot
