// SPDX-License-Identifier: Apache-2.0
// A plan as a table for people and as JSON for programs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/planner.hpp"

namespace strait::plan {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kIndent = 4;  // "  1 "
constexpr std::size_t kLabel = 28;
constexpr std::size_t kVerdict = 6;

// Lines of at most `width`, broken at spaces; a word that is longer than a line is cut.
std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == std::string_view::npos || end == 0) end = width;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.emplace_back(text);
  return lines;
}

// "4.1 us + 2.9 GB/s"; what rounds to nothing gets another digit.
std::string cost_text(const Cost& cost) {
  const char* const how = cost.measured ? "" : "estimated ";
  const auto figure = [](double value) {
    return value < 0.95 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
  };
  return fmt::format("{}{} us + {} GB/s", how, figure(cost.latency_us), figure(cost.gb_s));
}

}  // namespace

std::string to_text(const Plan& plan) {
  const std::string route = fmt::format("{} -> {}", plan.from, plan.to);
  const std::string choice = "chosen: " + (plan.chosen ? plan.ways[*plan.chosen].name : "none");
  std::string out;
  if (route.size() + 2 + choice.size() <= kColumns) {
    out = fmt::format("{}  {}\n", route, choice);
  } else {
    for (const std::string& line : wrap(route, kColumns)) out += line + "\n";
    for (const std::string& line : wrap(choice, kColumns - 2)) out += "  " + line + "\n";
  }
  std::size_t number = 0;
  for (const Way& way : plan.ways) {
    const auto labels = wrap(way.nic.empty() ? way.label : fmt::format("{}, {}", way.label, way.nic), kLabel - 1);
    constexpr std::size_t kRest = kColumns - kIndent - kLabel - kVerdict;
    const bool priced = way.cost.known() && way.verdict != Verdict::no;
    auto reasons = wrap(way.reason + (priced ? ":" : ""), kRest);
    if (priced) {  // figures stay together
      const std::string cost = cost_text(way.cost);
      if (reasons.back().size() + 1 + cost.size() <= kRest) {
        reasons.back() += " " + cost;
      } else {
        reasons.push_back(cost);
      }
    }
    ++number;
    for (std::size_t i = 0; i < std::max(labels.size(), reasons.size()); ++i) {
      const std::string line =
          fmt::format("{:>3} {:<28}{:<6}{}", i == 0 ? std::to_string(number) : "", i < labels.size() ? labels[i] : "",
                      i == 0 ? verdict_name(way.verdict) : "", i < reasons.size() ? reasons[i] : "");
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return out;
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json ways = nlohmann::json::array();
  for (const Way& way : plan.ways) {
    nlohmann::json row{
        {"kind", kind_name(way.kind)},          {"name", way.name},    {"label", way.label}, {"nic", way.nic},
        {"verdict", verdict_name(way.verdict)}, {"reason", way.reason}};
    row["cost"] = nullptr;
    if (way.cost.known()) {
      row["cost"] = {{"latency_us", way.cost.latency_us},
                     {"gb_per_s", way.cost.gb_s},
                     {"origin", way.cost.measured ? "measured" : "estimated"},
                     {"basis", way.cost.basis}};
    }
    ways.push_back(std::move(row));
  }
  nlohmann::json out{{"from", plan.from}, {"to", plan.to}, {"ways", std::move(ways)}};
  out["chosen"] = nullptr;
  if (plan.chosen) out["chosen"] = *plan.chosen;
  return out;
}

}  // namespace strait::plan
