// SPDX-License-Identifier: Apache-2.0
// Where the lines of a logarithmic axis are.
#pragma once

#include <vector>

namespace strait::plot {

struct Tick {
  double value = 1;
  bool labelled = true;
};

struct Range {
  double low = 1;
  double high = 1;
};

// 1, 2 and 5 times powers of ten, from at or below the least value to at or above the greatest. Few decades: all have
// labels; many: the powers only. Values must be above 0.
[[nodiscard]] std::vector<Tick> decimal_ticks(Range values);
// Powers of two that are among what was measured and far enough apart for their labels: at most `most`.
[[nodiscard]] std::vector<Tick> size_ticks(std::vector<double> sizes, std::size_t most);
// 0, and steps of 1, 2 or 5 times a power of ten up to at or above the greatest value.
[[nodiscard]] std::vector<Tick> linear_ticks(double greatest);

}  // namespace strait::plot
