// SPDX-License-Identifier: Apache-2.0
// What ucx_perftest prints with -f -v: a line of names, a line of figures.
#pragma once

#include <optional>
#include <string>

namespace strait::versus {

struct UcxLine {
  double iterations;
  double latency_us;      // overall; half a round trip in the ping-pong tests
  double mib_per_s;       // overall
  double messages_per_s;  // overall
};

// Figures are taken by the names above them. Nothing when a name is missing, or when a figure is no number over 0.
std::optional<UcxLine> read_ucx_line(const std::string& out);

}  // namespace strait::versus
