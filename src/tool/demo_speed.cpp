// SPDX-License-Identifier: Apache-2.0
// The demo's short table: latency and bandwidth beside memcpy, all measured within the same second or two.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>

#include "sys/clock.hpp"
#include "tool/demo.hpp"
#include "tool/samples.hpp"

namespace strait::tool {
namespace {

constexpr std::int64_t kSliceNs = 60'000'000;  // per figure; the whole table stays near a second
constexpr std::int64_t kStretchNs = 2'000'000;
constexpr std::size_t kWindow = 4;  // operations under way: enough to hide the turn-around

// Repeats `once` for a slice and gives operations per second: the median of short stretches, so that a stretch in which
// somebody else had the CPU does not count. The first round warms caches and maps.
Result<double> per_second(const std::function<Status()>& once) {
  STRAIT_CHECK(once());
  std::vector<double> rates;
  const std::int64_t start_ns = sys::now_ns();
  std::int64_t now_ns = start_ns;
  while (now_ns - start_ns < kSliceNs) {
    const std::int64_t stretch_ns = now_ns;
    std::uint64_t count = 0;
    for (; now_ns - stretch_ns < kStretchNs; now_ns = sys::now_ns()) {
      STRAIT_CHECK(once());
      ++count;
    }
    rates.push_back(static_cast<double>(count) * 1e9 / static_cast<double>(now_ns - stretch_ns));
  }
  return median(rates);
}

Result<double> bandwidth(std::uint64_t bytes, const std::function<Operation()>& post) {
  std::deque<Operation> under_way;
  const auto once = [&]() -> Status {
    if (under_way.size() == kWindow) {
      auto done = under_way.front().wait(kDemoPatience);
      if (!done) return done.error();
      under_way.pop_front();
    }
    under_way.push_back(post());
    return {};
  };
  STRAIT_TRY(const double rate, per_second(once));
  for (Operation& operation : under_way) {
    auto done = operation.wait(kDemoPatience);
    if (!done) return done.error();
  }
  return rate * static_cast<double>(bytes);
}

Result<double> latency(const std::function<Operation()>& post) {
  constexpr std::size_t kRounds = 5000;
  std::vector<double> seconds;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const std::int64_t start_ns = sys::now_ns();
    auto done = post().wait(kDemoPatience);
    if (!done) return done.error();
    seconds.push_back(static_cast<double>(sys::now_ns() - start_ns) * 1e-9);
  }
  return median(seconds);
}

using Measure = std::function<Result<double>(const Shared&, const Target&)>;

Result<SpeedRow> row(Stage& stage, std::string operation, std::uint64_t bytes, bool rate, const Measure& measure) {
  SpeedRow row{std::move(operation), bytes, rate};
  STRAIT_CHECK(start_driving(stage));
  STRAIT_TRY(row.host, measure(stage.host, stage.host_target));
  STRAIT_TRY(row.device, measure(stage.device, stage.device_target));
  STRAIT_CHECK(stop_driving(stage));
  return row;
}

Status add_limits(Stage& stage, const Shared& other_device, std::vector<std::byte>& host, SpeedRow& row) {
  auto* from = static_cast<std::byte*>(stage.host.memory.data());
  STRAIT_TRY(const double copies, per_second([&]() -> Status {
               std::memcpy(host.data(), from, row.bytes);
               asm volatile("" ::"r"(host.data()) : "memory");  // or the compiler drops a copy that nobody reads
               return {};
             }));
  STRAIT_TRY(const double engine, per_second([&] {
               return stage.node.copy(other_device.memory.data(), stage.device.memory.data(), row.bytes);
             }));
  row.memcpy = copies * static_cast<double>(row.bytes);
  row.engine = engine * static_cast<double>(row.bytes);
  return {};
}

}  // namespace

Result<std::vector<SpeedRow>> measure_speed(Stage& stage) {
  std::vector<SpeedRow> rows;
  STRAIT_TRY(SpeedRow small, row(stage, "put", 8, false, [&](const Shared& from, const Target& to) {
               return latency([&] { return stage.peer.put(from.region.slice(0, 8), to.at(0)); });
             }));
  rows.push_back(std::move(small));

  STRAIT_TRY(const auto other_device, share_buffer(stage.node, stage.options.length, stage.options.device));
  std::vector<std::byte> host(stage.options.length);
  for (const std::uint64_t bytes : {std::uint64_t{64} << 10, std::uint64_t{1} << 20, stage.options.length}) {
    if (bytes > stage.options.length) continue;
    STRAIT_TRY(SpeedRow put, row(stage, "put", bytes, true, [&](const Shared& from, const Target& to) {
                 return bandwidth(bytes, [&] { return stage.peer.put(from.region.slice(0, bytes), to.at(0)); });
               }));
    STRAIT_CHECK(add_limits(stage, other_device, host, put));
    rows.push_back(std::move(put));
  }
  STRAIT_TRY(SpeedRow get, row(stage, "get", stage.options.length, true, [&](const Shared& into, const Target& from) {
               return bandwidth(stage.options.length, [&] { return stage.peer.get(into.region.all(), from.at(0)); });
             }));
  rows.push_back(std::move(get));
  return rows;
}

}  // namespace strait::tool
