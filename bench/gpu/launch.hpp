// SPDX-License-Identifier: Apache-2.0
// launch_send_wqe + launch_db_ring, from the host: those of strait/rdmaxcel.h beside RDMaxcel's.
#pragma once

#include "post.hpp"

namespace bench::gpu {

// Nanoseconds of one pair of calls by the host's clock; `bare` stays empty. RDMaxcel's launch_send_wqe waits for the
// whole device and ours for nothing: `waited` has ours wait for its stream after each pair, so that both end the same
// way.
Launches launch_pairs(bool waited, unsigned launches);

}  // namespace bench::gpu
