// SPDX-License-Identifier: Apache-2.0
// The suite of device/lane.hpp, for any machine that can run its bodies: CPU threads here, a GPU in
// gpu/lane_gpu_test.cu. A machine has run(blocks, threads, body), shared(bytes) for memory that it and the CPU reach,
// state(bytes) for memory that its posters reach, and store and load to fill and read the latter.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "lane_bodies.hpp"
#include "paper_nic.hpp"

namespace suite {

using namespace bodies;
namespace mlx5 = strait::wire::mlx5;

inline constexpr std::uint32_t kLocalKey = 0x1001, kRemoteKey = 0x2002, kSignalKey = 0x2003, kSinkKey = 0x1004;
inline constexpr unsigned kSignals = 8, kCounters = 4;
inline constexpr std::size_t kBytes = 1u << 20;

struct Shape {
  Sharing sharing = Sharing::one_thread;
  unsigned log_blocks = 6;
  std::uint64_t first = 0;  // index of the first WQE
};

// One connection between two queues on the NIC on paper.
template <class Machine>
class Street {
 public:
  explicit Street(const Shape& shape) : shape_(shape) {
    local_ = machine_.shared(kBytes);
    remote_ = machine_.shared(kBytes);
    words_ = reinterpret_cast<std::uint64_t*>(machine_.shared(4096));
    answers_ = reinterpret_cast<std::uint64_t*>(machine_.shared(65536));
    abort_ = reinterpret_cast<std::uint32_t*>(machine_.shared(4096));
    for (std::size_t i = 0; i < kBytes; ++i) local_[i] = static_cast<std::uint8_t>(i * 131 + i / 256);
    open(0, 0x51);
    open(1, 0x52);
    ends_[0].other = &ends_[1];
    ends_[1].other = &ends_[0];
    nic_.allow(kLocalKey, local_, kBytes);
    nic_.allow(kRemoteKey, remote_, kBytes);
    nic_.allow(kSignalKey, words_, 8 * kSignals);
    nic_.allow(kSinkKey, words_ + 256, 8);
    nic_.serve(&ends_[0]);
    nic_.serve(&ends_[1]);
  }

  Stage stage() const {
    Stage s{};
    s.a = {head_of<Queue>(), shape_.sharing, 0, states_[0]};
    s.b = {head_of<Queue>(), shape_.sharing, 0, states_[1]};
    s.local = {head_of<LocalRegion>(), at(local_), kBytes, kLocalKey, 0};
    s.remote = {head_of<RemoteRegion>(), at(remote_), kBytes, at(words_), kRemoteKey, kSignalKey, kSignals, 0};
    s.wrong = s.remote;
    s.wrong.rkey = 0xbad;
    s.signal = {head_of<Signal>(), words_ + 3};
    s.answers = answers_;
    s.patience_ns = 20'000'000'000;
    return s;
  }
  template <class Body>
  void run(unsigned blocks, unsigned threads, const Body& body) {
    machine_.run(blocks, threads, body);
  }
  QueueState state(unsigned which = 0) {
    QueueState s;
    machine_.load(&s, states_[which], sizeof s);
    return s;
  }

  const Shape shape_;
  Machine machine_;
  std::uint8_t *local_, *remote_;
  std::uint64_t *words_, *answers_;
  std::uint32_t* abort_;
  paper::End ends_[2];
  QueueState* states_[2] = {};
  paper::Nic nic_;  // goes first

