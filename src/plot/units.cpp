// SPDX-License-Identifier: Apache-2.0
#include "plot/units.hpp"

#include <fmt/format.h>

#include <cmath>

namespace strait::plot {

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  if (bytes < 10'000) return fmt::format("{} {}", bytes, kUnits[unit]);
  // Odd ones are rounded once their digits say nothing to a reader.
  auto rounded = static_cast<double>(bytes);
  for (; unit < 4 && rounded >= 1024; ++unit) rounded /= 1024;
  return fmt::format("{:.1f} {}", rounded, kUnits[unit]);
}

std::string figure_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  if (size >= 0.09995) return fmt::format("{:.3f}", value);
  return size >= 0.001 ? fmt::format("{:.4f}", value) : "<0.001";
}

}  // namespace strait::plot
