// SPDX-License-Identifier: Apache-2.0
// Runs the rows: pairs against peers, counts, footprints. Answers are JSON, from which every table is made.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rows.hpp"
#include "versus/pairs.hpp"
#include "workload.hpp"

namespace bench {

using Figure = strait::versus::Figure;

struct Setup {
  std::string strait;      // the tool
  std::string programs;    // folder of strait_transfer and the others
  std::string scripts;     // folder of count_instructions.sh
  std::string ucx;         // ucx_perftest; empty: there is none
  bool ucx_named = false;  // by --ucx
  int pairs = 10;
  int milliseconds = 300;  // of each timed part
  bool quick = false;
  int cpu[2] = {0, 1};
  std::function<void(const std::string&)> say;  // how far it is
};

nlohmann::json measure_pairs(const Setup& setup, const PairRow& row);
nlohmann::json measure_instructions(const Setup& setup);
nlohmann::json measure_lookup(const Setup& setup);
nlohmann::json measure_rcache(const Setup& setup);
nlohmann::json measure_footprint(const Setup& setup);
// Latency and bandwidth over size, as `strait perf --compare` has them.
nlohmann::json measure_sweep(const Setup& setup);

}  // namespace bench
