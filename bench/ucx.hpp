// SPDX-License-Identifier: Apache-2.0
// UCX as a peer: ucx_perftest, server and client on this host.
#pragma once

#include "measure.hpp"

namespace bench {

// row.peer_options are words for the client (-t ucp_put_bw); tls=NAMES for UCX_TLS, alloc=METHODS for
// UCX_CMA_ALLOC (by itself it takes huge pages); later=1 where Debian's is no peer.
// The row's unit says which figure is meant.
Figure run_ucx(const Setup& setup, const PairRow& row, const Workload& workload);

// Empty: it can be run.
std::string why_no_ucx(const Setup& setup, const PairRow& row);

}  // namespace bench
