// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

namespace bench {
namespace {

constexpr const char* kFabric = "libfabric shm";
constexpr const char* kUcx = "UCX put_bw posix,cma";

PairRow bandwidth(const char* id, const char* title, double noted, const char* prediction, const char* size,
                  const char* window, std::vector<std::string> strait_options, bool extra) {
  std::vector<std::string> workload = {"bandwidth", "--size", size, "--window", window};
  return {id,
          title,
          "GB/s",
          false,
          extra ? 0 : 1.0,
          PeerKind::ucx,
          kUcx,
          noted,
          prediction,
          std::move(workload),
          std::move(strait_options),
          {},
          extra};
}

const std::vector<PairRow>& table() {
  static const std::vector<PairRow> rows = {
      {"put8_latency",
       "8 B put, one way",
       "us",
       true,
       0.5,
       PeerKind::fabric,
       kFabric,
       0.57,
       "0.20 us, 0.35 x",
       {"latency"},
       {"lane=peer"},
       {},
       false},
      {"put8_latency_lane",
       "8 B put, one way, a lane each",
       "us",
       true,
       0,
       PeerKind::fabric,
       kFabric,
       0.57,
       "0.25 us: acknowledgements travel alone",
       {"latency"},
       {"lane=own"},
       {},
       true},
      {"put8_latency_delivery",
       "8 B put, one way, peer completes when delivered",
       "us",
       true,
       0,
       PeerKind::fabric,
       "libfabric shm, delivery complete",
       0,
       "0.20 us, 0.3 x",
       {"latency"},
       {"lane=peer"},
       {"delivery=1"},
       true},
      {"put8_rate",
       "8 B puts, window 128, one lane",
       "M/s",
       false,
       1.0,
       PeerKind::fabric,
       kFabric,
       10,
       "12 M/s, 1.2 x",
       {"rate", "--window", "128"},
       {},
       {},
       false},
      {"put8_rate_sparse",
       "8 B puts, window 128, every 32nd signaled",
       "M/s",
       false,
       0,
       PeerKind::fabric,
       kFabric,
       10,
       "15 M/s, 1.5 x",
       {"rate", "--window", "128"},
       {"signal_every=32"},
       {},
       true},
      bandwidth("put_64k", "put 64 KiB", 16.8, "1.0 x", "65536", "8", {}, false),
      bandwidth("put_1m", "put 1 MiB", 14.6, "1.0 x", "1048576", "4", {}, false),
      bandwidth("put_16m", "put 16 MiB", 8.1, "1.1 x", "16777216", "2", {}, false),
      bandwidth("put_64k_place", "put 64 KiB, always the same bytes", 16.8, "1.0 x", "65536", "8", {"--one-place", "1"},
                true),
      bandwidth("put_1m_place", "put 1 MiB, always the same bytes", 14.6, "1.0 x", "1048576", "4", {"--one-place", "1"},
                true),
      bandwidth("put_16m_place", "put 16 MiB, always the same bytes", 8.1, "1.2 x", "16777216", "2",
                {"--one-place", "1"}, true),
      bandwidth("put_1m_malloc", "put 1 MiB, malloc'ed memory", 14.6, "as put_1m", "1048576", "4", {"memory=malloc"},
                true),
      bandwidth("put_1m_soft", "put 1 MiB, soft:0 memory (software)", 14.6, "as put_1m", "1048576", "4",
                {"memory=soft:0"}, true),
  };
  return rows;
}

}  // namespace

std::span<const PairRow> pair_rows() {
  return table();
}

}  // namespace bench
