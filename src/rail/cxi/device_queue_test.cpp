// SPDX-License-Identifier: Apache-2.0
// Kernels' queues on the software Cassini, with CPU threads in the place of kernels: both ways to tell a peer,
// failures, doorbells, and what is refused. Two cards of this process, driven by a thread of it.
#include "rail/cxi/device_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "strait/device/cpu_grid.hpp"
#include "strait/device/cxi/lane.hpp"

namespace strait::rail::cxi {
namespace {

namespace ki = device::cxi;
using device::Deadline;
using device::Sharing;
using device::Waited;

Deadline ki_soon() {
  return Deadline::after_ns(20'000'000'000);
}

// A card with a queue, memory that peers write, signals, and the state of a CPU poster.
struct KiEnd {
  KiEnd(int card, KiShape shape) : bytes(1 << 16), signals(64) {
    auto opened = Device::open({"local" + std::to_string(card), STRAIT_SOFT_LIBRARY});
    if (!opened) ADD_FAILURE() << opened.error().explain();
    device = std::move(*opened);
    auto made = KiQueue::make(*device, shape);
    if (!made) ADD_FAILURE() << made.error().explain();
    queue = std::move(*made);
    auto mapped = sys::map_anonymous(sys::round_up(queue->state_bytes(), sys::page_bytes()), sys::Protect::read_write);
    state = std::move(*mapped);
    const auto address = reinterpret_cast<std::uint64_t>(state.data());
    const Status prepared = queue->prepare_state(queue->view_from_here(address), {state.data(), queue->state_bytes()});
    EXPECT_TRUE(prepared) << prepared.error().explain();
    data = must(queue->expose(request(bytes.data(), bytes.size() * 8), 1));
    words = must(queue->expose(request(signals.data(), signals.size() * 8)));
    from = must(queue->local(request(bytes.data(), bytes.size() * 8)));
  }
  template <class T>
  static T must(Result<T> result) {
    EXPECT_TRUE(result) << (result ? "" : result.error().explain());
    return result ? *result : T{};
  }
  static Memory::Request request(void* address, std::uint64_t size) {
    Memory::Request out;
    out.address = reinterpret_cast<std::uint64_t>(address);
    out.bytes = size;
    out.flags = w::kMapRead | w::kMapWrite;
    return out;
  }
  ki::Queue handle() {
    return {device::head_of<ki::Queue>(), queue->shape().sharing, 0, reinterpret_cast<ki::QueueState*>(state.data())};
  }
  ki::RemoteMemory at(const KiEnd& peer) const { return queue->remote(peer.data, &peer.words); }
  device::Signal signal(std::uint32_t i) const { return {device::head_of<device::Signal>(), signals.data() + i}; }

  std::vector<std::uint64_t> bytes, signals;
  std::unique_ptr<Device> device;
  std::unique_ptr<KiQueue> queue;
  sys::Mapping state;
  Exposed data, words;
  ki::LocalMemory from{};
};

constexpr KiShape kOneOwner{.sharing = Sharing::one_thread, .blocks = 64};
constexpr KiShape kManyOwners{.sharing = Sharing::many_threads, .blocks = 64};

template <Sharing S>
void every_operation(KiEnd& a, KiEnd& b) {
  ki::Lane<S> lane(a.handle());
  ASSERT_TRUE(lane.usable());
  const ki::RemoteMemory to = a.at(b);
  a.bytes[0] = 0x1234;
  ASSERT_TRUE(lane.put(a.from, 0, to, 64, 8).ok());
  const ki::Outcome put = lane.flush(ki_soon());
  ASSERT_EQ(put.waited, Waited::ok) << static_cast<int>(put.code);
  EXPECT_EQ(b.bytes[8], 0x1234u);
  ASSERT_TRUE(lane.get(a.from, 8, to, 64, 8).ok());
  ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  EXPECT_EQ(a.bytes[1], 0x1234u);
  ASSERT_TRUE(lane.put_value(std::uint64_t{100}, to, 16).ok());
  ASSERT_TRUE(lane.add(to, 16, 11).ok());
  ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  EXPECT_EQ(b.bytes[2], 111u);
  ASSERT_TRUE(lane.fetch_add(to, 16, 1, a.from, 24).ok());
  ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  EXPECT_EQ(a.bytes[3], 111u);
  ASSERT_TRUE(lane.compare_swap(to, 16, 112, 7, a.from, 32).ok());
  ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  EXPECT_EQ(a.bytes[4], 112u);
  EXPECT_EQ(b.bytes[2], 7u);
  a.bytes[5] = 3;
  ASSERT_TRUE(lane.atomic(ki::add_words(), a.from, 40, to, 16, &a.from, 48).ok());
  ASSERT_TRUE(lane.signal(to, 5, 2).ok());
  ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  EXPECT_EQ(a.bytes[6], 7u);
  EXPECT_EQ(b.bytes[2], 10u);
  EXPECT_EQ(lane.wait_signal(b.signal(5), 2, ki_soon()).waited, Waited::ok);
  EXPECT_EQ(lane.drain(ki_soon()).waited, Waited::ok);
}

TEST(KiOnCassini, EveryOperationOfOneOwner) {
  KiEnd a(0, kOneOwner), b(1, kOneOwner);
  every_operation<Sharing::one_thread>(a, b);
}
TEST(KiOnCassini, EveryOperationWhereThreadsShare) {
  KiEnd a(0, kManyOwners), b(1, kManyOwners);
  every_operation<Sharing::many_threads>(a, b);
}

// The peer's Lane waits for its own counter, which our puts count on.
TEST(KiOnCassini, ModelATargetCounters) {
  KiEnd a(0, kOneOwner), b(1, kOneOwner);
  device::run_on_cpu({.blocks = 2, .threads = 1}, [&](unsigned block, unsigned) {
    KiEnd& mine = block == 0 ? a : b;
    KiEnd& other = block == 0 ? b : a;
    ki::Lane<Sharing::one_thread> lane(mine.handle());
    for (std::uint64_t round = 1; round <= 200; ++round) {
      if (block == 0) {
        mine.bytes[100] = round;
        ASSERT_TRUE(lane.put(mine.from, 800, mine.at(other), 808, 8, {.room_ns = 20'000'000'000}).ok());
      }
      ASSERT_EQ(lane.wait_counter(1, round, ki_soon()).waited, Waited::ok) << block << " " << round;
      ASSERT_EQ(__atomic_load_n(&mine.bytes[101], __ATOMIC_ACQUIRE), round);
      if (block == 1) {
        mine.bytes[100] = round;
        ASSERT_TRUE(lane.put(mine.from, 800, mine.at(other), 808, 8, {.room_ns = 20'000'000'000}).ok());
      }
    }
    ASSERT_EQ(lane.flush(ki_soon()).waited, Waited::ok);
  });
}

TEST(KiOnCassini, ModelBSignals) {
  KiEnd a(0, kOneOwner), b(1, kOneOwner);
  device::run_on_cpu({.blocks = 2, .threads = 1}, [&](unsigned block, unsigned) {
    KiEnd& mine = block == 0 ? a : b;
    KiEnd& other = block == 0 ? b : a;
    ki::Lane<Sharing::one_thread> lane(mine.handle());
    const ki::RemoteMemory to = mine.at(other);
    const auto tell = [&](std::uint64_t round) {
      mine.bytes[200] = round;
      const ki::Pending put = lane.put_signal(mine.from, 1600, to, 1608, 8, 3, 10, {.room_ns = 20'000'000'000});
      ASSERT_TRUE(put.ok());
      if (round % 7 == 0) {
        ASSERT_EQ(lane.wait(put, ki_soon()).waited, Waited::ok);
      }
    };
    for (std::uint64_t round = 1; round <= 200; ++round) {
      if (block == 0) tell(round);
      ASSERT_EQ(lane.wait_signal(mine.signal(3), round * 10, ki_soon()).waited, Waited::ok) << block << " " << round;
      ASSERT_EQ(__atomic_load_n(&mine.bytes[201], __ATOMIC_ACQUIRE), round);
      if (block == 1) tell(round);
    }
  });
}

TEST(KiOnCassini, WarpsOnOneQueueLoseNothing) {
  KiEnd a(0, kManyOwners), b(1, kManyOwners);
  std::atomic<unsigned> failed{0};
  device::run_on_cpu({.blocks = 3, .threads = 8, .warp_size = 8}, [&](unsigned block, unsigned thread) {
    ki::Lane<Sharing::many_threads, device::Warp> lane(a.handle());
    const std::uint64_t who = 1000 + block * 8 + thread;
    for (std::uint64_t round = 1; round <= 40; ++round) {
      a.bytes[who] = round;
      const ki::Pending put = lane.put_each(a.from, 8 * who, a.at(b), 8 * who, 8, {.room_ns = 20'000'000'000});
      if (!put.ok() || lane.wait(put, ki_soon()).waited != Waited::ok) ++failed;
      if (__atomic_load_n(&b.bytes[who], __ATOMIC_ACQUIRE) != round) ++failed;
    }
  });
  EXPECT_EQ(failed, 0u);
  ki::Lane<Sharing::many_threads> reader(b.handle());
  EXPECT_EQ(reader.read_counter(1, ki_soon()).success, 3u * 8 * 40);
}

TEST(KiOnCassini, DoorbellsAreAllCountedAndReset) {
  KiEnd a(0, kManyOwners);
  device::run_on_cpu({.blocks = 4, .threads = 1}, [&](unsigned, unsigned) {
    ki::Lane<Sharing::many_threads> lane(a.handle());
    for (unsigned i = 0; i < 5000; ++i) (void)lane.raise_counter(2, 1);
  });
  ki::Lane<Sharing::many_threads> lane(a.handle());
  EXPECT_EQ(lane.wait_counter(2, 20000, ki_soon()).waited, Waited::ok);
  EXPECT_EQ(lane.read_counter(2, ki_soon()).success, 20000u);
  EXPECT_EQ(lane.reset_counter(2, ki_soon()).waited, Waited::ok);
  EXPECT_EQ(lane.read_counter(2, ki_soon()).success, 0u);
}

TEST(KiOnCassini, FailuresEndTheWaitWithTheirCode) {
  KiEnd a(0, kOneOwner), b(1, kOneOwner);
  ki::Lane<Sharing::one_thread> lane(a.handle());
  Exposed nowhere = b.data;
  nowhere.index = 77;
  const ki::RemoteMemory to = a.queue->remote(nowhere, &b.words);
  ASSERT_TRUE(lane.put(a.from, 0, to, 0, 8, {.tag = 99}).ok());
  const ki::Outcome out = lane.flush(ki_soon());
  EXPECT_EQ(out.waited, Waited::error);
  EXPECT_EQ(out.failures, 1u);
  EXPECT_EQ(out.code, w::ReturnCode::ptlte_not_found);
  EXPECT_EQ(out.tag, 99u);
  const ki::Pending signalled = lane.put_signal(a.from, 0, to, 0, 8, 0, 1);
  ASSERT_TRUE(signalled.ok());
  EXPECT_EQ(lane.wait(signalled, ki_soon()).waited, Waited::error);
  EXPECT_EQ(b.signals[0], 0u);
}

TEST(KiOnCassini, TheHostEndsAWait) {
  KiEnd a(0, kOneOwner);
  ki::Lane<Sharing::one_thread> lane(a.handle());
  a.queue->abort(true);
  EXPECT_EQ(lane.wait_counter(1, 1, ki_soon()).waited, Waited::aborted);
  a.queue->abort(false);
  EXPECT_EQ(lane.wait_counter(1, 1, Deadline::after_ns(1'000'000)).waited, Waited::timeout);
}

TEST(KiOnCassini, PartsAreWholePagesAndSayWhatTheyAre) {
  KiEnd a(0, kOneOwner);
  EXPECT_EQ(a.queue->parts().size(), 6u + kOneOwner.counters);
  for (const KiQueue::Part& part : a.queue->parts()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.pages.data()) % sys::page_bytes(), 0u) << part.what;
    EXPECT_EQ(part.pages.size() % sys::page_bytes(), 0u) << part.what;
    EXPECT_FALSE(part.registers) << part.what;  // a software device has none
  }
  std::vector<std::byte> small(8);
  EXPECT_FALSE(a.queue->prepare_state(a.queue->view_from_here(0), small));
  EXPECT_FALSE(KiQueue::make(*a.device, {.counters = 0}));
  EXPECT_FALSE(KiQueue::make(*a.device, {.places = 3}));
  EXPECT_FALSE(KiQueue::make(*a.device, {.places = 2048}));
  EXPECT_FALSE(a.queue->expose(KiEnd::request(a.bytes.data(), 8), 99));
}

}  // namespace
}  // namespace strait::rail::cxi