 private:
  static std::uint64_t at(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  void open(unsigned which, std::uint32_t qpn) {
    const std::size_t blocks = std::size_t{1} << shape_.log_blocks;
    constexpr unsigned log_receives = 3;
    paper::End& end = ends_[which];
    end.blocks = end.send_entries = static_cast<std::uint32_t>(blocks);
    end.receives = end.receive_entries = 1u << log_receives;
    end.send = machine_.shared(blocks * 64);
    end.receive = machine_.shared(4096);
    end.sends_done = machine_.shared(blocks * 64);
    end.receives_done = machine_.shared(4096);
    end.record = reinterpret_cast<std::uint32_t*>(machine_.shared(4096));
    end.qpn = qpn;
    end.next = shape_.first;
    end.record[1] = __builtin_bswap32(static_cast<std::uint32_t>(shape_.first & 0xffff));
    for (std::size_t i = 0; i < blocks; ++i) end.sends_done[64 * i + 63] = 0xf0;
    for (std::size_t i = 0; i < end.receive_entries; ++i) end.receives_done[64 * i + 63] = 0xf0;

    QueueMemory m;
    m.sharing = shape_.sharing;
    m.send.blocks = end.send;
    m.send.log_blocks = shape_.log_blocks;
    m.send.qpn = qpn;
    m.send.record = reinterpret_cast<mlx5::QueueRecord*>(end.record);
    m.send.doorbell = end.record + 16;
    m.send.marks = static_cast<std::uint64_t*>(machine_.state(blocks * 8));
    m.send.first_index = shape_.first;
    m.sends.entries = end.sends_done;
    m.sends.log_entries = shape_.log_blocks;
    m.receive.entries = end.receive;
    m.receive.log_entries = log_receives;
    m.receive.record = m.send.record;
    m.receive.marks = static_cast<std::uint64_t*>(machine_.state(end.receives * 8));
    m.receives.entries = end.receives_done;
    m.receives.log_entries = log_receives;
    m.counters = kCounters;
    m.counter_words = static_cast<CounterWords*>(machine_.state(sizeof(CounterWords) * kCounters));
    m.counter_of = static_cast<std::uint32_t*>(machine_.state(blocks * 4));
    m.abort = abort_;
    m.sink_address = at(words_ + 256);
    m.sink_lkey = kSinkKey;
    QueueState prepared;
    ASSERT_TRUE(open_queue(prepared, m));
    states_[which] = static_cast<QueueState*>(machine_.state(sizeof(QueueState)));
    machine_.store(states_[which], &prepared, sizeof prepared);
  }
};

// What a group posts, byte by byte: addresses differ between runs, so the regions lie at made-up ones and the NIC is
// stopped.
template <class Machine, class G, bool members>
std::vector<std::uint8_t> bytes_of_group(unsigned threads, std::uint64_t posted) {
  constexpr unsigned log_blocks = 9;
  using Body = GroupScript<G, members>;
  using Item = typename Lane<Sharing::one_thread, G>::Item;
  Street<Machine> street({Sharing::one_thread, log_blocks, 65500});
  street.nic_.stall(true);
  Stage stage = street.stage();
  stage.local.address = 0x10000000;
  stage.remote.address = 0x20000000;
  auto* const items = reinterpret_cast<Item*>(street.machine_.shared(Body::kItems * sizeof(Item)));
  for (std::uint64_t i = 0; i < Body::kItems; ++i) items[i] = {24 * i, 4096 - 16 * i, i % 7 == 6 ? 0 : 3 * i + 1};
  street.run(1, threads, Body{stage, items});
  EXPECT_EQ(street.answers_[0], 0u);
  EXPECT_EQ(street.state().send.slots.reserved, 65500u + posted);
  // Bytes behind the last segment of a WQE are nobody's: zero here, since the memory began so.
  return {street.ends_[0].send, street.ends_[0].send + (std::size_t{64} << log_blocks)};
}
inline void same_bytes(const std::vector<std::uint8_t>& one, const std::vector<std::uint8_t>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    ASSERT_EQ(one[i], other[i]) << "byte " << i % 64 << " of block " << i / 64;
}
inline constexpr std::uint64_t kListBlocks = (11 + 12 + 13) + 3 * (40 + 7), kMemberBlocks = 3 * 2 * 32;

template <class Machine>
class LaneOn : public testing::Test {};
TYPED_TEST_SUITE_P(LaneOn);

TYPED_TEST_P(LaneOn, EveryOperationOnce) {
  // 16 bits on the wire: the index wraps in the middle of it.
  Street<TypeParam> street({Sharing::one_thread, 3, 65530});
  std::memset(street.remote_, 0x5a, kBytes);
  std::memset(street.remote_ + 512, 0, 8);
  Everything body{street.stage()};
  street.run(1, 1, body);
  for (unsigned i = 0; i + 1 < Everything::kAnswers; ++i) EXPECT_EQ(street.answers_[i], 0u) << i;
  EXPECT_EQ(street.answers_[15], 5u);
  EXPECT_EQ(std::memcmp(street.remote_, street.local_, 256), 0);
  EXPECT_EQ(std::memcmp(street.local_ + 1024, street.remote_ + 64, 128), 0);
  const std::uint8_t values[] = {0x11, 0x5a, 0x33, 0x22, 0x77, 0x66, 0x55, 0x44, 0x5a, 0x5a,
                                 0x5a, 0x5a, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88};
  EXPECT_EQ(std::memcmp(street.remote_ + 300, values, sizeof values), 0);
  const std::uint64_t olds[] = {0, 5, 11, 77};
  EXPECT_EQ(std::memcmp(street.local_ + 2048, olds, sizeof olds), 0);
  EXPECT_EQ(std::memcmp(street.remote_ + 600, street.local_, 40), 0);
  EXPECT_EQ(street.remote_[640], 0x5a);
  const QueueState state = street.state();
  EXPECT_EQ(state.send.slots.reserved, state.send.slots.completed);
  EXPECT_EQ(state.send.slots.reserved, 65530u + 15u);
  EXPECT_EQ(state.failure, 0u);
}

TYPED_TEST_P(LaneOn, AFenceIsForTheNextOperationOnly) {
  Street<TypeParam> street({Sharing::one_thread, 6, 0});
  Everything body{street.stage()};
  street.run(1, 1, body);
  std::vector<unsigned> fenced;
  for (unsigned i = 0; i < 15; ++i)
    if ((paper::decode(street.ends_[0].send, 64, i).flags & 0xe0) != 0) fenced.push_back(i);
  EXPECT_EQ(fenced, std::vector<unsigned>{8});
}

TYPED_TEST_P(LaneOn, AFenceIsForTheFirstOfMany) {
  Street<TypeParam> street({Sharing::one_thread, 6, 0});
  FencedGroups body{street.stage()};
  street.run(1, 32, body);
  EXPECT_EQ(street.answers_[0], 0u);
  std::vector<unsigned> fenced, signaled;
  for (unsigned i = 0; i < 8 + 32; ++i) {
    const unsigned flags = paper::decode(street.ends_[0].send, 64, i).flags;
    if ((flags & 0xe0) != 0) fenced.push_back(i);
    if ((flags & 0x0c) != 0) signaled.push_back(i);
  }
  EXPECT_EQ(fenced, (std::vector<unsigned>{0, 8}));
  EXPECT_EQ(signaled, (std::vector<unsigned>{7, 39})) << "one completion for all";
}

TYPED_TEST_P(LaneOn, ARefusedOperationLeavesTheFenceForTheNext) {
  using Body = RefusedBehindAFence;
  for (const Body::Kind kind : {Body::kOne, Body::kEach, Body::kList}) {
    SCOPED_TRACE(kind);
    Street<TypeParam> street({Sharing::one_thread, 6, 0});
    street.run(1, 32, Body{street.stage(), 64, kind});
    EXPECT_EQ(street.answers_[0], 0u);
    std::vector<unsigned> fenced;
    for (unsigned i = 0; i < 64; ++i)
      if ((paper::decode(street.ends_[0].send, 64, i).flags & 0xe0) != 0) fenced.push_back(i);
    EXPECT_EQ(fenced, std::vector<unsigned>{0}) << "the first behind the full ring";
  }
}

template <class Machine, Sharing S, class G>
void each_member_puts_its_own(unsigned blocks, unsigned threads, unsigned log_blocks) {
  Street<Machine> street({S, log_blocks, 65000});
  const unsigned rounds = 10;
  EachMember<S, G> body{street.stage(), rounds};
  street.run(blocks, threads, body);
  for (unsigned i = 0; i < blocks * threads; ++i) ASSERT_EQ(street.answers_[i], 0u) << i;
  const auto* const words = reinterpret_cast<const std::uint64_t*>(street.remote_);
  for (unsigned i = 0; i < blocks * threads * rounds; ++i) ASSERT_EQ(words[i], i + 1) << i;
  const QueueState state = street.state();
  EXPECT_EQ(state.send.slots.rung, state.send.slots.reserved);
  EXPECT_EQ(state.send.slots.reserved, 65000u + blocks * threads * rounds);
}
TYPED_TEST_P(LaneOn, AWarpOwnsAQueue) {
  each_member_puts_its_own<TypeParam, Sharing::one_thread, Warp>(1, 32, 6);
}
TYPED_TEST_P(LaneOn, ABlockOwnsAQueue) {
  each_member_puts_its_own<TypeParam, Sharing::one_thread, Block>(1, 64, 6);
}
TYPED_TEST_P(LaneOn, WarpsOfABlockShareAQueue) {
  each_member_puts_its_own<TypeParam, Sharing::one_block, Warp>(1, 96, 6);
}
TYPED_TEST_P(LaneOn, WarpsOfAGridShareAQueue) {
  each_member_puts_its_own<TypeParam, Sharing::many_threads, Warp>(3, 64, 7);
}

template <class Machine, Sharing S>
void crowd_on_one_queue(unsigned blocks, unsigned threads) {
  Street<Machine> street({S, 5, 65500});
  const unsigned rounds = 24;
  Crowd<S> body{street.stage(), rounds};
  street.run(blocks, threads, body);
  for (unsigned i = 0; i < blocks * threads; ++i) ASSERT_EQ(street.answers_[i], 0u) << i;
  const auto* const words = reinterpret_cast<const std::uint64_t*>(street.remote_);
  for (unsigned i = 0; i < blocks * threads * rounds; ++i) ASSERT_EQ(words[i], i + 1) << i;
  const QueueState state = street.state();
  EXPECT_EQ(state.send.slots.rung, state.send.slots.reserved);
}
TYPED_TEST_P(LaneOn, ThreadsOfABlockForThemselves) {
  crowd_on_one_queue<TypeParam, Sharing::one_block>(1, 32);
}
TYPED_TEST_P(LaneOn, ThreadsOfAGridForThemselves) {
  crowd_on_one_queue<TypeParam, Sharing::many_threads>(4, 16);
}

TYPED_TEST_P(LaneOn, ListsLongerThanTheRing) {
  Street<TypeParam> street({Sharing::one_thread, 6, 0});
  constexpr unsigned count = 200;
  using Item = Lane<Sharing::one_thread, Warp>::Item;
  auto* const items = reinterpret_cast<Item*>(street.machine_.shared(count * sizeof(Item)));
  for (std::uint64_t i = 0; i < count; ++i) items[i] = {64 * i, 65536 + 8 * (count - i), 8};
  Lists body{street.stage(), count, items};
  street.run(1, 32, body);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(street.answers_[i], 0u) << i;
  EXPECT_EQ(street.answers_[4], static_cast<std::uint64_t>(Posted::too_long)) << "a list that no ring holds";
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(street.answers_[8 + i], static_cast<std::uint64_t>(i == 3 ? Posted::invalid : Posted::ok)) << i;
  EXPECT_EQ(std::memcmp(street.remote_ + kBytes - 24, street.local_, 24), 0);
  const auto* const values = reinterpret_cast<const std::uint64_t*>(street.remote_ + 131072);
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], i + 1000) << i;
    ASSERT_EQ(std::memcmp(street.remote_ + 32 * i, street.local_ + 16 * i, 16), 0) << i;
    ASSERT_EQ(std::memcmp(street.remote_ + 65536 + 8 * (count - i), street.local_ + 64 * i, 8), 0) << i;
  }
}

