// SPDX-License-Identifier: Apache-2.0
// A row of the table: figures in pairs, a goal, what was predicted. Rows are JSON from the start; the table is made
// from that.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench::gpu {

using Json = nlohmann::json;

enum class Better { less, more };
struct Goal {
  double ratio;
  Better better;
};

struct Row {
  std::string id;
  std::string what;
};

double median(std::vector<double> values);
// {"median", "low", "high"}: the quartiles around it.
Json spread(const std::vector<double>& values);
std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under);

// A figure with its unit: "1.21 us", "12.8 M/s".
Json figure(const std::vector<double>& values, const std::string& unit);
Json compared(const Row& row, const std::string& other_name, const Json& other, const Json& ours,
              const std::vector<double>& ratio, const Goal* goal);
// It could not be measured, and why.
Json failed(const Row& row, const std::string& why);

// 120 columns at most, plain text. `predictions`: by row id, {"ratio", "ours", "why"}.
std::string table_text(const Json& results, const Json& predictions);
bool all_reached(const Json& results);

}  // namespace bench::gpu
