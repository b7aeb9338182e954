// SPDX-License-Identifier: Apache-2.0
#include "plot.hpp"

#include <algorithm>
#include <vector>

#include "plot/chart.hpp"
#include "versus/sweep.hpp"

namespace bench {
namespace {

using Json = nlohmann::json;

const Json* find_row(const Json& results, const std::string& id) {
  for (const Json& row : results["rows"]) {
    if (row.value("id", "") == id) return &row;
  }
  return nullptr;
}

}  // namespace

std::string goodput_svg(const Json& results) {
  strait::plot::BarChart chart{.title = "Puts of 1 MiB over RoCEv2 packets (software NIC)",
                               .x_title = "packets lost on purpose, each way; thin lines: 10th to 90th percentile",
                               .y_title = "GB/s that arrive",
                               .bars = {},
                               .limit = 0,
                               .limit_label = "plain UDP, nothing lost, nothing checked"};
  std::vector<double> limits;
  for (const auto& [id, label] : {std::pair{"roce_1m_4096", "none"}, std::pair{"roce_loss_01", "0.1 %"},
                                  std::pair{"roce_loss_1", "1 %"}, std::pair{"roce_loss_5", "5 %"}}) {
    const Json* row = find_row(results, id);
    if (row == nullptr || !row->contains("strait") || !row->contains("peer")) return {};
    const Json& ours = (*row)["strait"];
    const double median = ours.value("median", 0.0);
    if (median <= 0) return {};
    chart.bars.push_back({label, median, ours.value("p10", median), ours.value("p90", median)});
    limits.push_back((*row)["peer"].value("median", 0.0));
  }
  std::sort(limits.begin(), limits.end());
  chart.limit = limits[limits.size() / 2];
  return strait::plot::bars_svg(chart);
}

std::string sweep_svg(const Json& results) {
  const Json* row = find_row(results, "sweep");
  return row == nullptr || !row->contains("sweep") ? std::string() : strait::versus::sweep_svg((*row)["sweep"]);
}

}  // namespace bench
