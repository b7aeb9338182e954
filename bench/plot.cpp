// SPDX-License-Identifier: Apache-2.0
#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace bench {
namespace {

using Json = nlohmann::json;

constexpr double kWidth = 640, kHeight = 300, kLeft = 64, kRight = 16, kTop = 44, kBottom = 56;
constexpr double kBarShare = 0.5;  // of the room that a bar has

struct Bar {
  const char* row;
  const char* label;
  double median = 0, p10 = 0, p90 = 0, limit = 0;
};

bool read(const Json& results, Bar& bar) {
  for (const Json& row : results.value("rows", Json::array())) {
    if (row.value("id", "") != bar.row || !row.contains("strait") || !row.contains("peer")) continue;
    const Json& ours = row["strait"];
    bar.median = ours.value("median", 0.0);
    bar.p10 = ours.value("p10", bar.median);
    bar.p90 = ours.value("p90", bar.median);
    bar.limit = row["peer"].value("median", 0.0);
    return bar.median > 0;
  }
  return false;
}

std::string text(double x, double y, const char* anchor, const std::string& words, int size = 13) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
                     size, words);
}

std::string line(double x1, double y1, double x2, double y2, const char* look) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, look);
}

}  // namespace

std::string goodput_svg(const Json& results) {
  std::array<Bar, 4> bars = {Bar{"roce_1m_4096", "none"}, Bar{"roce_loss_01", "0.1 %"}, Bar{"roce_loss_1", "1 %"},
                             Bar{"roce_loss_5", "5 %"}};
  double highest = 0;
  std::vector<double> limits;
  for (Bar& bar : bars) {
    if (!read(results, bar)) return {};
    highest = std::max({highest, bar.p90, bar.limit});
    limits.push_back(bar.limit);
  }
  std::sort(limits.begin(), limits.end());
  const double limit = limits[limits.size() / 2];
  const double top = std::max(1.0, static_cast<double>(static_cast<int>(highest) + 1));
  const auto at = [&](double value) { return kHeight - kBottom - value / top * (kHeight - kTop - kBottom); };

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += text(kLeft, 24, "start", "Puts of 1 MiB over RoCEv2 packets on loopback: GB/s that arrive", 15);
  const int step = top > 8 ? 2 : 1;
  for (int value = 0; value <= static_cast<int>(top); value += step) {
    out += line(kLeft, at(value), kWidth - kRight, at(value), "stroke=\"#ddd\"");
    out += text(kLeft - 8, at(value) + 4, "end", fmt::format("{}", value));
  }
  const double room = (kWidth - kLeft - kRight) / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double middle = kLeft + room * (static_cast<double>(i) + 0.5);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#2a6f97\"/>\n",
                       middle - room * kBarShare / 2, at(bar.median), room * kBarShare, at(0) - at(bar.median));
    out += line(middle, at(bar.p10), middle, at(bar.p90), "stroke=\"#222\" stroke-width=\"1.5\"");
    out += text(middle, at(bar.p90) - 6, "middle", fmt::format("{:.3g}", bar.median));
    out += text(middle, kHeight - kBottom + 18, "middle", bar.label);
  }
  out += line(kLeft, at(limit), kWidth - kRight, at(limit), "stroke=\"#c1121f\" stroke-dasharray=\"6 4\"");
  out += text(kWidth - kRight, at(limit) - 5, "end",
              fmt::format("plain UDP, nothing lost, nothing checked: {:.3g}", limit), 12);
  out += text(kLeft + (kWidth - kLeft - kRight) / 2, kHeight - 12, "middle",
              "packets lost on purpose, each way; thin line: 10th to 90th percentile", 12);
  return out + "</svg>\n";
}

}  // namespace bench
