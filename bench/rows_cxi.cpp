// SPDX-License-Identifier: Apache-2.0
// The rows of a software Cassini that two processes share, beside libfabric's shm provider. Predictions add up what a
// put does on either side; they were made after first runs on a busy machine, and before any on a quiet one.
#include "rows.hpp"

namespace bench {
namespace {

PairRow on_cassini(const char* id, const char* title, double goal, double noted, const char* prediction,
                   std::vector<std::string> workload, std::vector<std::string> options = {},
                   std::vector<std::string> peer_options = {}) {
  const bool latency = workload.front() == "latency";
  return {id,
          title,
          latency ? "us" : "GB/s",
          latency,
          goal,
          PeerKind::fabric,
          peer_options.empty() ? "libfabric shm" : "libfabric shm, delivery complete",
          noted,
          prediction,
          std::move(workload),
          std::move(options),
          std::move(peer_options),
          goal == 0,
          {},
          "cxi_transfer"};
}

}  // namespace

std::vector<PairRow> cxi_rows() {
  const std::vector<std::string> of_64k = {"bandwidth", "--size", "65536", "--window", "8"};
  const std::vector<std::string> of_1m = {"bandwidth", "--size", "1048576", "--window", "4"};
  return {
      on_cassini("cxi_put8", "CXI: 8 B put, until its counting event", 1.0, 0.57, "0.55 us, 1.0 x", {"latency"}),
      on_cassini("cxi_put_64k", "CXI: put 64 KiB", 1.5, 8.0, "12 GB/s, 1.5 x", of_64k),
      on_cassini("cxi_put_1m", "CXI: put 1 MiB", 1.5, 4.3, "9 GB/s, 2 x", of_1m),
      on_cassini("cxi_put8_delivery", "CXI: 8 B put, peer when delivered", 0, 0, "0.6 x", {"latency"}, {},
                 {"delivery=1"}),
      on_cassini("cxi_put_64k_copied", "CXI: put 64 KiB, memory by system calls", 0, 8.0, "6 GB/s: two calls each",
                 of_64k, {"direct=0"}),
      on_cassini("cxi_put_1m_copied", "CXI: put 1 MiB, memory by system calls", 0, 4.3, "5 GB/s", of_1m, {"direct=0"}),
  };
}

}  // namespace bench
