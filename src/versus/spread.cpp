// SPDX-License-Identifier: Apache-2.0
#include "versus/spread.hpp"

#include <algorithm>

namespace strait::versus {

std::optional<Spread> spread_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double where = part * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(where);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (where - static_cast<double>(low));
  };
  return Spread{at(0.5), at(0.1), at(0.9), values.size()};
}

}  // namespace strait::versus
