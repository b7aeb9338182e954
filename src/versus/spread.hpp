// SPDX-License-Identifier: Apache-2.0
// Many values as three: what is typical, and between what the middle eight of ten lie.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace strait::versus {

struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  std::size_t n = 0;
};

// None of nothing. Between two values it takes the share of the way.
[[nodiscard]] std::optional<Spread> spread_of(std::vector<double> values);

}  // namespace strait::versus
