// SPDX-License-Identifier: Apache-2.0
// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace strait::plot {

[[nodiscard]] std::string size_text(std::uint64_t bytes);  // "16 MiB", "8 B", "1000 B"
// Three digits that count, never an exponent: "0.251", "12.3", "4170"; what is too small for a column is "<0.001".
[[nodiscard]] std::string figure_text(double value);

}  // namespace strait::plot