// What a list that ran out of time has posted, and what not.
template <class Machine>
void half_of_a_list(Street<Machine>& street, std::uint64_t posted) {
  EXPECT_EQ(street.answers_[0], static_cast<std::uint64_t>(Posted::full));
  EXPECT_EQ(street.answers_[1], static_cast<std::uint64_t>(Posted::ok));
  EXPECT_EQ(street.answers_[2], code(Waited::ok));
  EXPECT_EQ(street.state().send.slots.reserved, posted + 1);
  const auto* const values = reinterpret_cast<const std::uint64_t*>(street.remote_);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i < posted ? i + 1 : 0) << i;
}
// The ring is 8: two halves of it find room, the NIC does nothing, the third does not.
TYPED_TEST_P(LaneOn, AListThatFindsNoRoomHalfwaySaysSo) {
  Street<TypeParam> street({Sharing::one_thread, 3, 0});
  auto* const told = reinterpret_cast<std::uint64_t*>(street.machine_.shared(4096));
  street.nic_.stall(true);
  std::thread host([&] {
    while (__atomic_load_n(told, __ATOMIC_ACQUIRE) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    street.nic_.stall(false);
  });
  street.run(1, 32, LongList{street.stage(), 64, 20'000'000, told});
  host.join();
  half_of_a_list(street, 8);
  // The first of the list is overwritten by the put behind it: the fence was the list's, not that put's.
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(paper::decode(street.ends_[0].send, 8, i).flags & 0xe0, 0) << i;
}
// A NIC that makes room for a half now and then, each time within room_ns, but not for all within it.
TYPED_TEST_P(LaneOn, TheTimeToWaitForRoomIsThatOfTheWholeList) {
  Street<TypeParam> street({Sharing::one_thread, 3, 0});
  auto* const told = reinterpret_cast<std::uint64_t*>(street.machine_.shared(4096));
  street.nic_.stall(true);
  std::thread host([&] {
    using namespace std::chrono_literals;
    while (__atomic_load_n(told, __ATOMIC_ACQUIRE) == 0) {
      std::this_thread::sleep_for(200ms);
      street.nic_.go_on_for(4);
    }
    street.nic_.stall(false);
  });
  street.run(1, 32, LongList{street.stage(), 1024, 300'000'000, told});
  host.join();
  EXPECT_EQ(street.answers_[0], static_cast<std::uint64_t>(Posted::full));
  EXPECT_EQ(street.answers_[2], code(Waited::ok));
}

TYPED_TEST_P(LaneOn, AnEmptyListIsDoneWhenWhatWasBeforeItIs) {
  Street<TypeParam> street({Sharing::one_thread, 6, 0});
  street.run(1, 32, EmptyLists{street.stage(), nullptr});
  for (unsigned i = 0; i < EmptyLists::kAnswers; ++i) EXPECT_EQ(street.answers_[i], i == 4 ? 77u : 0u) << i;
  EXPECT_EQ(street.state().send.slots.reserved, street.state().send.slots.completed);
}

// Who has nothing to wait for must not leave the others alone in a barrier.
template <class Machine, Sharing S, class G>
void members_wait_together(unsigned threads, unsigned group) {
  Street<Machine> street({S, 7, 0});
  using Body = PartlyWrong<S, G>;
  street.run(1, threads, Body{street.stage()});
  const std::uint64_t error = code(Waited::error) | static_cast<std::uint64_t>(mlx5::Syndrome::local_qp_operation) << 8;
  for (unsigned t = 0; t < threads; ++t) {
    SCOPED_TRACE(testing::Message() << "thread " << t << " of groups of " << group);
    const std::uint64_t* const answer = street.answers_ + Body::kAnswers * t;
    const unsigned rank = t % group;
    EXPECT_EQ(answer[0], rank == 3 ? error : 0u);
    EXPECT_EQ(answer[1], rank == 0 ? error : 0u);
    EXPECT_EQ(answer[2], rank == 2 ? error : 0u);
    EXPECT_EQ(answer[3], error);
    EXPECT_EQ(std::memcmp(street.remote_ + 8 * t, street.local_, 8) == 0, rank != 3);
    EXPECT_EQ(street.remote_[4096 + 8 * t], rank == 0 ? 0u : t + 1);
  }
}
TYPED_TEST_P(LaneOn, MembersThatWereToldDifferentThingsWaitTogether) {
  members_wait_together<TypeParam, Sharing::one_thread, Warp>(32, 32);
  members_wait_together<TypeParam, Sharing::one_thread, Block>(64, 64);
  members_wait_together<TypeParam, Sharing::one_block, Warp>(64, 32);
  members_wait_together<TypeParam, Sharing::many_threads, Warp>(64, 32);
}

template <class Machine, Sharing S, class G>
void a_stalled_nic_hangs_nobody(unsigned threads, unsigned groups) {
  SCOPED_TRACE(testing::Message() << "sharing " << static_cast<unsigned>(S) << ", " << threads << " threads as "
                                  << groups);
  constexpr unsigned log_blocks = 6, capacity = 1u << log_blocks;
  using Body = Stalled<S, G>;
  using Item = typename Lane<S, G>::Item;
  for (const bool silent : {false, true}) {
    Street<Machine> street({S, log_blocks, 0});
    street.nic_.stall(true);
    auto* const items = reinterpret_cast<Item*>(street.machine_.shared(4096));
    for (std::uint64_t i = 0; i < 4; ++i) items[i] = {8 * i, 8 * i, 8};
    const auto begin = std::chrono::steady_clock::now();
    street.run(1, threads, Body{street.stage(), capacity, silent, items});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    for (unsigned g = 0; g < groups; ++g) {
      const std::uint64_t* answer = street.answers_ + Body::kStride * g;
      EXPECT_EQ(*answer++, 0u) << "the ring takes what it has room for";
      for (unsigned i = 0; i < Body::kPosts; ++i)
        EXPECT_EQ(*answer++, static_cast<std::uint64_t>(Posted::full)) << "post " << i << " of group " << g;
      for (unsigned i = 0; i < Body::kWaits; ++i)
        EXPECT_EQ(*answer++, code(Waited::timeout)) << "wait " << i << " of group " << g;
      for (unsigned i = 0; i < Body::kRest; ++i) EXPECT_EQ(*answer++, 0u) << "call " << i << " of group " << g;
    }
    EXPECT_EQ(street.state().send.slots.reserved, capacity) << "what was refused left nothing";
    street.nic_.stall(false);
  }
}
TYPED_TEST_P(LaneOn, AListIsTheSameBytesHoweverManyShareIt) {
  same_bytes(bytes_of_group<TypeParam, Thread, false>(1, kListBlocks),
             bytes_of_group<TypeParam, Warp, false>(32, kListBlocks));
}

TYPED_TEST_P(LaneOn, AStalledNicHangsNobody) {
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::one_thread, Thread>(1, 1);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::one_thread, Warp>(32, 1);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::one_thread, Block>(64, 1);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::one_block, Thread>(4, 4);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::one_block, Warp>(64, 2);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::many_threads, Thread>(4, 4);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::many_threads, Warp>(64, 2);
  a_stalled_nic_hangs_nobody<TypeParam, Sharing::many_threads, Block>(64, 1);
}

template <class Machine, Sharing S, class G>
void the_host_ends_every_wait(unsigned threads, unsigned groups) {
  SCOPED_TRACE(testing::Message() << "sharing " << static_cast<unsigned>(S) << ", " << threads << " threads as "
                                  << groups);
  constexpr unsigned log_blocks = 6, capacity = 1u << log_blocks;
  using Body = Endless<S, G>;
  Street<Machine> street({S, log_blocks, 0});
  street.nic_.stall(true);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    __atomic_store_n(street.abort_, 1u, __ATOMIC_RELEASE);
  });
  street.run(1, threads, Body{street.stage(), capacity});
  host.join();
  for (unsigned g = 0; g < groups; ++g) {
    const std::uint64_t* answer = street.answers_ + Body::kStride * g;
    for (unsigned i = 0; i < Body::kWaits; ++i)
      EXPECT_EQ(*answer++, code(Waited::aborted)) << "wait " << i << " of group " << g;
    for (unsigned i = 0; i < Body::kPosts; ++i)
      EXPECT_EQ(*answer++, static_cast<std::uint64_t>(Posted::aborted)) << "post " << i << " of group " << g;
    EXPECT_EQ(*answer, static_cast<std::uint64_t>(Posted::full)) << "group " << g;
  }
  EXPECT_EQ(street.state().send.slots.reserved, capacity) << "what was refused left nothing";
  street.nic_.stall(false);
}
TYPED_TEST_P(LaneOn, TheHostEndsEveryWait) {
  the_host_ends_every_wait<TypeParam, Sharing::one_thread, Thread>(1, 1);
  the_host_ends_every_wait<TypeParam, Sharing::one_thread, Warp>(32, 1);
  the_host_ends_every_wait<TypeParam, Sharing::one_thread, Block>(64, 1);
  the_host_ends_every_wait<TypeParam, Sharing::one_block, Thread>(4, 4);
  the_host_ends_every_wait<TypeParam, Sharing::one_block, Warp>(64, 2);
  the_host_ends_every_wait<TypeParam, Sharing::many_threads, Thread>(4, 4);
  the_host_ends_every_wait<TypeParam, Sharing::many_threads, Warp>(64, 2);
  the_host_ends_every_wait<TypeParam, Sharing::many_threads, Block>(64, 1);
}

