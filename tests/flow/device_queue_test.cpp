// SPDX-License-Identifier: Apache-2.0
// Queues that others post to: grids of CPU threads here, with the source that kernels use. Over ring grants and over
// packets, in one process and in two.
#include <atomic>
#include <thread>

// g++ 12 does not follow that a lane which is not usable owns nothing.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "flow.hpp"
#include "process.hpp"
#include "strait/device/cpu_grid.hpp"
#include "strait/device/lane.hpp"
#include "strait/device_queue.hpp"

namespace strait::flow {
namespace {

using device::Deadline;
using device::Outcome;
using device::Pending;
using device::Posted;
using device::Sharing;
using device::Waited;
using Clock = std::chrono::steady_clock;
template <Sharing S>
using Posting = device::Lane<S>;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kBytes = 1 << 20;

Deadline within(std::uint64_t seconds) {
  return Deadline::after_ns(seconds * kSecond);
}

std::size_t threads_now() {
  std::size_t count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/task"); it != std::filesystem::directory_iterator();
       ++it)
    ++count;
  return count;
}

// Two Nodes of one process: what `queue` posts goes from `local` to `shared`.
struct Rig {
  explicit Rig(const std::string& carrier = "auto", const std::string& progress = "thread")
      : pair(settings({{"carrier", carrier}, {"grant", "ring"}}),
             settings({{"carrier", carrier}, {"grant", "ring"}, {"progress", progress}})),
        shared(pair.owner, "host", kBytes, access::all),
        name(pair.owner.publish("block", shared.region).value()),
        target(lookup()),
        local(pair.asker, "host", kBytes, access::local) {}
  DeviceQueue open(const DeviceQueueOptions& options = {}) {
    auto opened = DeviceQueue::open(pair.far, options);
    EXPECT_TRUE(opened) << opened.error().explain();
    return std::move(opened).value();
  }
  Target lookup() { return pair.far.lookup("block").value(); }
  Pair pair;
  Block shared;
  Published name;
  Target target;
  Block local;
};

class Carriers : public testing::TestWithParam<const char*> {};

template <Sharing S>
void every_operation(const char* carrier) {
  Rig rig(carrier);
  DeviceQueue queue = rig.open({.sharing = S, .counters = 2});
  const auto from = queue.local(rig.local.region).value();
  const auto to = queue.remote(rig.target).value();
  const GpuLease lease = queue.lease().value();
  Posting<S> lane(queue.handle().value());
  ASSERT_TRUE(lane.usable());

  rig.local.fill(pattern(300'000, 1));
  const Pending put = lane.put_signal(from, 0, to, 4096, 300'000, 3, 7, {.counter = 1});
  ASSERT_TRUE(put.ok());
  // The owner waits as it does for any other peer.
  const auto seen = rig.shared.region.signal(3).wait_until_at_least(7, 10s);
  ASSERT_TRUE(seen) << seen.error().explain();
  EXPECT_EQ(*seen, 7u);
  EXPECT_EQ(rig.shared.read(4096, 300'000), pattern(300'000, 1));
  EXPECT_EQ(lane.wait(put, within(10)).waited, Waited::ok);
  EXPECT_EQ(lane.wait_counter(1, 1, within(10)), Waited::ok);
  EXPECT_EQ(lane.counter(1).succeeded, 1u);
  EXPECT_EQ(lane.counter(0).succeeded, 0u);

  const Pending get = lane.get(from, 500'000, to, 4096, 300'000);
  EXPECT_EQ(lane.wait(get, within(10)).waited, Waited::ok);
  EXPECT_EQ(rig.local.read(500'000, 300'000), pattern(300'000, 1));

  EXPECT_EQ(lane.wait(lane.put_value(std::uint64_t{40}, to, 0), within(10)).waited, Waited::ok);
  EXPECT_EQ(lane.wait(lane.fetch_add(to, 0, 2, from, 900'000), within(10)).waited, Waited::ok);
  EXPECT_EQ(rig.local.word(900'000), 40u);
  EXPECT_EQ(lane.wait(lane.compare_swap(to, 0, 42, 99, from, 900'008), within(10)).waited, Waited::ok);
  EXPECT_EQ(rig.local.word(900'008), 42u);
  EXPECT_EQ(rig.shared.word(0), 99u);
  EXPECT_TRUE(queue.failure());
}

TEST_P(Carriers, EveryOperationArrivesWhoeverShares) {
  every_operation<Sharing::one_thread>(GetParam());
  every_operation<Sharing::one_block>(GetParam());
  every_operation<Sharing::many_threads>(GetParam());
}

TEST_P(Carriers, TheWayIsSaid) {
  Rig rig(GetParam());
  const std::string path = rig.open().path();
  EXPECT_EQ(path.find("CPU grid -> rings in host memory -> "), 0u) << path;
  EXPECT_NE(path.find("(software: a CPU thread polls the rings while a lease is held)"), std::string::npos) << path;
  EXPECT_NE(path.find(rig.pair.far.name()), std::string::npos) << path;
  EXPECT_EQ(path.find("ring grant") == std::string::npos, std::string(GetParam()) == "roce") << path;
}

// Threads of a grid post to one queue and wait for what they posted; more than the ring holds at once.
TEST_P(Carriers, AGridSharesOneQueue) {
  constexpr unsigned kThreads = 4;
  constexpr std::uint64_t kEach = 150;
  Rig rig(GetParam());
  DeviceQueue queue = rig.open({.sharing = Sharing::many_threads, .depth_blocks = 16});
  const auto from = queue.local(rig.local.region).value();
  const auto to = queue.remote(rig.target).value();
  const auto handle = queue.handle().value();
  const GpuLease lease = queue.lease().value();
  std::atomic<unsigned> wrong{0};
  device::run_on_cpu({.blocks = 2, .threads = kThreads / 2}, [&](unsigned block, unsigned thread) {
    const std::uint64_t me = block * (kThreads / 2) + thread;
    Posting<Sharing::many_threads> lane(handle);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const Pending word = lane.put_value(me * kEach + i, to, 4096 + 8 * (me * kEach + i), {.room_ns = 20 * kSecond});
      const Pending sum = lane.fetch_add(to, 0, 1, from, 8 * me, {.room_ns = 20 * kSecond});
      if (!word.ok() || !sum.ok() || lane.wait(sum, within(20)).waited != Waited::ok) ++wrong;
    }
    if (lane.flush(within(20)).waited != Waited::ok) ++wrong;
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(rig.shared.word(0), kThreads * kEach);
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) ASSERT_EQ(rig.shared.word(4096 + 8 * i), i);
}

TEST_P(Carriers, AKernelWaitsForASignalOfThePeer) {
  Rig rig(GetParam());
  DeviceQueue queue = rig.open();
  Block mine(rig.pair.asker, "host", 4096, access::all);
  Published name = rig.pair.asker.publish("mine", mine.region).value();
  const auto signal = queue.signal(mine.region, 5).value();
  const GpuLease lease = queue.lease().value();
  std::thread peer([&] {
    const Target back = rig.pair.near.lookup("mine").value();
    rig.shared.fill(pattern(1000, 9));
    EXPECT_TRUE(rig.pair.near.put(rig.shared.region.slice(0, 1000), back.at(0), {.signal = 5, .signal_add = 3}).wait());
  });
  Posting<Sharing::one_thread> lane(queue.handle().value());
  const device::Seen seen = lane.wait_signal(signal, 3, within(10));
  peer.join();
  EXPECT_EQ(seen.waited, Waited::ok);
  EXPECT_EQ(seen.value, 3u);
  EXPECT_EQ(mine.read(0, 1000), pattern(1000, 9));
}

TEST_P(Carriers, ARevokedRegionIsARefusalWithItsSyndrome) {
  Rig rig(GetParam());
  DeviceQueue queue = rig.open({.sharing = Sharing::many_threads, .counters = 1});
  const auto from = queue.local(rig.local.region).value();
  const auto to = queue.remote(rig.target).value();
  const GpuLease lease = queue.lease().value();
  Posting<Sharing::many_threads> lane(queue.handle().value());
  ASSERT_EQ(lane.wait(lane.put(from, 0, to, 0, 64), within(10)).waited, Waited::ok);
  ASSERT_TRUE(rig.shared.region.revoke());
  const Pending refused = lane.put(from, 0, to, 0, 64, {.counter = 0});
  const Pending behind = lane.put(from, 0, to, 0, 64, {.counter = 0});
  const Outcome outcome = lane.wait(refused, within(10));
  EXPECT_EQ(outcome.waited, Waited::error);
  EXPECT_EQ(outcome.syndrome, wire::mlx5::Syndrome::remote_access);
  const Outcome flushed = lane.wait(behind, within(10));
  EXPECT_EQ(flushed.waited, Waited::error);
  EXPECT_EQ(flushed.syndrome, wire::mlx5::Syndrome::flushed);
  EXPECT_EQ(flushed.cause, wire::mlx5::Syndrome::remote_access);
  EXPECT_EQ(lane.wait_counter(0, 1, within(10)), Waited::error);
  const Status failure = queue.failure();
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::denied) << failure.error().explain();
  EXPECT_EQ(failure.error().syndrome, 0x13u);
  EXPECT_NE(failure.error().text.find(wire::mlx5::sentence(wire::mlx5::Syndrome::remote_access)), std::string::npos);
}

// A program, or a kernel, that writes over its ring: the NIC fetches that in place of the put, which was posted while
// nobody looked at the ring.
TEST_P(Carriers, GarbageInTheRingIsSaidInASentence) {
  Rig rig(GetParam(), "caller");
  rig.shared.fill(pattern(64, 3));
  DeviceQueue queue = rig.open();
  const auto from = queue.local(rig.local.region).value();
  const auto to = queue.remote(rig.target).value();
  const device::Queue handle = queue.handle().value();
  {
    Posting<Sharing::one_thread> lane(handle);
    const Pending put = lane.put(from, 0, to, 0, 64);
    ASSERT_TRUE(put.ok());
    std::memset(handle.state->send.blocks, 0x5a, 64);
    const GpuLease lease = queue.lease().value();
    const Outcome outcome = lane.wait(put, within(10));
    EXPECT_EQ(outcome.waited, Waited::error);
    EXPECT_EQ(outcome.syndrome, wire::mlx5::Syndrome::local_qp_operation);
  }
  const Status failure = queue.failure();
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::device);
  EXPECT_NE(
      failure.error().text.find("failed: the queue entry is malformed or not allowed on this queue pair (syndrome "
                                "0x02, block 0)"),
      std::string::npos)
      << failure.error().text;
  EXPECT_EQ(failure.error().remedy, "open another device queue");
  EXPECT_EQ(rig.shared.read(0, 64), pattern(64, 3));
}

// A region of ours that was dropped: the NIC does not know its key any more.
TEST_P(Carriers, ADroppedRegionIsARefusalToo) {
  Rig rig(GetParam());
  DeviceQueue queue = rig.open();
  const auto to = queue.remote(rig.target).value();
  device::LocalRegion from{};
  {
    const Block short_lived(rig.pair.asker, "host", 4096, access::local);
    from = queue.local(short_lived.region).value();
  }
  const GpuLease lease = queue.lease().value();
  {
    Posting<Sharing::one_thread> lane(queue.handle().value());
    EXPECT_EQ(lane.wait(lane.put(from, 0, to, 0, 64), within(10)).waited, Waited::error);
  }
  EXPECT_FALSE(queue.failure()) << "known to the host once the lane has given its queue back";
}

TEST_P(Carriers, ClosingWithWorkUnderWay) {
  Rig rig(GetParam());
  for (int round = 0; round < 5; ++round) {
    DeviceQueue queue = rig.open({.depth_blocks = 64});
    const auto from = queue.local(rig.local.region).value();
    const auto to = queue.remote(rig.target).value();
    const GpuLease lease = queue.lease().value();
    Posting<Sharing::one_thread> lane(queue.handle().value());
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(lane.put(from, 0, to, 0, kBytes).ok());
    lane.give_back();
  }
  // The Nodes are as before, and so is the memory, though half a put may be left over for it.
  EXPECT_TRUE(rig.pair.far.put(rig.local.region.slice(0, 100), rig.target.at(0)).wait());
}

INSTANTIATE_TEST_SUITE_P(DeviceQueue, Carriers, testing::Values("auto", "roce"));

TEST(DeviceQueue, WithoutALeaseNothingMovesAndALeaseFindsIt) {
  Rig rig("auto", "caller");  // nobody else polls this Node
  DeviceQueue queue = rig.open();
  const auto to = queue.remote(rig.target).value();
  Posting<Sharing::one_thread> lane(queue.handle().value());
  const Pending first = lane.put_value(std::uint64_t{1}, to, 0);
  EXPECT_EQ(lane.wait(first, Deadline::after_ns(kSecond / 5)).waited, Waited::timeout);
  EXPECT_EQ(rig.shared.word(0), 0u);
  const std::size_t threads = threads_now();
  {
    const GpuLease lease = queue.lease().value();
    const GpuLease another = queue.lease().value();
    EXPECT_EQ(threads_now(), threads + 1);
    EXPECT_EQ(lane.wait(first, within(10)).waited, Waited::ok);
    EXPECT_EQ(rig.shared.word(0), 1u);
  }
  EXPECT_EQ(threads_now(), threads);
  const Pending second = lane.put_value(std::uint64_t{2}, to, 0);
  EXPECT_EQ(lane.wait(second, Deadline::after_ns(kSecond / 5)).waited, Waited::timeout);
  EXPECT_EQ(rig.shared.word(0), 1u);
  // So does a poll of the host.
  for (int i = 0; i < 10'000 && rig.shared.word(0) != 2; ++i) rig.pair.asker.poll();
  EXPECT_EQ(rig.shared.word(0), 2u);
  while (lane.wait(second, Deadline::after_ns(1000)).waited == Waited::timeout) rig.pair.asker.poll();
}

// A lease takes over from a progress thread that sleeps, and hands back to it.
TEST(DeviceQueue, TheProgressThreadGoesOnAfterALease) {
  Rig rig;
  DeviceQueue queue = rig.open();
  const auto to = queue.remote(rig.target).value();
  for (std::uint64_t round = 1; round <= 3; ++round) {
    std::this_thread::sleep_for(20ms);
    {
      const GpuLease lease = queue.lease().value();
      Posting<Sharing::one_thread> lane(queue.handle().value());
      EXPECT_EQ(lane.wait(lane.put_value(round, to, 0), within(10)).waited, Waited::ok);
    }
    std::this_thread::sleep_for(20ms);
    // The owner reads memory of the asker, whose progress thread has to answer.
    Block mine(rig.pair.asker, "host", 4096, access::all);
    Published name = rig.pair.asker.publish("mine" + std::to_string(round), mine.region).value();
    const Target back = rig.pair.near.lookup("mine" + std::to_string(round)).value();
    EXPECT_TRUE(rig.pair.near.get(rig.shared.region.slice(8192, 4096), back.at(0)).wait(5s));
  }
}

TEST(DeviceQueue, AFullRingIsAnAnswer) {
  Rig rig("auto", "caller");
  DeviceQueue queue = rig.open({.depth_blocks = 4});
  const auto to = queue.remote(rig.target).value();
  Posting<Sharing::one_thread> lane(queue.handle().value());
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(lane.put_value(i, to, 8 * i).ok());
  EXPECT_EQ(lane.put_value(std::uint64_t{4}, to, 32).posted, Posted::full);
  EXPECT_EQ(lane.put_value(std::uint64_t{4}, to, 32, {.room_ns = kSecond / 20}).posted, Posted::full);
  const GpuLease lease = queue.lease().value();
  const Pending fits = lane.put_value(std::uint64_t{4}, to, 32, {.room_ns = 10 * kSecond});
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ(lane.wait(fits, within(10)).waited, Waited::ok);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(rig.shared.word(8 * i), i);
}

TEST(DeviceQueue, TheAbortWordEndsEveryWait) {
  Rig rig("auto", "caller");
  DeviceQueue queue = rig.open({.sharing = Sharing::many_threads, .counters = 1});
  Block mine(rig.pair.asker, "host", 4096, access::all);
  const auto to = queue.remote(rig.target).value();
  const auto handle = queue.handle().value();
  const auto signal = queue.signal(mine.region, 0).value();
  const auto before = Clock::now();
  std::atomic<unsigned> aborted{0};
  std::thread host([&] {
    std::this_thread::sleep_for(50ms);
    queue.abort();
  });
  device::run_on_cpu({.blocks = 1, .threads = 3}, [&](unsigned, unsigned thread) {
    Posting<Sharing::many_threads> lane(handle);
    const Pending put = lane.put_value(std::uint64_t{1}, to, 0);
    Waited waited = Waited::ok;
    if (thread == 0) waited = lane.wait(put, within(60)).waited;
    if (thread == 1) waited = lane.wait_signal(signal, 1, within(60)).waited;
    if (thread == 2) waited = lane.wait_counter(0, 1, within(60));
    if (waited == Waited::aborted) ++aborted;
  });
  host.join();
  EXPECT_EQ(aborted.load(), 3u);
  EXPECT_LT(Clock::now() - before, 20s);
  // Nothing is lost: lowered again, the same operations complete.
  queue.abort(false);
  const GpuLease lease = queue.lease().value();
  Posting<Sharing::many_threads> lane(handle);
  const Pending last = lane.put_value(std::uint64_t{2}, to, 8);
  EXPECT_EQ(lane.wait(last, within(10)).waited, Waited::ok);
  EXPECT_EQ(rig.shared.word(0), 1u);
}

TEST(DeviceQueue, ClosingTheNodeEndsWaitsAndLeavesAShell) {
  Rig rig("auto", "caller");
  DeviceQueue queue = rig.open();
  const auto to = queue.remote(rig.target).value();
  Posting<Sharing::one_thread> lane(queue.handle().value());
  const Pending put = lane.put_value(std::uint64_t{1}, to, 0);
  std::atomic<bool> waiting{false};
  std::atomic<Waited> waited{Waited::ok};
  std::thread poster([&] {
    waiting = true;
    waited = lane.wait(put, within(60)).waited;
  });
  while (!waiting) std::this_thread::yield();
  { const Node closing = std::move(rig.pair.asker); }
  poster.join();
  EXPECT_TRUE(waited == Waited::aborted || waited == Waited::error) << static_cast<int>(waited.load());
  EXPECT_EQ(queue.handle().error().code, Code::gone);
  EXPECT_EQ(queue.lease().error().code, Code::gone);
  EXPECT_EQ(queue.failure().error().code, Code::gone);
}

TEST(DeviceQueue, WhatCannotBeIsRefusedWithTheReason) {
  Rig rig;
  const auto refusal = [&](const DeviceQueueOptions& options) {
    const auto opened = DeviceQueue::open(rig.pair.far, options);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  };
  EXPECT_NE(refusal({.depth_blocks = 3}).text.find("power of two"), std::string::npos);
  EXPECT_NE(refusal({.depth_blocks = 65536}).text.find("32768"), std::string::npos);
  EXPECT_NE(refusal({.receives = 5}).text.find("power of two"), std::string::npos);
  EXPECT_NE(refusal({.counters = ~0u}).text.find("counters"), std::string::npos);
  EXPECT_NE(refusal({.near = "cuda:77"}).text.find("\"cuda:77\""), std::string::npos);
  // The software accelerator runs no kernels.
  const Error no_kernels = refusal({.near = "soft:0"});
  EXPECT_EQ(no_kernels.code, Code::unsupported);
  EXPECT_NE(no_kernels.text.find("the soft provider cannot let its devices at host memory"), std::string::npos)
      << no_kernels.text;

  DeviceQueue queue = rig.open();
  strait_error error{};
  error.struct_size = sizeof error;
  char handle[64];
  EXPECT_EQ(strait_device_queue_handle(queue.raw(), handle, sizeof(device::Queue) - 8, &error), STRAIT_INVALID);
  EXPECT_NE(std::string(error.text).find("different versions"), std::string::npos) << error.text;
  const Slice all = rig.local.region.all();
  EXPECT_EQ(strait_device_local(queue.raw(), &all.raw, handle, 8, &error), STRAIT_INVALID);
  EXPECT_EQ(queue.local(rig.local.region.slice(0, kBytes + 1)).error().code, Code::invalid);
  EXPECT_NE(queue.local(rig.shared.region).error().text.find("another Node"), std::string::npos);
  EXPECT_NE(queue.signal(rig.local.region, 0).error().text.find("no signals"), std::string::npos);
  Block mine(rig.pair.asker, "host", 4096, access::all);
  EXPECT_EQ(queue.signal(mine.region, STRAIT_SIGNALS).error().code, Code::invalid);
}

TEST(DeviceQueue, AQueueMadeForOneThreadIsNotSharedByAGrid) {
  Rig rig;
  DeviceQueue queue = rig.open({.sharing = Sharing::one_thread});
  const Posting<Sharing::many_threads> lane(queue.handle().value());
  EXPECT_FALSE(lane.usable());
}

TEST(DeviceQueue, NothingIsLeftBehind) {
  Rig rig;
  { const DeviceQueue first = rig.open(); }
  const auto nic = [&] { return info(rig.pair.asker)["nics"][0]["counters"]; };
  const int fds = settled_fds();
  const auto before = nic();
  for (int i = 0; i < 20; ++i) {
    const DeviceQueue queue = rig.open({.receives = 8, .counters = 4});
    const GpuLease lease = queue.lease().value();
  }
  EXPECT_EQ(settled_fds(), fds);
  EXPECT_EQ(nic().at("registrations"), before.at("registrations"));
  EXPECT_EQ(nic().at("queue_pairs"), before.at("queue_pairs"));
}

TEST(DeviceQueue, DeadInAForkedChild) {
  Rig rig;
  DeviceQueue queue = rig.open();
  GpuLease lease = queue.lease().value();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool dead = queue.handle().error().code == Code::gone && queue.lease().error().code == Code::gone &&
                      queue.failure().error().code == Code::gone;
    queue.abort();  // nothing
    {
      const GpuLease ended = std::move(lease);
      const DeviceQueue closed = std::move(queue);
    }
    ::_exit(dead ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Posting<Sharing::one_thread> lane(queue.handle().value());
  EXPECT_EQ(lane.wait(lane.put_value(std::uint64_t{5}, queue.remote(rig.target).value(), 0), within(10)).waited,
            Waited::ok);
}

class TwoProcesses : public testing::TestWithParam<const char*> {};

TEST_P(TwoProcesses, PutsArriveAndADeadPeerIsAnError) {
  const NodeOptions options = settings({{"carrier", GetParam()}, {"ack_timeout", "100ms"}, {"retries", "3"}});
  Process owner([&](Process::Wire wire) {
    Node node = Node::open(options).value();
    Block block(node, "host", kBytes, access::all);
    Published name = node.publish("block", block.region).value();
    wire.say(node.address());
    Peer peer = node.accept(10s).value();
    const auto seen = block.region.signal(0).wait_until_at_least(1, 10s);
    wire.say(seen && block.read(0, 100'000) == pattern(100'000, 4) ? "verified" : "wrong");
    (void)wire.hear();
  });
  const std::string address = owner.wire().hear();
  Node node = Node::open(options).value();
  Peer peer = node.connect(address).value();
  const Target target = peer.lookup("block").value();
  Block local(node, "host", kBytes, access::local);
  DeviceQueue queue = DeviceQueue::open(peer, {.sharing = Sharing::many_threads}).value();
  EXPECT_NE(queue.path().find("process " + std::to_string(owner.pid())), std::string::npos) << queue.path();
  const auto from = queue.local(local.region).value();
  const auto to = queue.remote(target).value();
  const GpuLease lease = queue.lease().value();
  local.fill(pattern(100'000, 4));
  Posting<Sharing::many_threads> lane(queue.handle().value());
  EXPECT_EQ(lane.wait(lane.put_signal(from, 0, to, 0, 100'000, 0, 1), within(10)).waited, Waited::ok);
  EXPECT_EQ(owner.wire().hear(), "verified");

  owner.kill_now();
  const auto before = Clock::now();
  Outcome outcome{};
  // A put may still find a ring that nobody reads; one of them ends with the error.
  do {
    outcome = lane.wait(lane.put(from, 0, to, 0, 64, {.room_ns = kSecond}), within(10));
  } while (outcome.waited == Waited::ok && Clock::now() - before < 10s);
  EXPECT_EQ(outcome.waited, Waited::error);
  EXPECT_LT(Clock::now() - before, 10s);
  const Status failure = queue.failure();
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().code, Code::gone) << failure.error().explain();
}

INSTANTIATE_TEST_SUITE_P(DeviceQueue, TwoProcesses, testing::Values("auto", "roce"));

}  // namespace
}  // namespace strait::flow
