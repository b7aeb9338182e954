// SPDX-License-Identifier: Apache-2.0
// What strait holds and burns when nothing moves: bytes per region and per queue pair, CPU time of an idle Node.
//
//   footprint [IDLE_SECONDS [REGIONS [LANES]]]    prints one line of JSON
//
// Memory is counted as the growth of resident pages (which includes what the software NIC and its rings take) and of
// malloc's books. Two processes, connected, progress by the Nodes' own threads.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>
#include <strait/strait.hpp>

#include <chrono>
#include <memory>
#include <thread>

#include "workload.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

struct Held {
  double resident = 0;
  double heap = 0;
};

Held held_now() {
  const struct mallinfo2 heap = mallinfo2();
  return {resident_bytes(), static_cast<double>(heap.uordblks) + static_cast<double>(heap.hblkhd)};
}

Held per(const Held& before, const Held& after, std::uint64_t count) {
  const auto n = static_cast<double>(count);
  return {(after.resident - before.resident) / n, (after.heap - before.heap) / n};
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Regions {
  Held each;
  double share_us = 0;
};

// Regions of one page each; the pages themselves are touched before counting starts.
Regions measure_regions(strait::Node& node, std::uint64_t count, strait::access::Access rights) {
  auto memory = node.allocate(count * 4096).value();
  std::memset(memory.data(), 1, memory.size());
  std::vector<strait::Region> regions;
  regions.reserve(count + 1);
  regions.push_back(node.share(memory.data(), 4096, rights).value());  // the allocation's own registration
  const Held before = held_now();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    regions.push_back(node.share(static_cast<char*>(memory.data()) + i * 4096, 4096, rights).value());
  }
  const double took = static_cast<double>(now_ns() - start);
  return {per(before, held_now(), count), took / 1e3 / static_cast<double>(count)};
}

void owner(Meeting* meeting) {
  auto node = strait::Node::open().value();
  std::snprintf(meeting->name[1], sizeof meeting->name[1], "%s", node.address().c_str());
  meet(meeting, 1);
  auto peer = node.accept(10s).value();
  const Held before = held_now();
  meet(meeting, 1);  // lanes are being opened
  meet(meeting, 1);  // all are
  const Held each = per(before, held_now(), meeting->count.load());
  meeting->base[1][0] = static_cast<std::uint64_t>(std::max(each.resident, 0.0));
  meet(meeting, 1);
}

void initiator(Meeting* meeting, double idle_seconds, std::uint64_t n_regions, std::uint64_t n_lanes) {
  const Held bare = held_now();
  auto node = strait::Node::open().value();
  const Held with_node = held_now();
  const Regions local = measure_regions(node, n_regions, strait::access::local);
  const Regions remote = measure_regions(node, n_regions, strait::access::remote_write);
  meet(meeting, 0);
  auto peer = node.connect(meeting->name[1], {.deadline = 10s}).value();
  meeting->count.store(n_lanes);
  std::this_thread::sleep_for(100ms);
  const Held before = held_now();
  meet(meeting, 0);
  std::vector<strait::Lane> lanes;
  for (std::uint64_t i = 0; i < n_lanes; ++i) lanes.push_back(peer.lane(256, 10s).value());
  const Held lane = per(before, held_now(), n_lanes);
  meet(meeting, 0);
  std::this_thread::sleep_for(500ms);  // what was busy comes to rest
  const double cpu = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(idle_seconds));
  const double share = (cpu_seconds() - cpu) / idle_seconds * 100;
  meet(meeting, 0);
  std::printf(
      "{\"node_resident\": %.0f, \"regions\": %llu, \"region_local_heap\": %.0f, \"region_local_resident\": %.0f, "
      "\"share_local_us\": %.2f, \"region_remote_heap\": %.0f, \"region_remote_resident\": %.0f, "
      "\"share_remote_us\": %.2f, \"lanes\": %llu, \"lane_depth\": 256, \"lane_resident\": %.0f, \"lane_heap\": %.0f, "
      "\"lane_resident_at_peer\": %llu, \"idle_seconds\": %.1f, \"idle_percent\": %.3f}\n",
      with_node.resident - bare.resident, static_cast<unsigned long long>(n_regions), local.each.heap,
      local.each.resident, local.share_us, remote.each.heap, remote.each.resident, remote.share_us,
      static_cast<unsigned long long>(n_lanes), lane.resident, lane.heap,
      static_cast<unsigned long long>(meeting->base[1][0]), idle_seconds, share);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  const double idle_seconds = argc > 1 ? std::atof(argv[1]) : 5.0;
  const std::uint64_t regions = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10000;
  const std::uint64_t lanes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 64;
  if (!(idle_seconds > 0 && idle_seconds <= 25) || regions == 0 || lanes == 0)
    bench::give_up("usage: footprint [IDLE_SECONDS (up to 25) [REGIONS [LANES]]]");
  bench::Meeting* meeting = nullptr;
  const bench::Workload workload;
  if (bench::split(workload, &meeting) == 1) {
    bench::owner(meeting);
  } else {
    bench::initiator(meeting, idle_seconds, regions, lanes);
    bench::join();
  }
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
