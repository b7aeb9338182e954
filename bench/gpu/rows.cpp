// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench::gpu {
namespace {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3f}", value);
}
std::string text_of(const Json& figure) {
  if (!figure.is_object() || !figure.contains("median")) return "-";
  return number(figure["median"].get<double>()) + " " + figure.value("unit", "");
}
std::string ratio_text(const Json& row) {
  if (!row.contains("ratio")) return "-";
  const Json& r = row["ratio"];
  return fmt::format("{:.2f} ({:.2f}..{:.2f})", r["median"].get<double>(), r["low"].get<double>(),
                     r["high"].get<double>());
}
std::string goal_text(const Json& row) {
  if (!row.contains("goal")) return "report";
  return fmt::format("{} {:g}", row["goal"]["better"] == "less" ? "<=" : ">=", row["goal"]["ratio"].get<double>());
}
std::string verdict(const Json& row) {
  if (row.contains("failed")) return "FAILED";
  if (!row.contains("reached")) return "";
  return row["reached"].get<bool>() ? "yes" : "NO";
}
std::string predicted(const Json& predictions, const std::string& id) {
  if (!predictions.contains(id)) return "-";
  const Json& p = predictions[id];
  if (p.contains("ratio")) return fmt::format("{:g}", p["ratio"].get<double>());
  return p.value("ours", "-");
}

}  // namespace

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}
Json spread(const std::vector<double>& values) {
  return {{"median", median(values)},   {"low", quantile(values, 0.25)}, {"high", quantile(values, 0.75)},
          {"min", quantile(values, 0)}, {"max", quantile(values, 1)},    {"values", values}};
}
std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) out.push_back(over[i] / under[i]);
  return out;
}

Json figure(const std::vector<double>& values, const std::string& unit) {
  Json out = spread(values);
  out["unit"] = unit;
  return out;
}

Json compared(const Row& row, const std::string& other_name, const Json& other, const Json& ours,
              const std::vector<double>& ratio, const Goal* goal) {
  Json out = {{"id", row.id}, {"what", row.what}, {"other_name", other_name}, {"other", other}, {"ours", ours}};
  if (!ratio.empty()) out["ratio"] = spread(ratio);
  if (goal == nullptr) return out;
  const bool less = goal->better == Better::less;
  out["goal"] = {{"ratio", goal->ratio}, {"better", less ? "less" : "more"}};
  if (!ratio.empty()) out["reached"] = less ? median(ratio) <= goal->ratio : median(ratio) >= goal->ratio;
  return out;
}

Json failed(const Row& row, const std::string& why) {
  return {{"id", row.id}, {"what", row.what}, {"failed", why}};
}

std::string table_text(const Json& results, const Json& predictions) {
  std::string out = fmt::format("{}\n\n", results.value("gpu", ""));
  out += fmt::format("{:<44} {:<28} {:<12} {:<19} {:<8} {:<9} {}\n", "what", "beside", "ours", "ratio (quartiles)",
                     "to reach", "predicted", "reached");
  for (const Json& row : results["rows"]) {
    const std::string id = row["id"];
    if (row.contains("failed")) {
      out += fmt::format("{:<44} FAILED: {}\n", row["what"].get<std::string>(), row["failed"].get<std::string>());
      continue;
    }
    const std::string beside = row.value("other_name", "") + " " + text_of(row.value("other", Json()));
    out += fmt::format("{:<44} {:<28} {:<12} {:<19} {:<8} {:<9} {}\n", row["what"].get<std::string>(), beside,
                       text_of(row.value("ours", Json())), ratio_text(row), goal_text(row), predicted(predictions, id),
                       verdict(row));
    if (row.contains("note")) out += fmt::format("    {}\n", row["note"].get<std::string>());
  }
  for (const Json& what : results.value("left_out", Json::array()))
    out += fmt::format("left out: {}\n", what.get<std::string>());
  return out;
}

bool all_reached(const Json& results) {
  return std::all_of(results["rows"].begin(), results["rows"].end(),
                     [](const Json& row) { return !row.contains("failed") && row.value("reached", true); });
}

}  // namespace bench::gpu
