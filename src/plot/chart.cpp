// SPDX-License-Identifier: Apache-2.0
// A figure over size.
#include "plot/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plot/axis.hpp"
#include "plot/svg.hpp"
#include "plot/units.hpp"

namespace strait::plot {
namespace {

constexpr double kChartWidth = 760, kChartHeight = 430;
constexpr double kLeft = 78, kRight = 24, kTop = 96, kBottom = 58;
constexpr double kLetter = 7.3;  // of 13 pixels, on average: legends are laid out without measuring
constexpr std::size_t kMostLabels = 12;

bool shown(const Point& point) {
  return std::isfinite(point.median) && point.median > 0 && point.x > 0;
}

// A spread that is missing or turned around is no wider than the point.
Point tidy(Point point) {
  if (!(point.low > 0) || point.low > point.median) point.low = point.median;
  if (!(point.high >= point.median) || !std::isfinite(point.high)) point.high = point.median;
  return point;
}

struct Frame {
  double top;  // of this chart in the picture
  Range x, y;
  [[nodiscard]] double at_x(double value) const {
    return kLeft + std::log(value / x.low) / std::log(x.high / x.low) * (kChartWidth - kLeft - kRight);
  }
  [[nodiscard]] double at_y(double value) const {
    const double height = kChartHeight - kTop - kBottom;
    return top + kTop + height - std::log(value / y.low) / std::log(y.high / y.low) * height;
  }
};

std::vector<Series> tidied(const std::vector<Series>& all) {
  std::vector<Series> out;
  for (Series series : all) {
    std::erase_if(series.points, [](const Point& point) { return !shown(point); });
    for (Point& point : series.points) point = tidy(point);
    std::sort(series.points.begin(), series.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    if (!series.points.empty()) out.push_back(std::move(series));
  }
  return out;
}

void draw_grid(Svg& svg, const Frame& frame, const std::vector<Tick>& sizes, const std::vector<Tick>& values,
               const Chart& chart) {
  const double bottom = frame.top + kChartHeight - kBottom;
  for (const Tick& tick : values) {
    svg.line(kLeft, frame.at_y(tick.value), kChartWidth - kRight, frame.at_y(tick.value), "grid");
    if (tick.labelled) svg.text(kLeft - 9, frame.at_y(tick.value) + 4.5, "end", fmt::format("{:g}", tick.value), "dim");
  }
  for (const Tick& tick : sizes) {
    svg.line(frame.at_x(tick.value), frame.top + kTop, frame.at_x(tick.value), bottom, "grid");
    if (tick.labelled)
      svg.text(frame.at_x(tick.value), bottom + 20, "middle", size_text(static_cast<std::uint64_t>(tick.value)), "dim");
  }
  svg.line(kLeft, bottom, kChartWidth - kRight, bottom, "axis");
  svg.line(kLeft, frame.top + kTop, kLeft, bottom, "axis");
  svg.text((kLeft + kChartWidth - kRight) / 2, bottom + 44, "middle", "size of one put (logarithmic)");
  svg.text_up(20, frame.top + (kTop + kChartHeight - kBottom) / 2, chart.y_title);
}

void draw_series(Svg& svg, const Frame& frame, const Series& series) {
  std::string upper, lower, middle;
  for (const Point& point : series.points) {
    const char step = middle.empty() ? 'M' : 'L';
    const double x = frame.at_x(point.x);
    middle += fmt::format("{}{:.1f} {:.1f}", step, x, frame.at_y(point.median));
    upper += fmt::format("{}{:.1f} {:.1f}", step, x, frame.at_y(point.high));
    lower = fmt::format("L{:.1f} {:.1f}", x, frame.at_y(point.low)) + lower;
  }
  svg.path(upper + lower + "Z", fmt::format("band{}", series.hue));
  for (const Point& point : series.points) {
    const double x = frame.at_x(point.x), high = frame.at_y(point.high), low = frame.at_y(point.low);
    if (low - high < 3) continue;  // the marker hides it
    const std::string look = fmt::format("hue{} thin", series.hue);
    svg.line(x, high, x, low, look);
    svg.line(x - 4, high, x + 4, high, look);
    svg.line(x - 4, low, x + 4, low, look);
  }
  svg.path(middle, fmt::format("hue{}{}", series.hue, series.limit ? " dashed" : ""));
  for (const Point& point : series.points) svg.marker(frame.at_x(point.x), frame.at_y(point.median), series.hue);
}

void draw_legend(Svg& svg, double top, const std::vector<Series>& all) {
  double x = kLeft;
  double y = top + 76;
  for (const Series& series : all) {
    const double width = 44 + kLetter * static_cast<double>(series.name.size());
    if (x > kLeft && x + width > kChartWidth - kRight + 16) {
      x = kLeft;
      y += 16;
    }
    svg.line(x, y - 4.5, x + 26, y - 4.5, fmt::format("hue{}{}", series.hue, series.limit ? " dashed" : ""));
    svg.marker(x + 13, y - 4.5, series.hue);
    svg.text(x + 33, y, "start", series.name);
    x += width + 14;
  }
}

void draw_chart(Svg& svg, double top, const Chart& chart) {
  svg.text(kLeft, top + 30, "start", chart.title, "head");
  svg.text(kLeft, top + 51, "start", chart.remark, "dim");
  const std::vector<Series> all = tidied(chart.series);
  if (all.empty()) {
    svg.text(kChartWidth / 2, top + kChartHeight / 2, "middle", "nothing was measured");
    return;
  }
  Frame frame{top, {all[0].points[0].x, 0}, {all[0].points[0].low, 0}};
  std::vector<double> sizes;
  for (const Series& series : all) {
    for (const Point& point : series.points) {
      frame.x = {std::min(frame.x.low, point.x), std::max(frame.x.high, point.x)};
      frame.y = {std::min(frame.y.low, point.low), std::max(frame.y.high, point.high)};
      sizes.push_back(point.x);
    }
  }
  const std::vector<Tick> values = decimal_ticks(frame.y);
  frame.y = {values.front().value, values.back().value};
  // Room at both ends, so that no marker sits on an axis; and a single size is in the middle.
  const double room = frame.x.high > frame.x.low ? std::pow(frame.x.high / frame.x.low, 0.03) : 2;
  frame.x = {frame.x.low / room, frame.x.high * room};
  draw_grid(svg, frame, size_ticks(sizes, kMostLabels), values, chart);
  // What is measured first is drawn last, and lies on top.
  for (std::size_t i = all.size(); i-- > 0;) draw_series(svg, frame, all[i]);
  draw_legend(svg, top, all);
}

}  // namespace

std::string charts_svg(const std::vector<Chart>& charts) {
  std::string title;
  std::string names;
  for (const Chart& chart : charts) {
    title += (title.empty() ? "" : "; ") + chart.title;
    if (!names.empty()) continue;
    for (const Series& series : chart.series) names += (names.empty() ? "" : ", ") + series.name;
  }
  Svg svg(kChartWidth, kChartHeight * static_cast<double>(std::max<std::size_t>(charts.size(), 1)), title,
          "Lines: " + names + ". Bars and bands: 10th to 90th percentile.");
  for (std::size_t i = 0; i < charts.size(); ++i) draw_chart(svg, kChartHeight * static_cast<double>(i), charts[i]);
  return std::move(svg).finish();
}

}  // namespace strait::plot
