// SPDX-License-Identifier: Apache-2.0
#include "node/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "node/core.hpp"
#include "sys/clock.hpp"
#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::node {
namespace {

constexpr std::uint64_t kSmallBytes = 8;
constexpr std::int64_t kEachNs = 2'000'000;      // the small and the large one take no longer, the first runs apart
constexpr std::int64_t kMostNs = 2'000'000'000;  // and none takes longer than that
constexpr std::array<std::uint64_t, 2> kLargeBytes{8u << 20, 64u << 10};  // the lesser where memory is short

// The quickest of several, in nanoseconds; 0: it failed.
template <class Move>
std::int64_t quickest(Move&& move, std::uint64_t bytes, int most) {
  if (!move(bytes)) return 0;  // the first one finds pages and paths that are not ready
  const sys::Deadline enough = sys::Deadline::after_ns(kEachNs);
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < most && (i == 0 || !enough.passed()); ++i) {
    const std::int64_t before = sys::now_ns();
    if (!move(bytes)) return 0;
    best = std::min(best, std::max<std::int64_t>(1, sys::now_ns() - before));
  }
  return best;
}

// `move(bytes)`: false when it failed, and then nothing is known.
template <class Move>
plan::Cost timed(Move&& move, std::uint64_t large_bytes, std::string how) {
  const std::int64_t small_ns = quickest(move, kSmallBytes, 64);
  const std::int64_t large_ns = small_ns == 0 ? 0 : quickest(move, large_bytes, 8);
  if (large_ns == 0) return {};
  return {static_cast<double>(small_ns) / 1000,
          static_cast<double>(large_bytes) / static_cast<double>(std::max<std::int64_t>(1, large_ns - small_ns)), true,
          std::move(how)};
}

plan::Cost time_copies(buffer::Providers& providers, const std::string& from, const std::string& to) {
  for (const std::uint64_t bytes : kLargeBytes) {
    auto source = providers.allocate(from, bytes);
    auto target = providers.allocate(to, bytes);
    if (!source || !target) continue;
    return timed(
        [&](std::uint64_t length) {
          const sys::Deadline deadline = sys::Deadline::after_ns(kMostNs);
          return static_cast<bool>(providers.copy(target->data(), source->data(), length, deadline));
        },
        bytes, fmt::format("copies from {} to {}, timed here", from, to));
  }
  return {};
}

plan::Cost time_calls() {
  std::vector<std::byte> source(kLargeBytes[0], std::byte{1});
  std::vector<std::byte> target(kLargeBytes[0], std::byte{2});
  return timed(
      [&](std::uint64_t length) {
        const iovec from{source.data(), length};
        const iovec into{target.data(), length};
        return static_cast<bool>(sys::write_process(sys::process_id(), {&from, 1}, {&into, 1}));
      },
      kLargeBytes[0], "process_vm_writev, timed here");
}

// A secret that nobody else has for the few milliseconds that the two Nodes live.
Result<std::string> spare_secret() {
  std::array<std::byte, 16> bytes{};
  STRAIT_CHECK(sys::fill_random(bytes));
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
  return text;
}

// A Node of its own, whatever the environment says: with no accelerators, and heard on loopback alone.
Result<std::shared_ptr<Core>> spare_node(const std::string& carrier, const std::string& soft_library,
                                         const std::string& secret) {
  const std::vector<Options::Pair> pairs{{"accelerators", "none"}, {"carrier", carrier},
                                         {"grant", "ring"},        {"secret", secret},
                                         {"progress", "caller"},   {"soft_library", soft_library}};
  STRAIT_TRY(Options options, Options::read(pairs, std::span<const char* const>{}));
  return Core::open(std::move(options), Log{});
}