template <class Machine, Sharing S, class G>
void a_failure_names_its_cause(unsigned threads) {
  Street<Machine> street({S, 5, 0});
  street.run(1, threads, Failing<S, G>{street.stage()});
  EXPECT_EQ(street.answers_[0], code(Waited::ok));
  EXPECT_EQ(street.answers_[1], code(Waited::error) | 0x13u << 8 | 0x13u << 16);
  EXPECT_EQ(street.answers_[2], code(Waited::error) | 0x05u << 8 | 0x13u << 16);
  EXPECT_EQ(street.answers_[3], 1u << 8 | 1u);
  EXPECT_EQ(street.answers_[4], 1u);
  EXPECT_EQ(street.answers_[5], code(Waited::error));
  EXPECT_EQ(street.answers_[6], code(Waited::ok)) << "nothing has failed yet";
  EXPECT_EQ(street.answers_[7], 1u << 8 | 0x88u);
  for (unsigned t = 0; t < threads; ++t)
    EXPECT_EQ(street.answers_[8 + t], code(Waited::error) | 0x13u << 8 | 0x13u << 16) << t;
  const Failure failure = unpack(street.state().failure);
  EXPECT_EQ(failure.index, 1u);
  EXPECT_EQ(failure.syndrome, mlx5::Syndrome::remote_access);
  EXPECT_EQ(failure.vendor_syndrome, 0x88);
}
TYPED_TEST_P(LaneOn, AFailureNamesItsCause) {
  a_failure_names_its_cause<TypeParam, Sharing::one_thread, Thread>(1);
  a_failure_names_its_cause<TypeParam, Sharing::one_thread, Warp>(32);
  a_failure_names_its_cause<TypeParam, Sharing::many_threads, Block>(64);
}

