// SPDX-License-Identifier: Apache-2.0
// The rows of the table: what is compared with whom, what is to be reached, and what was predicted before the first
// run.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace bench {

enum class PeerKind {
  fabric,      // fabric_transfer
  ucx_cma,     // ucx_perftest put_bw over cma: one copy by system call, as strait's owner does it
  vm_copy,     // vm_copy: process_vm_readv, one copy by system call, nothing on top
  udp,         // udp_transfer: sockets on loopback, nothing on top
  ucx_mapped,  // ucx_perftest ucp_put_bw over posix,cma: memory from UCX that both sides map, written with plain stores
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
};

std::span<const PairRow> pair_rows();

// What is counted rather than timed. For lookups, memory and idle time nobody wrote down a prediction before looking.
inline constexpr const char* kInstructionsPrediction = "post + reap under 150";

}  // namespace bench
