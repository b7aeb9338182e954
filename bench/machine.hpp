// SPDX-License-Identifier: Apache-2.0
// What this machine's memory can do.
#pragma once

#include "workload.hpp"

namespace bench {

// GB/s of memcpy with the workload's sizes and places, on one CPU.
double memcpy_rate(const Workload& workload);

}  // namespace bench