TYPED_TEST_P(LaneOn, MessagesFindTheirReceives) {
  Street<TypeParam> street({Sharing::one_thread, 5, 0});
  constexpr unsigned count = 40;
  Messages body{street.stage(), count};
  street.run(2, 1, body);
  EXPECT_EQ(street.answers_[0], 0u);
  EXPECT_EQ(street.answers_[1], 0u);
  for (unsigned i = 0; i < count; ++i)
    ASSERT_EQ(std::memcmp(street.local_ + 4096 + 64 * i, street.local_ + 16 * i, 16), 0) << i;
}

TYPED_TEST_P(LaneOn, ThreadsThatShareTheReceivesTakeEachMessageOnce) {
  Street<TypeParam> street({Sharing::many_threads, 5, 0});
  constexpr unsigned receivers = 4, each = 100;
  using Body = MessagesOfMany;
  street.run(2, receivers, Body{street.stage(), each});
  for (unsigned i = 0; i <= receivers; ++i) EXPECT_EQ(street.answers_[i], 0u) << i;
  for (unsigned i = 0; i < receivers * each; ++i) {
    ASSERT_EQ(street.answers_[Body::kTaken + i], 1u) << "receive " << i;
    ASSERT_EQ(street.answers_[Body::kSeen + i], 1u) << "message " << i;
  }
}

