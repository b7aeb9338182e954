// SPDX-License-Identifier: Apache-2.0
// The machine a figure comes from, and how it feels right now.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workload.hpp"

namespace bench {

// Nanoseconds one cache line takes from one CPU to another: two threads hand it to and fro.
double line_ns(int cpu_a, int cpu_b);
double load_average();
// CPU, kernel, memory, compiler, versions of strait and of the peers.
nlohmann::json describe_machine();
// GB/s of memcpy with the workload's sizes and places, on one CPU.
double memcpy_rate(const Workload& workload);

}  // namespace bench
