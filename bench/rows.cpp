// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <algorithm>
#include <iterator>

namespace bench {
namespace {

constexpr const char* kFabric = "libfabric shm";
constexpr const char* kUcxCma = "UCX cma";
constexpr const char* kPerftestCma = "ucx_perftest, cma";
constexpr const char* kUcxMapped = "UCX posix,cma, its memory";

struct Size {
  const char* bytes;
  const char* window;
  double noted;  // UCX by cma
};
constexpr Size k64K{"65536", "8", 16.8};
constexpr Size k1M{"1048576", "4", 14.6};
constexpr Size k16M{"16777216", "2", 8.1};

constexpr char kByRing[] = "grant=ring";  // these rows are about rings, doorbells and the owner's checks

// One copy by system call between private memories.
PairRow against_cma(const char* id, const char* title, const char* prediction, const Size& size, double goal,
                    std::vector<std::string> strait_options = {}) {
  strait_options.push_back(kByRing);
  return {id,
          title,
          "GB/s",
          false,
          goal,
          PeerKind::uct,
          kUcxCma,
          size.noted,
          prediction,
          {"bandwidth", "--size", size.bytes, "--window", size.window},
          std::move(strait_options),
          {"huge=1"},
          goal == 0};
}

// The same by UCX's own program, which always moves the same bytes, and so do we.
PairRow in_one_place(const char* id, const char* title, const char* prediction, const Size& size) {
  PairRow row = against_cma(id, title, prediction, size, 0, {"--one-place", "1"});
  row.peer = PeerKind::ucx_perftest;
  row.peer_title = kPerftestCma;
  row.peer_options = {"-t", "put_bw", "-d", "memory", "-x", "cma", "-D", "zcopy"};
  return row;
}

// Memory from UCX that both sides map, written with plain stores.
PairRow against_mapping(const char* id, const char* title, const Size& size) {
  return {id,         title,
          "GB/s",     false,
          0,          PeerKind::ucx,
          kUcxMapped, 0,
          "none",     {"bandwidth", "--size", size.bytes, "--window", size.window},
          {},         {"tls=posix,cma,self"},
          true};
}

PairRow small(const char* id, const char* title, const char* unit, double goal, double noted, const char* prediction,
              std::vector<std::string> workload, std::vector<std::string> strait_options) {
  const bool latency = workload.front() == "latency";
  strait_options.push_back(kByRing);
  return {id,
          title,
          unit,
          latency,
          goal,
          PeerKind::fabric,
          kFabric,
          noted,
          prediction,
          std::move(workload),
          std::move(strait_options),
          {},
          goal == 0};
}

// Packets: beside what plain UDP sockets do in the same run.
PairRow over_packets(const char* id, const char* title, const char* unit, double goal, double noted,
                     const char* prediction, std::vector<std::string> workload, std::vector<std::string> strait_options,
                     const char* segment) {
  const bool latency = workload.front() == "latency";
  strait_options.emplace_back("carrier=roce");
  return {id,
          title,
          unit,
          latency,
          goal,
          PeerKind::udp,
          latency                      ? "UDP, both polling"
          : workload.front() == "rate" ? "UDP mmsg, 1 KiB"
                                       : "UDP GSO and GRO",
          noted,
          prediction,
          std::move(workload),
          std::move(strait_options),
          {std::string("segment=") + segment},
          goal == 0};
}

// Somebody else's verbs program on the software NIC, beside what the system calls under it do.
PairRow unmodified(const char* id, const char* title, double goal, PeerKind peer, double noted, const char* prediction,
                   std::vector<std::string> workload, std::vector<std::string> strait_options,
                   std::vector<std::string> program, std::vector<std::string> peer_options = {}) {
  const bool latency = workload.front() == "latency";
  return {id,
          title,
          latency ? "us" : "GB/s",
          latency,
          goal,
          peer,
          peer == PeerKind::vm_copy ? "process_vm_readv"
          : latency                 ? "UDP, both polling"
                                    : "UDP GSO and GRO",
          noted,
          prediction,
          std::move(workload),
          std::move(strait_options),
          std::move(peer_options),
          goal == 0,
          std::move(program)};
}

// Not strait: what is left when nothing is checked, beside the same peer.
PairRow bare_ring(const char* id, const char* title, const char* prediction) {
  PairRow row = small(id, title, "us", 0, 0.57, prediction, {"latency"}, {});
  row.own = "bare_ring";
  return row;
}

PairRow delivered(PairRow row) {
  row.peer_title = "libfabric shm, delivery complete";
  row.peer_options = {"delivery=1"};
  return row;
}

const std::vector<PairRow>& table() {
  static const std::vector<std::string> rate = {"rate", "--window", "128"};
  static const std::vector<std::string> large = {"bandwidth", "--size", "1048576", "--window", "4"};
  static const std::vector<PairRow> rows = {
      small("put8_latency", "8 B put, one way", "us", 0.5, 0.57, "0.20 us, 0.35 x", {"latency"}, {"lane=peer"}),
      small("put8_rate", "8 B puts, window 128, one lane", "M/s", 1.0, 10, "12 M/s, 1.2 x", rate, {}),
      against_cma("put_64k", "put 64 KiB", "1.0 x", k64K, 1.0),
      against_cma("put_1m", "put 1 MiB", "1.0 x", k1M, 1.0),
      against_cma("put_16m", "put 16 MiB", "1.1 x", k16M, 1.0),
      over_packets("roce_1m_4096", "packets: put 1 MiB, PMTU 4096", "GB/s", 0.4, 7.3, "0.45 x", large, {"mtu=4096"},
                   "4168"),
      over_packets("roce_1m_1024", "packets: put 1 MiB, PMTU 1024", "GB/s", 0.25, 7.1, "0.3 x", large, {"mtu=1024"},
                   "1096"),
      over_packets("roce_8_latency", "packets: 8 B put, one way", "us", 2.0, 2.15, "1.4 x", {"latency"}, {"lane=peer"},
                   "8"),
      over_packets("roce_8_rate", "packets: 8 B puts, 64 in flight", "M/s", 0, 0.455, "0.5 x",
                   {"rate", "--window", "64"}, {}, "1024"),
      over_packets("roce_8_rate_100", "packets: the same, 100 queue pairs", "M/s", 0, 0, "1.0 of one",
                   {"rate", "--window", "64"}, {"lanes=100", "depth=16"}, "1024"),
      over_packets("roce_8_rate_10000", "packets: the same, 10 000 queue pairs", "M/s", 0, 0, "0.7 of one",
                   {"rate", "--window", "64"}, {"lanes=10000", "depth=16"}, "1024"),
      over_packets("roce_loss_01", "packets: put 1 MiB, 0.1 % lost", "GB/s", 0, 0, "0.9 of none lost", large,
                   {"mtu=4096", "faults=drop=0.1%,seed=7"}, "4168"),
      over_packets("roce_loss_1", "packets: put 1 MiB, 1 % lost", "GB/s", 0, 0, "0.5 of none lost", large,
                   {"mtu=4096", "faults=drop=1%,seed=7"}, "4168"),
      over_packets("roce_loss_5", "packets: put 1 MiB, 5 % lost", "GB/s", 0, 0, "0.1 of none lost", large,
                   {"mtu=4096", "faults=drop=5%,seed=7"}, "4168"),
      unmodified("verbs_write_64k", "ib_write_bw 64 KiB", 0.4, PeerKind::vm_copy, 16.6, "0.3 x",
                 {"bandwidth", "--size", "65536"}, {}, {"ib_write_bw", "-s", "65536", "-n", "20000"}),
      unmodified("verbs_write_1m", "ib_write_bw 1 MiB", 0.4, PeerKind::vm_copy, 14.1, "0.3 x",
                 {"bandwidth", "--size", "1048576"}, {}, {"ib_write_bw", "-s", "1048576", "-n", "2000"}),
      unmodified("verbs_write_64k_packets", "ib_write_bw 64 KiB, packets", 0.3, PeerKind::udp, 7.3, "0.35 x",
                 {"bandwidth", "--size", "65536"}, {"carrier=roce"},
                 {"ib_write_bw", "-s", "65536", "-n", "20000", "-m", "4096"}, {"segment=4168"}),
      unmodified("verbs_send_lat", "ib_send_lat 8 B", 0.6, PeerKind::udp, 2.2, "0.6 x", {"latency"}, {},
                 {"ib_send_lat", "-s", "8", "-n", "20000"}, {"segment=8"}),
      unmodified("verbs_send_lat_packets", "ib_send_lat 8 B, packets", 2.0, PeerKind::udp, 2.2, "2 x", {"latency"},
                 {"carrier=roce"}, {"ib_send_lat", "-s", "8", "-n", "20000"}, {"segment=8"}),
      unmodified("verbs_write_lat", "ib_write_lat 8 B (spins on memory)", 0, PeerKind::udp, 2.2, "none", {"latency"},
                 {}, {"ib_write_lat", "-s", "8", "-n", "2000"}, {"segment=8"}),
      unmodified("verbs_write_lat_background", "the same, with --background", 3.0, PeerKind::udp, 2.2, "5 x",
                 {"latency"}, {"background=1"}, {"ib_write_lat", "-s", "8", "-n", "2000"}, {"segment=8"}),
      unmodified("verbs_write_lat_trap", "the same, with --trap-doorbells too", 3.0, PeerKind::udp, 2.2, "2 x",
                 {"latency"}, {"background=1", "trap_doorbells=1"}, {"ib_write_lat", "-s", "8", "-n", "2000"},
                 {"segment=8"}),
      small("put8_latency_lane", "8 B put, a lane each", "us", 0, 0.57, "0.25 us: acknowledgements travel alone",
            {"latency"}, {"lane=own"}),
      bare_ring("put8_latency_bare", "8 B put, a ring that checks nothing", "0.20 us, 0.5 x"),
      delivered(small("put8_latency_delivery", "8 B put, peer when delivered", "us", 0, 0, "0.20 us, 0.3 x",
                      {"latency"}, {"lane=peer"})),
      small("put8_rate_sparse", "8 B puts, every 32nd signaled", "M/s", 0, 10, "15 M/s, 1.5 x", rate,
            {"signal_every=32"}),
      in_one_place("put_64k_place", "put 64 KiB, same bytes", "1.0 x", k64K),
      in_one_place("put_1m_place", "put 1 MiB, same bytes", "1.0 x", k1M),
      in_one_place("put_16m_place", "put 16 MiB, same bytes", "1.2 x", k16M),
      against_mapping("put_64k_mapped", "put 64 KiB, peer by mapping", k64K),
      against_mapping("put_1m_mapped", "put 1 MiB, peer by mapping", k1M),
      against_mapping("put_16m_mapped", "put 16 MiB, peer by mapping", k16M),
      against_cma("put_1m_malloc", "put 1 MiB, malloc'ed memory", "as put_1m", k1M, 0, {"memory=malloc"}),
      against_cma("put_1m_soft", "put 1 MiB, soft:0 (software)", "as put_1m", k1M, 0, {"memory=soft:0"}),
  };
  return rows;
}

}  // namespace

std::span<const PairRow> pair_rows() {
  static const std::vector<PairRow> all = [] {
    std::vector<PairRow> rows = table();
    for (std::vector<PairRow> more : {grant_rows(), cxi_rows()})
      std::move(more.begin(), more.end(), std::back_inserter(rows));
    return rows;
  }();
  return all;
}

}  // namespace bench
