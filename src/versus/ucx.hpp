// SPDX-License-Identifier: Apache-2.0
// ucx_perftest as Debian ships it, server and client on this host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "versus/probe.hpp"
#include "versus/ucx_line.hpp"

namespace strait::versus {

struct UcxRun {
  std::string program = "ucx_perftest";
  std::vector<std::string> test;  // "-t", "ucp_put_bw" and what goes with it
  std::string transports;         // UCX_TLS; empty: not set
  std::string allocation = {};    // UCX_CMA_ALLOC: where cma's memory comes from; empty: not set
  std::uint64_t bytes = 8;
  std::uint64_t count = 1000;  // operations in the timed part
  Cpus cpus = {};
  std::int64_t deadline_ns = 120'000'000'000;
};

[[nodiscard]] Result<UcxLine> run_ucx(const UcxRun& run);

}  // namespace strait::versus
