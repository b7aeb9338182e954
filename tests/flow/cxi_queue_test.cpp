// SPDX-License-Identifier: Apache-2.0
// Queues of a CXI device through the public calls, with CPU threads in the place of kernels: within this process,
// between two, and what is refused.
#include "strait/cxi_queue.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "strait/device/cxi/lane.hpp"

namespace strait {
namespace {

namespace ki = device::cxi;
using device::Deadline;
using device::Sharing;
using device::Waited;

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint32_t kArrivals = 1;  // the counter that peers' puts count on

Deadline in_time() {
  return Deadline::after_ns(20'000'000'000);
}

// A device, a queue on it, memory for peers to write and signals for them to raise.
struct CxiEnd {
  explicit CxiEnd(const std::string& name, CxiQueueOptions options = {})
      : device(CxiDevice::open(name).value()),
        queue(CxiQueue::open(device, options).value()),
        memory(queue.expose({data.data(), kBytes}, kArrivals).value()),
        words(queue.expose({signals.data(), signals.size() * 8}).value()),
        from(queue.local({data.data(), kBytes}).value()) {}
  alignas(4096) std::array<std::uint64_t, kBytes / 8> data{};
  alignas(4096) std::array<std::uint64_t, 512> signals{};
  CxiDevice device;
  CxiQueue queue;
  CxiPlace memory, words;
  ki::LocalMemory from;
};

TEST(CxiQueues, PutCountAndSignal) {
  const auto a = std::make_unique<CxiEnd>("local0");
  const auto b = std::make_unique<CxiEnd>("local1", CxiQueueOptions{.sharing = Sharing::many_threads});
  ki::Lane<Sharing::one_thread> lane(a->queue.handle().value());
  ki::Lane<Sharing::many_threads> other(b->queue.handle().value());
  ASSERT_TRUE(lane.usable() && other.usable());
  const ki::RemoteMemory to = a->queue.remote(b->memory, &b->words).value();
  a->data[0] = 4711;
  ASSERT_TRUE(lane.put(a->from, 0, to, 64, 8, {.arm = true}).ok());
  ASSERT_EQ(lane.flush(in_time()).waited, Waited::ok);
  EXPECT_EQ(b->data[8], 4711u);
  EXPECT_EQ(other.wait_counter(kArrivals, 1, in_time()).success, 1u);
  const ki::Pending put = lane.put_signal(a->from, 0, to, 72, 8, 3, 5);
  ASSERT_TRUE(put.ok());
  ASSERT_EQ(lane.wait(put, in_time()).waited, Waited::ok);
  EXPECT_EQ(other.wait_signal(b->queue.signal(&b->signals[3]).value(), 5, in_time()).value, 5u);
  EXPECT_EQ(b->data[9], 4711u);
  // Beyond what was exposed, the device refuses; so does the Lane, which knows the length.
  EXPECT_EQ(lane.put(a->from, 0, to, kBytes, 8).posted, ki::Posted::invalid);
  b->queue.abort();
  EXPECT_EQ(other.wait_counter(kArrivals, 100, in_time()).waited, Waited::aborted);
  b->queue.abort(false);
  EXPECT_EQ(other.wait_counter(kArrivals, 2, in_time()).waited, Waited::ok);
}

// The child is born before there is any thread. Each puts a number into the other's memory, a hundred times in turn.
TEST(CxiQueues, BetweenTwoProcesses) {
  int down[2], up[2];
  ASSERT_EQ(::pipe(down), 0);
  ASSERT_EQ(::pipe(up), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  const int in = child == 0 ? down[0] : up[0];
  const int out = child == 0 ? up[1] : down[1];
  const auto play = [&]() -> int {
    // A card each, of the server that both share.
    const auto mine = std::make_unique<CxiEnd>(child == 0 ? "soft1" : "soft0");
    CxiPlace theirs{};
    if (::write(out, &mine->memory, sizeof theirs) != sizeof theirs) return 1;
    if (::read(in, &theirs, sizeof theirs) != sizeof theirs) return 2;
    ki::Lane<Sharing::one_thread> lane(mine->queue.handle().value());
    const ki::RemoteMemory to = mine->queue.remote(theirs).value();
    for (std::uint64_t round = 1; round <= 100; ++round) {
      const auto put = [&] {
        mine->data[0] = round;
        return lane.put(mine->from, 0, to, 8, 8, {.room_ns = 20'000'000'000}).ok() &&
               lane.flush(in_time()).waited == Waited::ok;
      };
      if (child != 0 && !put()) return 3;
      if (lane.wait_counter(kArrivals, round, in_time()).waited != Waited::ok) return 4;
      if (__atomic_load_n(&mine->data[1], __ATOMIC_ACQUIRE) != round) return 5;
      if (child == 0 && !put()) return 6;
    }
    // Neither goes before the other has all of it.
    char over = 0;
    return ::write(out, &over, 1) == 1 && ::read(in, &over, 1) == 1 ? 0 : 7;
  };
  const int result = play();
  if (child == 0) ::_exit(result);
  EXPECT_EQ(result, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  for (const int fd : {down[0], down[1], up[0], up[1]}) ::close(fd);
}

// However seldom the device says how far it has read: a ring that is full has room again in time.
TEST(CxiQueues, UpdatePolicies) {
  using Policy = wire::cxi::CqPolicy;
  for (const Policy policy : {Policy::always, Policy::high_freq_empty, Policy::low_freq_empty, Policy::low_freq}) {
    for (const char* const host : {"local", "soft"}) {
      SCOPED_TRACE(std::string(host) + " " + std::to_string(static_cast<unsigned>(policy)));
      const auto a = std::make_unique<CxiEnd>(std::string(host) + "0",
                                              CxiQueueOptions{.depth_blocks = 64, .update_policy = policy});
      const auto b = std::make_unique<CxiEnd>(std::string(host) + "1");
      ki::Lane<Sharing::one_thread> lane(a->queue.handle().value());
      const ki::RemoteMemory to = a->queue.remote(b->memory).value();
      for (std::uint64_t i = 1; i <= 500; ++i) {
        a->data[i % 64] = i;
        ASSERT_TRUE(lane.put(a->from, i % 64 * 8, to, i % 64 * 8, 8, {.room_ns = 20'000'000'000}).ok()) << i;
        if (i % 64 != 63) continue;  // what is put stays as it is until it is there
        ASSERT_EQ(lane.flush(in_time()).waited, Waited::ok) << i;
      }
      ASSERT_EQ(lane.flush(in_time()).waited, Waited::ok);
      EXPECT_EQ(b->data[500 % 64], 500u);
    }
  }
}

// Whoever has the place may do what it was exposed for, and no more; and nothing once it was taken back.
TEST(CxiQueues, RightsAndTheirEnd) {
  const auto a = std::make_unique<CxiEnd>("local0");
  const auto b = std::make_unique<CxiEnd>("local1");
  // By a queue of its own each: a counter that has failures ends every wait.
  const auto moves = [&](bool writes, const CxiPlace& place) {
    const CxiQueue own = CxiQueue::open(a->device).value();
    const ki::LocalMemory from = own.local({a->data.data(), kBytes}).value();
    const ki::RemoteMemory to = own.remote(place).value();
    ki::Lane<Sharing::one_thread> lane(own.handle().value());
    EXPECT_TRUE((writes ? lane.put(from, 0, to, 0, 8) : lane.get(from, 8, to, 0, 8)).ok());
    const Waited waited = lane.flush(in_time()).waited;
    EXPECT_TRUE(waited == Waited::ok || waited == Waited::error);
    return waited == Waited::ok;
  };
  const auto put = [&](const CxiPlace& place) { return moves(true, place); };
  const auto get = [&](const CxiPlace& place) { return moves(false, place); };
  const CxiMemory memory{b->data.data(), kBytes};
  const CxiPlace to_write = b->queue.expose(memory, STRAIT_CXI_NO_COUNTER, access::remote_write).value();
  const CxiPlace to_read = b->queue.expose(memory, STRAIT_CXI_NO_COUNTER, access::remote_read).value();
  a->data[0] = 11;
  EXPECT_TRUE(put(to_write));
  EXPECT_EQ(b->data[0], 11u);
  EXPECT_TRUE(get(to_read));
  EXPECT_EQ(a->data[1], 11u);
  EXPECT_FALSE(get(to_write));
  a->data[0] = 12;
  EXPECT_FALSE(put(to_read));
  EXPECT_EQ(b->data[0], 11u);
  // Memory that nobody may write.
  static constexpr std::uint64_t kFixed = 4711;
  const CxiMemory fixed{const_cast<std::uint64_t*>(&kFixed), sizeof kFixed};
  EXPECT_FALSE(b->queue.expose(fixed));
  const CxiPlace constant = b->queue.expose(fixed, STRAIT_CXI_NO_COUNTER, access::remote_read).value();
  EXPECT_TRUE(get(constant));
  EXPECT_EQ(a->data[1], kFixed);
  // Taken back, and taken back again.
  ASSERT_TRUE(b->queue.unexpose(to_write));
  EXPECT_FALSE(put(to_write));
  EXPECT_EQ(b->data[0], 11u);
  EXPECT_FALSE(b->queue.unexpose(to_write));
  EXPECT_FALSE(a->queue.unexpose(to_read)) << "another queue's";
  EXPECT_TRUE(get(to_read)) << "others stay";
  // A PID has 255 portal entries to give: without taking back that is the end, with it there is none.
  for (int i = 0; i < 300; ++i) {
    const auto place = b->queue.expose(memory);
    ASSERT_TRUE(place) << i << ": " << place.error().text;
    EXPECT_NE(place->index, to_read.index);
    ASSERT_TRUE(b->queue.unexpose(*place)) << i;
  }
  const ki::LocalMemory piece = a->queue.local({a->data.data(), 64}).value();
  ASSERT_TRUE(a->queue.release(piece));
  EXPECT_FALSE(a->queue.release(piece));
  ki::Lane<Sharing::one_thread> lane(a->queue.handle().value());
  ASSERT_TRUE(lane.get(piece, 0, a->queue.remote(to_read).value(), 0, 8).ok());
  EXPECT_EQ(lane.flush(in_time()).waited, Waited::error) << "it is not reached any more";
}

// Memory of an accelerator of the queue's Node, by its address alone, as source, target and both.
TEST(CxiQueues, MemoryOfAnAccelerator) {
  Node node = Node::open().value();
  const Memory memory = node.allocate(kBytes, {.near = "soft:0"}).value();
  std::vector<std::uint64_t> there(kBytes / 8);
  for (const char* const name : {"local0", "soft0"}) {
    const auto host = std::make_unique<CxiEnd>(name, CxiQueueOptions{.node = &node});
    const CxiQueue& queue = host->queue;
    const CxiMemory device{memory.data(), kBytes};
    const ki::LocalMemory from = queue.local(device).value();
    const ki::RemoteMemory into = queue.remote(queue.expose(device).value()).value();
    const ki::RemoteMemory back = queue.remote(host->memory).value();
    ki::Lane<Sharing::one_thread> lane(queue.handle().value());
    for (std::size_t i = 0; i < host->data.size(); ++i) host->data[i] = 7 * i + static_cast<unsigned char>(name[0]);
    ASSERT_TRUE(lane.put(host->from, 0, into, 0, 1024).ok());
    ASSERT_TRUE(lane.put(from, 0, into, 2048, 1024).ok());
    ASSERT_TRUE(lane.put(from, 2048, back, 1024, 1024).ok());
    ASSERT_EQ(lane.flush(in_time()).waited, Waited::ok) << name;
    ASSERT_TRUE(node.copy(there.data(), memory.data(), kBytes));
    for (std::size_t i = 0; i < 128; ++i) {
      ASSERT_EQ(there[i], host->data[i]) << name;
      ASSERT_EQ(there[256 + i], host->data[i]) << name;
      ASSERT_EQ(host->data[128 + i], host->data[i]) << name;
    }
  }
}

TEST(CxiQueues, WhatIsRefusedAndWhy) {
  const auto end = std::make_unique<CxiEnd>("local0");
  const auto why = [](const auto& result) { return result ? std::string() : result.error().text; };
  EXPECT_EQ(why(CxiDevice::open("cxi9999")).find("cxi9999") == std::string::npos, false);
  EXPECT_NE(why(CxiQueue::open(end->device, {.near = "cuda:0"})).find("no Node was given"), std::string::npos);
  EXPECT_NE(why(CxiQueue::open(end->device, {.signalled_puts = 3})).find("power of two"), std::string::npos);
  EXPECT_NE(why(CxiQueue::open(end->device, {.counters = 100'000})).find("counters"), std::string::npos);
  EXPECT_FALSE(CxiQueue::open(end->device, {.service = 4000}));
  EXPECT_NE(why(end->queue.local({nullptr, 8})).find("no memory"), std::string::npos);
  EXPECT_NE(why(end->queue.local({end->data.data(), 0})).find("no memory"), std::string::npos);
  EXPECT_FALSE(end->queue.local({reinterpret_cast<void*>(8), 8}));
  EXPECT_FALSE(end->queue.expose({end->data.data(), kBytes}, 4)) << "it has counters 0 to 3";
  EXPECT_FALSE(end->queue.expose({end->data.data(), kBytes, 9999}));
  const auto* const odd = reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const char*>(&end->signals[0]) + 4);
  EXPECT_NE(why(end->queue.signal(odd)).find("multiple of 8"), std::string::npos);
  // The C calls: null, another version.
  ki::Queue handle{};
  EXPECT_EQ(strait_cxi_queue_handle(end->queue.raw(), &handle, sizeof handle - 8, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_cxi_queue_handle(nullptr, &handle, sizeof handle, nullptr), STRAIT_INVALID);
  strait_cxi_queue* none = nullptr;
  EXPECT_EQ(strait_cxi_queue_open(nullptr, nullptr, nullptr, &none, nullptr), STRAIT_INVALID);
  strait_cxi_queue_options options{};
  EXPECT_EQ(strait_cxi_queue_open(end->device.raw(), nullptr, &options, &none, nullptr), STRAIT_INVALID);
  options.struct_size = sizeof options;
  options.sharing = 7;
  EXPECT_EQ(strait_cxi_queue_open(end->device.raw(), nullptr, &options, &none, nullptr), STRAIT_INVALID);
  options.sharing = STRAIT_SHARING_ONE_THREAD;
  options.update_policy = 4;
  EXPECT_EQ(strait_cxi_queue_open(end->device.raw(), nullptr, &options, &none, nullptr), STRAIT_INVALID);
  strait_cxi_memory memory{};
  strait_cxi_place place{};
  EXPECT_EQ(strait_cxi_expose(end->queue.raw(), &memory, 0, STRAIT_REMOTE_READ, &place, nullptr), STRAIT_INVALID);
  memory = {sizeof memory, -1, end->data.data(), kBytes, 0};
  EXPECT_EQ(strait_cxi_expose(end->queue.raw(), &memory, 0, 0, &place, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_cxi_expose(end->queue.raw(), &memory, 0, STRAIT_REMOTE_ATOMIC, &place, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_cxi_unexpose(end->queue.raw(), nullptr, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_cxi_release(end->queue.raw(), &end->from, sizeof end->from - 8, nullptr), STRAIT_INVALID);
  strait_cxi_queue_close(nullptr);
  strait_cxi_queue_abort(nullptr, 1);
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace strait