TYPED_TEST_P(LaneOn, WhatIsWrongIsRefusedAndLeavesNothing) {
  Street<TypeParam> street({Sharing::one_thread, 5, 0});
  Refused body{street.stage()};
  street.run(1, 1, body);
  for (unsigned i = 0; i < Refused::kAnswers; ++i)
    EXPECT_EQ(street.answers_[i], static_cast<std::uint64_t>(Posted::invalid)) << i;
  EXPECT_EQ(street.state().send.slots.reserved, 0u);
  EXPECT_EQ(street.ends_[0].record[1], 0u);
}

REGISTER_TYPED_TEST_SUITE_P(LaneOn, EveryOperationOnce, AFenceIsForTheNextOperationOnly, AFenceIsForTheFirstOfMany,
                            ARefusedOperationLeavesTheFenceForTheNext, AWarpOwnsAQueue, ABlockOwnsAQueue,
                            WarpsOfABlockShareAQueue, WarpsOfAGridShareAQueue, ThreadsOfABlockForThemselves,
                            ThreadsOfAGridForThemselves, ListsLongerThanTheRing, AListThatFindsNoRoomHalfwaySaysSo,
                            TheTimeToWaitForRoomIsThatOfTheWholeList, AnEmptyListIsDoneWhenWhatWasBeforeItIs,
                            MembersThatWereToldDifferentThingsWaitTogether, AListIsTheSameBytesHoweverManyShareIt,
                            AStalledNicHangsNobody, TheHostEndsEveryWait, AFailureNamesItsCause,
                            MessagesFindTheirReceives, ThreadsThatShareTheReceivesTakeEachMessageOnce,
                            WhatIsWrongIsRefusedAndLeavesNothing);

}  // namespace suite