// What the two Nodes need before they move anything. Members go in reverse order.
struct Bench {
  ~Bench() {
    if (peer != nullptr) asker->close_peer(peer);
    for (auto& [core, region] : {std::pair(&asker, local), std::pair(&owner, shared)}) {
      if (region != nullptr) (*core)->drop(region);
    }
    for (auto& [core, memory] : {std::pair(&asker, source), std::pair(&owner, target)}) {
      if (memory != nullptr) (*core)->drop(memory);
    }
    for (const auto& core : {asker, owner}) {
      if (core) core->close();
    }
  }
  std::shared_ptr<Core> owner, asker;
  strait_memory* source = nullptr;
  strait_memory* target = nullptr;
  strait_region* local = nullptr;
  strait_region* shared = nullptr;
  strait_peer* peer = nullptr;
  strait_target place{};
};

Status set_up(Bench& bench, std::uint64_t bytes, const std::string& carrier, const std::string& soft_library) {
  const sys::Deadline deadline = sys::Deadline::after_ns(kMostNs);
  STRAIT_TRY(const std::string secret, spare_secret());
  STRAIT_TRY(bench.owner, spare_node(carrier, soft_library, secret));
  STRAIT_TRY(bench.asker, spare_node(carrier, soft_library, secret));
  STRAIT_TRY(bench.target, bench.owner->allocate(bytes, "host"));
  STRAIT_TRY(bench.source, bench.asker->allocate(bytes, "host"));
  STRAIT_TRY(bench.shared, bench.owner->share(bench.target->memory.data(), bytes, STRAIT_REMOTE_WRITE));
  STRAIT_TRY(bench.local, bench.asker->share(bench.source->memory.data(), bytes, 0));
  strait_ticket ticket{};
  STRAIT_CHECK(bench.owner->make_ticket(*bench.shared, 0, bytes, STRAIT_REMOTE_WRITE, kMostNs * 5, ticket));
  STRAIT_TRY(bench.peer, bench.asker->connect(bench.owner->address(), deadline));
  bench.place.struct_size = sizeof bench.place;
  return bench.asker->redeem(*bench.peer, ticket, deadline, bench.place);
}

// This thread is both ends' engine: no figure is that of a thread that had to be woken.
bool put_once(Bench& bench, std::uint64_t length) {
  const strait_slice from{bench.local, 0, length};
  strait_op op{};
  if (strait_put(strait_peer_lane(bench.peer), &from, &bench.place, 0, nullptr, &op, nullptr) != STRAIT_OK)
    return false;
  strait_done done{};
  done.struct_size = sizeof done;
  const sys::Deadline deadline = sys::Deadline::after_ns(kMostNs);
  std::int32_t answer = STRAIT_AGAIN;
  while (answer == STRAIT_AGAIN && !deadline.passed()) {
    bench.owner->drive_all();
    answer = strait_test(&op, &done, nullptr);
  }
  if (answer == STRAIT_AGAIN) strait_detach(&op);
  return answer == STRAIT_OK;
}

plan::Cost time_carrier(const std::string& carrier, const std::string& soft_library) {
  Bench bench;
  if (!set_up(bench, kLargeBytes[0], carrier, soft_library)) return {};
  return timed([&](std::uint64_t length) { return put_once(bench, length); }, kLargeBytes[0],
               fmt::format("puts between two Nodes of this process by {}, timed here",
                           carrier == "roce" ? "packets over loopback" : "the ring"));
}

}  // namespace

template <class Measure>
plan::Cost Stopwatch::remembered(const std::string& key, Measure&& measure) {
  const Locked lock(mutex_);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  plan::Cost cost = measure();
  if (cost.known()) known_.emplace(key, cost);  // else it may be another time: memory was short, a device busy
  return cost;
}

plan::Cost Stopwatch::copy(buffer::Providers& providers, const std::string& from, const std::string& to) {
  return remembered(from + ">" + to, [&] { return time_copies(providers, from, to); });
}

plan::Cost Stopwatch::call() {
  return remembered("call", [] { return time_calls(); });
}

plan::Cost Stopwatch::carrier(const std::string& carrier, const std::string& soft_library) {
  return remembered("carrier " + carrier, [&] { return time_carrier(carrier, soft_library); });
}

}  // namespace strait::node
