// SPDX-License-Identifier: Apache-2.0
// The rows of the table: what is compared with whom, what is to be reached, and what was predicted before the first
// run.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace bench {

enum class PeerKind { fabric, ucx };

// One comparison, measured in pairs.
struct PairRow {
  const char* id;
  const char* title;
  const char* unit;
  bool lower_is_better;
  double goal;  // of the ratio strait / peer; 0: none, the row is there to explain another
  PeerKind peer;
  const char* peer_title;
  double noted;  // the peer's figure seen on the reference machine, 0: none
  const char* prediction;
  std::vector<std::string> workload;        // both
  std::vector<std::string> strait_options;  // strait_transfer only
  std::vector<std::string> peer_options;    // the peer only
  bool extra;                               // not part of the short table
};

std::span<const PairRow> pair_rows();

// What is counted rather than timed.
inline constexpr const char* kInstructionsPrediction = "post + reap under 150";
inline constexpr const char* kFootprintPrediction = "region under 1 KiB, queue pair of depth 256 under 128 KiB";
inline constexpr const char* kLookupPrediction =
    "2 lines a lookup in the cache, 1 in the key table, whatever the number";
inline constexpr const char* kIdlePrediction = "under 0.1 % of a core";

}  // namespace bench
