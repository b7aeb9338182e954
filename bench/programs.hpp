// SPDX-License-Identifier: Apache-2.0
// Figures of other people's programs, run unmodified on the software NIC by `strait run`.
#pragma once

#include "measure.hpp"

namespace bench {

// perftest, as server and client on this host. Bandwidth in GB/s, latency in us (the typical one).
Figure run_program(const Setup& setup, const PairRow& row);
// Empty: it can be run.
std::string why_no_program(const PairRow& row);

}  // namespace bench
