// SPDX-License-Identifier: Apache-2.0
// A grid of CPU threads posts mlx5 work requests to a NIC that knows none: a thread of ours forwards them to its verbs.
// The same on the kernel's rxe (tests/lab) and on a verbs device in software.
#pragma once

#include <atomic>

#include "flow.hpp"
#include "strait/device/cpu_grid.hpp"
#include "strait/device/lane.hpp"
#include "strait/device_queue.hpp"

namespace strait::flow {

// `options` open Nodes over the verbs device `nic`.
inline void posts_through_the_proxy(const NodeOptions& options, const std::string& nic) {
  using device::Deadline;
  using device::Pending;
  using device::Sharing;
  using device::Waited;
  constexpr unsigned kThreads = 2;
  constexpr std::uint64_t kEach = 20;
  constexpr std::uint64_t kPatience = 60'000'000'000;  // an emulated machine takes milliseconds for a round trip

  Pair pair(options, options);
  Block shared(pair.owner, "host", 1 << 20, access::all);
  Published name = pair.owner.publish("block", shared.region).value();
  const Target target = pair.far.lookup("block").value();
  Block local(pair.asker, "host", 1 << 20, access::local);
  auto opened = DeviceQueue::open(pair.far, {.sharing = Sharing::many_threads, .depth_blocks = 16, .counters = 1});
  ASSERT_TRUE(opened) << opened.error().explain();
  DeviceQueue& queue = *opened;
  EXPECT_NE(queue.path().find("proxy: a CPU thread forwards to " + nic + ", which a GPU cannot ring"),
            std::string::npos)
      << queue.path();
  const auto from = queue.local(local.region).value();
  const auto to = queue.remote(target).value();
  const auto handle = queue.handle().value();
  const GpuLease lease = queue.lease().value();
  device::Lane<Sharing::many_threads> lane(handle);

  local.fill(pattern(200'000, 5));
  EXPECT_EQ(lane.wait(lane.put_signal(from, 0, to, 4096, 200'000, 1, 3), Deadline::after_ns(kPatience)).waited,
            Waited::ok);
  ASSERT_TRUE(shared.region.signal(1).wait_until_at_least(3, 60s));
  EXPECT_EQ(shared.read(4096, 200'000), pattern(200'000, 5));
  EXPECT_EQ(lane.wait(lane.get(from, 500'000, to, 4096, 200'000), Deadline::after_ns(kPatience)).waited, Waited::ok);
  EXPECT_EQ(local.read(500'000, 200'000), pattern(200'000, 5));

  std::atomic<unsigned> wrong{0};
  device::run_on_cpu({.blocks = 1, .threads = kThreads}, [&](unsigned, unsigned me) {
    device::Lane<Sharing::many_threads> mine(handle);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const Pending word = mine.put_value(me * kEach + i, to, 500'000 + 8 * (me * kEach + i), {.room_ns = kPatience});
      const Pending sum = mine.fetch_add(to, 0, 1, from, 8 * me, {.counter = 0, .room_ns = kPatience});
      if (!word.ok() || !sum.ok() || mine.wait(sum, Deadline::after_ns(kPatience)).waited != Waited::ok) ++wrong;
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(lane.counter(0).succeeded, kThreads * kEach);
  EXPECT_EQ(shared.word(0), kThreads * kEach);
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) EXPECT_EQ(shared.word(500'000 + 8 * i), i);

  // The same rules for errors: what the owner's NIC refuses is a syndrome, what lies behind it is flushed.
  ASSERT_TRUE(shared.region.revoke());
  const Pending refused = lane.put(from, 0, to, 0, 64);
  const Pending behind = lane.put(from, 0, to, 0, 64);
  EXPECT_EQ(lane.wait(refused, Deadline::after_ns(kPatience)).syndrome, wire::mlx5::Syndrome::remote_access);
  EXPECT_EQ(lane.wait(behind, Deadline::after_ns(kPatience)).syndrome, wire::mlx5::Syndrome::flushed);
  ASSERT_FALSE(queue.failure());
  EXPECT_EQ(queue.failure().error().code, Code::denied) << queue.failure().error().explain();
}

}  // namespace strait::flow
