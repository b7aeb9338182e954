// SPDX-License-Identifier: Apache-2.0
// A queue for kernels of a device: what is registered with its driver, allocated on it and given back. Run under
// `strait run --accelerators`, with the vendors' libraries in software: those run no kernels, so a CPU posts with the
// state that was made for one, brought over.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 does not see that an unusable lane owns nothing
#endif

#include "flow.hpp"
#include "strait/cxi_queue.hpp"
#include "strait/device/lane.hpp"
#include "strait/device_queue.hpp"

namespace strait::flow {
namespace {

using device::Deadline;
using device::Sharing;
using device::Waited;

NodeOptions with_device() {
  return settings({{"accelerators", test_kind()}});
}

// Of the driver, as the provider counts.
struct Held {
  std::uint64_t registered = 0, released = 0, live = 0;
};
Held held_by(Node& node) {
  const auto counters = info(node).at("counters").at("memory_" + test_kind());
  return {counters.at("host_registered"), counters.at("host_released"), counters.at("live_allocations")};
}

class DeviceNear : public testing::Test {
 protected:
  DeviceNear()
      : pair(with_device(), with_device()),
        shared(pair.owner, "host", 1 << 20, access::all),
        name(pair.owner.publish("block", shared.region).value()),
        target(pair.far.lookup("block").value()) {}
  DeviceQueue open(DeviceQueueOptions options = {}) {
    options.near = test_device();
    auto opened = DeviceQueue::open(pair.far, options);
    EXPECT_TRUE(opened) << opened.error().explain();
    return std::move(opened).value();
  }
  device::QueueState state_of(const DeviceQueue& queue) {
    device::QueueState state{};
    EXPECT_TRUE(pair.asker.copy(&state, queue.handle().value().state, sizeof state));
    return state;
  }
  Pair pair;
  Block shared;
  Published name;
  Target target;
};

TEST_F(DeviceNear, WhatIsRegisteredIsGivenBack) {
  const Held before = held_by(pair.asker);
  const int fds = settled_fds();
  for (int i = 0; i < 10; ++i) {
    const DeviceQueue queue = open({.receives = 16, .counters = 8});
    const Held during = held_by(pair.asker);
    EXPECT_EQ(during.live, before.live + 1) << "the state, on the device";
    EXPECT_EQ(during.registered - during.released, 2u) << "the rings and the doorbell's page";
    const DeviceQueue other = open();  // the same doorbell page: not again
    EXPECT_EQ(held_by(pair.asker).registered, during.registered + 1);
  }
  const Held after = held_by(pair.asker);
  EXPECT_EQ(after.registered, after.released);
  EXPECT_EQ(after.registered, before.registered + 30u);
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(settled_fds(), fds);
}

TEST_F(DeviceNear, TheWayIsSaid) {
  const std::string path = open().path();
  EXPECT_EQ(path.find(test_device() + " -> rings in host memory -> "), 0u) << path;
  EXPECT_NE(path.find("a CPU thread polls the rings while a lease is held"), std::string::npos) << path;
}

TEST_F(DeviceNear, TheStateOnTheDeviceIsWhatAKernelNeeds) {
  DeviceQueue queue = open({.sharing = Sharing::many_threads, .depth_blocks = 64, .counters = 2});
  device::QueueState state = state_of(queue);
  ASSERT_TRUE(device::fits(state));
  EXPECT_EQ(state.sharing, Sharing::many_threads);
  EXPECT_EQ(state.counters, 2u);
  EXPECT_EQ(state.send.slots.capacity, 64u);
  // What posters share lies behind the state, on the device, zeroed.
  const auto base = reinterpret_cast<std::uint64_t>(queue.handle().value().state);
  const auto within = [base](const void* place) {
    const auto at = reinterpret_cast<std::uint64_t>(place);
    return at >= base + sizeof(device::QueueState) && at < base + 65536;
  };
  EXPECT_TRUE(within(state.send.slots.marks) && within(state.counter_words) && within(state.counter_of));
  std::vector<std::uint64_t> marks(64, 1);
  ASSERT_TRUE(pair.asker.copy(marks.data(), state.send.slots.marks, 64 * 8));
  EXPECT_EQ(marks, std::vector<std::uint64_t>(64, 0));

  // In software the device's addresses of host memory are the CPU's: with the counters brought over it posts.
  std::vector<device::CounterWords> counters(2);
  std::vector<std::uint32_t> counter_of(64);
  state.send.slots.marks = marks.data();
  std::fill(marks.begin(), marks.end(), 0u);
  state.counter_words = counters.data();
  state.counter_of = counter_of.data();
  device::Queue here = queue.handle().value();
  here.state = &state;
  device::Lane<Sharing::many_threads> lane(here);
  const auto to = queue.remote(target).value();
  const GpuLease lease = queue.lease().value();
  const device::Pending put = lane.put_value(std::uint64_t{77}, to, 8, {.counter = 1});
  EXPECT_EQ(lane.wait(put, Deadline::after_ns(10'000'000'000)).waited, Waited::ok);
  EXPECT_EQ(lane.wait(lane.signal(to, 2, 5), Deadline::after_ns(10'000'000'000)).waited, Waited::ok);
  EXPECT_EQ(shared.word(8), 77u);
  EXPECT_EQ(shared.region.signal(2).read().value(), 5u);
  EXPECT_EQ(counters[1].succeeded, 1u);
}

TEST_F(DeviceNear, AFailureThatAKernelSawIsReadFromTheDevice) {
  DeviceQueue queue = open();
  EXPECT_TRUE(queue.failure());
  const std::uint64_t word = device::pack({12, wire::mlx5::Syndrome::remote_access, 0});
  auto* const place = reinterpret_cast<char*>(queue.handle().value().state) + offsetof(device::QueueState, failure);
  ASSERT_TRUE(pair.asker.copy(place, &word, sizeof word));
  const Status failure = queue.failure();
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::denied);
  EXPECT_EQ(failure.error().syndrome, 0x13u);
  EXPECT_NE(failure.error().text.find("block 12"), std::string::npos) << failure.error().text;
}

// Signals of regions lie in the heap, many on a page, and both Nodes of this process have some there.
TEST_F(DeviceNear, SignalsOfTwoNodesOnOnePage) {
  const Held asker_before = held_by(pair.asker);
  const Held owner_before = held_by(pair.owner);
  {
    DeviceQueue queue = open();
    DeviceQueue back = DeviceQueue::open(pair.near, {.near = test_device()}).value();
    std::vector<std::unique_ptr<Block>> blocks;
    for (int i = 0; i < 16; ++i) {
      blocks.push_back(std::make_unique<Block>(i % 2 == 0 ? pair.asker : pair.owner, "host", 4096, access::all));
      const auto signal = (i % 2 == 0 ? queue : back).signal(blocks.back()->region, 63);
      ASSERT_TRUE(signal) << signal.error().explain();
      const auto again = (i % 2 == 0 ? queue : back).signal(blocks.back()->region, 63).value();
      EXPECT_EQ(again.word, signal->word);
    }
    // The queues go first, as they must.
    { const DeviceQueue gone = std::move(queue); }
    { const DeviceQueue gone = std::move(back); }
  }
  const Held asker = held_by(pair.asker);
  const Held owner = held_by(pair.owner);
  EXPECT_EQ(asker.registered - asker_before.registered + owner.registered - owner_before.registered,
            asker.released - asker_before.released + owner.released - owner_before.released);
  EXPECT_GT(owner.registered, owner_before.registered);
}

// A Node that closes takes its pages back from the device; the handle that is left has nothing to give back.
TEST_F(DeviceNear, ClosingTheNodeBeforeTheQueue) {
  DeviceQueue queue = open();
  const GpuLease lease = queue.lease().value();
  { const Node closing = std::move(pair.asker); }
  EXPECT_EQ(queue.handle().error().code, Code::gone);
}

// A queue of a CXI device: rings, launch pages, counters, their doorbells and events, each page of them.
TEST_F(DeviceNear, ACxiQueueIsLetAtItsPages) {
  const Held before = held_by(pair.asker);
  alignas(4096) static std::uint64_t words[512];
  {
    const CxiDevice cassini = CxiDevice::open("local0").value();
    const CxiQueue queue = CxiQueue::open(cassini, {.near = test_device(), .node = &pair.asker}).value();
    const Held during = held_by(pair.asker);
    EXPECT_EQ(during.live, before.live + 1) << "the state, on the device";
    EXPECT_GE(during.registered - during.released, 6u);
    device::cxi::QueueState state{};
    ASSERT_TRUE(pair.asker.copy(&state, queue.handle().value().state, sizeof state));
    EXPECT_TRUE(device::fits(state));
    EXPECT_EQ(state.counters, 4u);
    const auto signal = queue.signal(&words[1]);
    ASSERT_TRUE(signal) << signal.error().explain();
    EXPECT_EQ(held_by(pair.asker).registered, during.registered + 1);
  }
  const Held after = held_by(pair.asker);
  EXPECT_EQ(after.registered, after.released);
  EXPECT_EQ(after.live, before.live);
}

}  // namespace
}  // namespace strait::flow
