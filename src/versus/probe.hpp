// SPDX-License-Identifier: Apache-2.0
// How still the machine is: what a cache line takes from one CPU to another, before and after.
#pragma once

#include "base/error.hpp"

namespace strait::versus {

struct Cpus {
  int initiator = 0;  // the kernel's numbers
  int owner = 1;
};

// Nanoseconds for one hand-over: two threads hand a line to and fro. An error when a CPU may not be used, or when the
// two do not get to run.
[[nodiscard]] Result<double> line_ns(const Cpus& cpus);

// The state of the machine around one pair of runs.
struct Calm {
  double line_ns_before = 0;
  double line_ns_after = 0;
  double switches_per_s = 0;  // how often the programs lost their CPU, per second of CPU time

  [[nodiscard]] bool line_moved() const;
  [[nodiscard]] bool lost_cpu() const;
  [[nodiscard]] bool enough() const { return !line_moved() && !lost_cpu(); }
};

}  // namespace strait::versus
