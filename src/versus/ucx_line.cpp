// SPDX-License-Identifier: Apache-2.0
#include "versus/ucx_line.hpp"

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace strait::versus {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line);
  for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
  return cells;
}

// 0: not a figure.
double figure(const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  return end != cell.c_str() && *end == '\0' && std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

std::optional<UcxLine> read_ucx_line(const std::string& out) {
  std::vector<std::string> names;
  std::vector<std::string> figures;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("iterations,")) {
      names = cells_of(line);
      figures.clear();
    } else if (!names.empty() && !line.empty()) {
      figures = cells_of(line);
    }
  }
  if (names.empty() || figures.size() != names.size()) return std::nullopt;
  const auto named = [&](const char* name) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return figure(figures[i]);
    }
    return 0.0;
  };
  const UcxLine line{named("iterations"), named("overall_lat"), named("overall_bw"), named("overall_mr")};
  if (line.iterations == 0 || line.latency_us == 0 || line.mib_per_s == 0 || line.messages_per_s == 0)
    return std::nullopt;
  return line;
}

}  // namespace strait::versus
