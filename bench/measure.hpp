// SPDX-License-Identifier: Apache-2.0
// Runs the rows: pairs against peers, counts, footprints. Answers are JSON, from which every table is made.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rows.hpp"

namespace bench {

// What one program measured once.
struct Figure {
  bool ok = false;
  double value = 0;
  std::string problem;
  std::string path;
};

struct Setup {
  std::string strait;    // the tool
  std::string programs;  // folder of strait_transfer and the others
  std::string scripts;   // folder of count_instructions.sh
  int pairs = 10;
  int milliseconds = 300;  // of each timed part
  bool quick = false;
  int cpu[2] = {0, 1};
  std::function<void(const std::string&)> say;  // how far it is
};

// median, p10 and p90 of values; null when there are none.
nlohmann::json spread_of(std::vector<double> values);

nlohmann::json measure_pairs(const Setup& setup, const PairRow& row);
nlohmann::json measure_instructions(const Setup& setup);
nlohmann::json measure_lookup(const Setup& setup);
nlohmann::json measure_footprint(const Setup& setup);

}  // namespace bench
