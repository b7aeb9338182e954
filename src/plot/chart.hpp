// SPDX-License-Identifier: Apache-2.0
// Pictures of measurements: a figure over size, both axes logarithmic, and bars. Every point has its spread.
#pragma once

#include <string>
#include <vector>

namespace strait::plot {

struct Point {
  double x = 0;  // bytes
  double median = 0;
  double low = 0;  // 10th percentile
  double high = 0;
};

struct Series {
  std::string name;  // "strait (software NIC)"
  std::vector<Point> points;
  bool limit = false;  // not a peer but what cannot be beaten: dashed
  int hue = 0;         // 0 to 5, and the shape of its markers: the same for one name in every chart
};

struct Chart {
  std::string title;
  std::string remark;  // a line under the title
  std::string y_title;
  std::vector<Series> series;
};

// One picture, the charts below each other. Points that are not above 0 cannot be shown and are left out; a chart
// without any says so.
[[nodiscard]] std::string charts_svg(const std::vector<Chart>& charts);

struct Bar {
  std::string label;
  double median = 0;
  double low = 0;
  double high = 0;
};

struct BarChart {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<Bar> bars;
  double limit = 0;  // a line across; 0: none
  std::string limit_label;
};
[[nodiscard]] std::string bars_svg(const BarChart& chart);

}  // namespace strait::plot
