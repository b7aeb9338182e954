// SPDX-License-Identifier: Apache-2.0
// The rows of the table: what is compared with whom, what is to be reached, and what was predicted before the first
// run.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace bench {

enum class PeerKind {
  fabric,        // fabric_transfer
  ucx,           // ucx_transfer: UCX's library with our loops and places
  uct,           // uct_transfer: its transport layer, one copy by system call (cma), likewise
  ucx_perftest,  // always the same bytes; peer_options: its own words, and tls=NAMES, alloc=METHODS
  vm_copy,       // vm_copy: process_vm_readv, one copy by system call, nothing on top
  udp,           // udp_transfer: sockets on loopback, nothing on top
  memcpy,        // the same places, copied within one process
  beside,        // none of its own: strait's program measures the limit, too, in turn with what it measures of strait
};

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
  std::vector<std::string> program = {};    // somebody else's, unmodified, under `strait run` in place of our own
  std::string own = "strait_transfer";      // ours
};

std::span<const PairRow> pair_rows();
// A part of them: what processes of one host do by mapping, by copying and through the ring (rows_grants.cpp).
std::vector<PairRow> grant_rows();
// And what they do on a software Cassini (rows_cxi.cpp).
std::vector<PairRow> cxi_rows();

// What is counted rather than timed. For lookups, memory and idle time nobody wrote down a prediction before looking.
inline constexpr const char* kRcacheHitPrediction = "0.4 to 0.6 x";
inline constexpr const char* kRcacheMissPrediction = "none";
inline constexpr const char* kRcacheThreadsPrediction = "10 x";
inline constexpr const char* kInstructionsPrediction = "post + reap under 150";

}  // namespace bench
