// SPDX-License-Identifier: Apache-2.0
// What processes used, and how often they were made to wait.
#pragma once

namespace strait::sys {

struct Usage {
  double cpu_s = 0;
  double switches = 0;  // times that a process lost its CPU while it still wanted it
};

// Of the children of this process that have ended and were waited for, and of theirs.
[[nodiscard]] Usage usage_of_children();

}  // namespace strait::sys
