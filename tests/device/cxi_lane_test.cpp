// SPDX-License-Identifier: Apache-2.0
// Operations of a Lane on the Cassini on paper: one owner and many threads, both ways of telling a peer, failures, the
// wrap of 48 bits, and a device that has stopped.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "cxi_rig.hpp"
#include "strait/device/cpu_grid.hpp"

namespace {

using namespace paper;
using strait::device::Deadline;
using strait::device::Sharing;
using strait::device::Waited;
using strait::wire::cxi::ReturnCode;
constexpr auto kOne = Sharing::one_thread;
constexpr auto kMany = Sharing::many_threads;

template <Sharing S>
void every_operation(CxiRig& rig) {
  ki::Lane<S> lane(rig.queue());
  ASSERT_TRUE(lane.usable());
  const ki::LocalMemory from = rig.from();
  const ki::RemoteMemory to = rig.to();
  std::memcpy(rig.local.data(), "kernel initiated", 16);
  const ki::Pending put = lane.put(from, 0, to, 64, 16);
  ASSERT_EQ(lane.wait(put, soon()).waited, Waited::ok);
  EXPECT_EQ(std::memcmp(rig.remote.data() + 64, "kernel initiated", 16), 0);
  const ki::Pending get = lane.get(from, 128, to, 64, 16);
  ASSERT_EQ(lane.wait(get, soon()).waited, Waited::ok);
  EXPECT_EQ(std::memcmp(rig.local.data() + 128, "kernel initiated", 16), 0);
  ASSERT_TRUE(lane.put_value(std::uint64_t{1000}, to, 8).ok());
  ASSERT_TRUE(lane.put_value(std::uint16_t{77}, to, 24).ok());
  ASSERT_TRUE(lane.add(to, 8, 11).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.remote.words()[1], 1011u);
  EXPECT_EQ(rig.remote.words()[3], 77u);
  ASSERT_TRUE(lane.fetch_add(to, 8, 5, from, 256).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.local.words()[32], 1011u);
  ASSERT_TRUE(lane.compare_swap(to, 8, 1016, 9, from, 264).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.local.words()[33], 1016u);
  EXPECT_EQ(rig.remote.words()[1], 9u);
  rig.local.words()[40] = 6;
  ASSERT_TRUE(lane.atomic(ki::add_words(), from, 320, to, 8, &from, 328).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.local.words()[41], 9u);
  ASSERT_TRUE(lane.atomic(ki::add_words(), from, 320, to, 8, nullptr, 0).ok());
  ASSERT_TRUE(lane.signal(to, 3, 40).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.remote.words()[1], 21u);
  EXPECT_EQ(lane.wait_signal(rig.signal(3), 40, soon()).value, 40u);
  EXPECT_EQ(lane.drain(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.device->complaint(), "");
}

TEST(CxiLane, EveryOperationOfOneOwner) {
  CxiRig rig;
  every_operation<kOne>(rig);
}
TEST(CxiLane, EveryOperationWhereThreadsShare) {
  CxiRig rig({.sharing = kMany});
  every_operation<kMany>(rig);
}

TEST(CxiLane, AStateIsSentOnceForManyImmediates) {
  CxiRig rig;
  {
    ki::Lane<kOne> lane(rig.queue());
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(lane.put_value(i, rig.to(), 8 * i, {.ring_later = true}).ok());
    ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  }
  EXPECT_EQ(rig.transmit_ring.commands, 11u);
  EXPECT_EQ(rig.transmit_ring.next, 10u);  // eleven slots of 32 bytes and a filler: six blocks
  EXPECT_EQ(rig.device->complaint(), "");
}

TEST(CxiLane, PositionsOutliveALane) {
  CxiRig rig;
  for (unsigned i = 0; i < 200; ++i) {
    ki::Lane<kOne> lane(rig.queue());
    ASSERT_TRUE(lane.put_value(i, rig.to(), 0).ok());
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 16, 8).ok());
    ASSERT_EQ(lane.flush(soon()).waited, Waited::ok) << i;
  }
  EXPECT_EQ(rig.device->count(kFirstCt).success, 400u);
  EXPECT_EQ(rig.device->complaint(), "");
}

// What a Lane keeps in registers of the counters in use is the state's again when others are, and when it goes.
TEST(CxiLane, TwoCountersInTurnAndALaneBehindAnother) {
  CxiRig rig;
  std::uint64_t on[2] = {0, 0};
  for (unsigned round = 0; round < 20; ++round) {
    ki::Lane<kOne> lane(rig.queue());
    for (unsigned i = 0; i < 6; ++i) {
      const std::uint32_t counter = (i + round) % 3 == 0 ? 1 : 0;
      ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.counter = counter, .arm = i % 2 != 0}).ok());
      ++on[counter];
      if (i % 3 != 1) continue;
      const std::uint32_t other = 1 - counter;  // what is waited for is not what is posted on
      ASSERT_EQ(lane.flush(soon(), other).success, on[other]) << round << " " << i;
    }
    ASSERT_EQ(lane.flush(soon(), round % 2).success, on[round % 2]) << round;
  }
  for (std::uint32_t c = 0; c < 2; ++c) EXPECT_EQ(rig.counters[c].posted, on[c]);
  ki::Lane<kOne> lane(rig.queue());
  EXPECT_EQ(lane.flush(soon(), 0).success, on[0]);
  EXPECT_EQ(lane.flush(soon(), 1).success, on[1]);
  EXPECT_EQ(rig.device->complaint(), "");
}
TEST(CxiLane, AGoalThatALaneArmedIsNotArmedByTheNext) {
  CxiRig rig;
  for (unsigned i = 0; i < 3; ++i) {
    ki::Lane<kOne> lane(rig.queue());
    EXPECT_EQ(lane.wait_counter(0, 1, Deadline::after_ns(2'000'000)).waited, Waited::timeout);
    EXPECT_EQ(lane.wait_counter(1, 2, Deadline::after_ns(2'000'000)).waited, Waited::timeout);
    ASSERT_EQ(lane.drain(soon()).waited, Waited::ok);
    EXPECT_EQ(rig.device->armed(), 2u) << i;
  }
}
TEST(CxiLane, ALaneThatWasGivenBackRefuses) {
  CxiRig rig;
  {
    ki::Lane<kOne> lane(rig.queue());
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
    lane.give_back();
    EXPECT_EQ(lane.put(rig.from(), 0, rig.to(), 0, 8).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.put_value(1, rig.to(), 0).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.flush(soon()).waited, Waited::error);
  }
  EXPECT_EQ(rig.state.transmit.next, 10u);
  ki::Lane<kOne> next(rig.queue());
  ASSERT_TRUE(next.put(rig.from(), 0, rig.to(), 0, 8).ok());
  EXPECT_EQ(next.flush(soon()).success, 2u);
}
// Whole blocks behind halves of one, around the end of the ring and in a ring that is full.
TEST(CxiLane, BlocksBehindHalvesInAFullRing) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  std::uint64_t posted = 0;
  for (unsigned round = 0; round < 40; ++round) {
    rig.device->stall(true);
    const ki::How later{.ring_later = true};
    for (unsigned i = 0;; ++i) {
      const bool half = (i + round) % 4 != 1;
      const ki::Pending put = half ? lane.put_value(std::uint64_t{round} << 32 | i, rig.to(), 512 + 8 * i, later)
                                   : lane.put(rig.from(), 0, rig.to(), 0, 8, later);
      if (!put.ok()) {
        EXPECT_EQ(put.posted, ki::Posted::full);
        break;
      }
      ++posted;
    }
    rig.device->stall(false);
    ASSERT_EQ(lane.flush(soon()).success, posted) << round;
  }
  EXPECT_GT(posted, 40u * 59u);
  EXPECT_EQ(rig.device->complaint(), "");
}

// A success alone does not make the device write: without the armed event nobody would ever know.
TEST(CxiLane, ModelAWaitsForTheCountersThatAPeersPutsCountOn) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  for (unsigned i = 0; i < 3; ++i) ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  EXPECT_EQ(lane.counter(kTargetCounter).success, 0u);
  const ki::Outcome three = lane.wait_counter(kTargetCounter, 3, soon());
  EXPECT_EQ(three.waited, Waited::ok);
  EXPECT_EQ(three.success, 3u);
  const ki::Outcome four = lane.wait_counter(kTargetCounter, 4, Deadline::after_ns(2'000'000));
  EXPECT_EQ(four.waited, Waited::timeout);
  ASSERT_EQ(lane.drain(soon()).waited, Waited::ok);  // the device has met the event by now
  const std::size_t armed = rig.device->armed();
  EXPECT_EQ(armed, 1u);
  EXPECT_EQ(lane.wait_counter(kTargetCounter, 4, Deadline::after_ns(2'000'000)).waited, Waited::timeout);
  ASSERT_EQ(lane.drain(soon()).waited, Waited::ok);
  EXPECT_EQ(rig.device->armed(), armed);  // asking again takes no second place in the device
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  EXPECT_EQ(lane.wait_counter(kTargetCounter, 4, soon()).waited, Waited::ok);
  EXPECT_EQ(lane.read_counter(kTargetCounter, soon()).success, 4u);
}

// Data and acknowledgements come in any order here: a signal that does not wait for its own put is caught.
template <Sharing S>
void signal_behind_data(CxiRig& rig, unsigned rounds) {
  ki::Lane<S> lane(rig.queue());
  for (unsigned round = 1; round <= rounds; ++round) {
    ki::Pending puts[8];
    for (unsigned i = 0; i < 8; ++i) {
      rig.local.words()[i] = round * 100 + i;
      puts[i] = lane.put_signal(rig.from(), 8 * i, rig.to(), 8 * i, 8, i, i + 1, {.room_ns = 20'000'000'000});
      ASSERT_TRUE(puts[i].ok());
    }
    for (unsigned i = 0; i < 8; ++i) {
      ASSERT_EQ(lane.wait_signal(rig.signal(i), std::uint64_t{round} * (i + 1), soon()).waited, Waited::ok);
      ASSERT_EQ(__atomic_load_n(&rig.remote.words()[i], __ATOMIC_RELAXED), round * 100 + i);
    }
    for (const ki::Pending& put : puts) ASSERT_EQ(lane.wait(put, soon()).waited, Waited::ok);
  }
  EXPECT_EQ(rig.device->complaint(), "");
  EXPECT_EQ(rig.device->armed(), 0u);
}
TEST(CxiLane, ModelBRaisesASignalBehindItsOwnData) {
  CxiRig rig({.places = 8, .reorder = true});
  signal_behind_data<kOne>(rig, 200);
}
TEST(CxiLane, ModelBWhereThreadsShareAndPlacesAreFew) {
  CxiRig rig({.sharing = kMany, .places = 2, .reorder = true});
  signal_behind_data<kMany>(rig, 50);
}

TEST(CxiLane, ModelBAcrossTheWrapOfItsCounters) {
  CxiRig rig({.places = 2, .first_uses = (std::uint64_t{1} << 47) - 2});
  ki::Lane<kOne> lane(rig.queue());
  for (unsigned i = 1; i <= 12; ++i) {
    const ki::Pending put = lane.put_signal(rig.from(), 0, rig.to(), 0, 8, 0, 1, {.room_ns = 20'000'000'000});
    ASSERT_TRUE(put.ok()) << i;
    ASSERT_EQ(lane.wait(put, soon()).waited, Waited::ok) << i;
    ASSERT_EQ(lane.wait_signal(rig.signal(0), i, soon()).value, i);
  }
}

TEST(CxiLane, WaitsAcrossTheWrapOfACounter) {
  constexpr std::uint64_t start = (std::uint64_t{1} << 48) - 3;
  CxiRig rig({.first_success = start});
  ki::Lane<kOne> lane(rig.queue());
  for (unsigned i = 0; i < 8; ++i) {
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
    const ki::Outcome out = lane.flush(soon());
    ASSERT_EQ(out.waited, Waited::ok);
    EXPECT_EQ(out.success, (start + i + 1) & ((std::uint64_t{1} << 48) - 1));
  }
  // Several at once, the goal beyond the wrap when the first is still before it.
  EXPECT_EQ(lane.wait_counter(0, 6, Deadline::after_ns(1'000'000)).waited, Waited::timeout);
}

// Asked for until it has wrapped, a counter may then be below the goal still: from there an event is armed for it.
TEST(CxiLane, WaitsForAGoalFarBeyondTheWrap) {
  CxiRig rig({.first_success = (std::uint64_t{1} << 48) - 3});
  ki::Lane<kOne> lane(rig.queue());
  ki::inc_success(rig.counters[0].counter, 4);
  std::atomic<bool> over{false};
  std::thread rest([&] {
    while (rig.device->armed() == 0 && !over) std::this_thread::yield();
    ki::inc_success(rig.counters[0].counter, 3);
  });
  EXPECT_EQ(lane.wait_counter(0, 4, soon()).success, 4u);
  over = true;
  rest.join();
}

TEST(CxiLane, AnEventArmedAheadIsTheOnlyOne) {
  // The last three are beyond the wrap: there what is armed ahead comes at once.
  constexpr std::uint64_t start = (std::uint64_t{1} << 48) - 10;
  CxiRig rig({.first_success = start});
  ki::Lane<kOne> lane(rig.queue());
  for (unsigned i = 1; i < 10; ++i) {
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.arm = true}).ok());
    ASSERT_EQ(lane.flush(soon()).waited, Waited::ok) << i;
    ASSERT_EQ(lane.drain(soon()).waited, Waited::ok);
    EXPECT_EQ(rig.triggered_ring.commands, i);
    EXPECT_EQ(rig.device->armed(), 0u);
  }
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.arm = true}).ok());
    ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  }
  EXPECT_EQ(rig.device->complaint(), "");
}
TEST(CxiLane, EventsOfOperationsToComeAreArmed) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  const ki::How how{.arm = true, .arm_ahead = 4};
  for (unsigned i = 1; i <= 9; ++i) {
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, how).ok());
    ASSERT_EQ(lane.flush(soon()).success, i);
    ASSERT_EQ(lane.drain(soon()).waited, Waited::ok);
    EXPECT_EQ(rig.triggered_ring.commands, i + 3) << "all with the first, then one each";
    EXPECT_EQ(rig.device->armed(), 3u);
  }
  // Several before one wait, beyond what was armed: its own is armed for it.
  for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  ASSERT_EQ(lane.flush(soon()).success, 14u);
  // Another counter has events of its own, and what was armed for the first is not taken for them.
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.counter = 1, .arm = true, .arm_ahead = 4}).ok());
  ASSERT_EQ(lane.flush(soon(), 1).success, 1u);
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, how).ok());
  ASSERT_EQ(lane.flush(soon()).success, 15u);
  EXPECT_EQ(rig.device->complaint(), "");
}
// Events are rung for several at a time; a wait never needs one that was not. wait_counter() rings for nothing.
TEST(CxiLane, WhatIsWaitedForWasShown) {
  const ki::How how{.arm = true, .arm_ahead = 16};
  for (unsigned skip = 0; skip < 20; ++skip) {
    CxiRig rig;
    ki::Lane<kOne> lane(rig.queue());
    std::uint64_t posted = 0;
    for (unsigned i = 0; i < 40; ++i) {
      // Some that nobody waits for, up to an event that was written last, or beyond it.
      for (unsigned n = 0; i % 3 == 2 && n < skip; ++n, ++posted)
        ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.room_ns = 20'000'000'000}).ok());
      ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, how).ok());
      ASSERT_EQ(lane.wait_counter(0, ++posted, soon()).waited, Waited::ok) << skip << " " << i;
      ASSERT_LE(rig.device->armed(), 16u);
    }
    EXPECT_EQ(rig.device->complaint(), "");
  }
}
TEST(CxiLane, NoEventIsArmedBeyondTheWrap) {
  constexpr std::uint64_t start = (std::uint64_t{1} << 48) - 10;
  CxiRig rig({.first_success = start});
  ki::Lane<kOne> lane(rig.queue());
  for (unsigned i = 0; i < 20; ++i) {
    ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.arm = true, .arm_ahead = 4}).ok());
    ASSERT_EQ(lane.flush(soon()).waited, Waited::ok) << i;
  }
  EXPECT_EQ(rig.device->complaint(), "");
}
TEST(CxiLane, AnEventArmedAheadWhereThreadsShare) {
  CxiRig rig({.sharing = kMany});
  ki::Lane<kMany> lane(rig.queue());
  for (unsigned i = 1; i <= 100; ++i) {
    ASSERT_TRUE(lane.put_value(i, rig.to(), 0, {.arm = true}).ok());
    ASSERT_EQ(lane.flush(soon()).success, i);
  }
  EXPECT_EQ(rig.device->complaint(), "");
}

TEST(CxiLane, CountersAreReadRaisedAndReset) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  EXPECT_EQ(lane.read_counter(1, soon()).success, 0u);
  EXPECT_TRUE(lane.raise_counter(1, 5));
  EXPECT_EQ(lane.wait_counter(1, 5, soon()).waited, Waited::ok);
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.counter = 2}).ok());
  ASSERT_EQ(lane.flush(soon(), 2).success, 1u);
  const ki::Outcome reset = lane.reset_counter(2, soon());
  EXPECT_EQ(reset.waited, Waited::ok);
  EXPECT_EQ(reset.success, 0u);
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8, {.counter = 2}).ok());
  EXPECT_EQ(lane.flush(soon(), 2).success, 1u);
}

TEST(CxiLane, AFailureEndsTheWaitWithItsCountAndCause) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  ki::RemoteMemory nowhere = rig.to();
  nowhere.index_ext = 30;
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  ASSERT_TRUE(lane.put(rig.from(), 0, nowhere, 0, 8, {.tag = 4711}).ok());
  const ki::Outcome out = lane.flush(soon());
  EXPECT_EQ(out.waited, Waited::error);
  EXPECT_EQ(out.failures, 1u);
  EXPECT_EQ(out.code, ReturnCode::ptlte_not_found);
  EXPECT_EQ(out.tag, 4711u);
  // It stays so until the counter is reset; counts before it are still reached.
  EXPECT_EQ(lane.flush(soon()).waited, Waited::error);
  EXPECT_EQ(lane.read_counter(0, soon()).success, 1u);
  EXPECT_EQ(lane.wait_counter(0, 1, soon()).waited, Waited::ok);
  EXPECT_EQ(lane.reset_counter(0, soon()).waited, Waited::ok);
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  EXPECT_EQ(lane.flush(soon()).waited, Waited::ok);
}

TEST(CxiLane, AFailedSignalledPutSaysSoAndClosesItsPlace) {
  CxiRig rig({.places = 1});
  ki::Lane<kOne> lane(rig.queue());
  ki::RemoteMemory nowhere = rig.to();
  nowhere.index_ext = 30;
  const ki::Pending put = lane.put_signal(rig.from(), 0, nowhere, 0, 8, 0, 1);
  ASSERT_TRUE(put.ok());
  const ki::Outcome out = lane.wait(put, soon());
  EXPECT_EQ(out.waited, Waited::error);
  EXPECT_EQ(out.code, ReturnCode::ptlte_not_found);
  EXPECT_EQ(*rig.signals.words(), 0u);  // the addition was never started
  EXPECT_EQ(lane.put_signal(rig.from(), 0, rig.to(), 0, 8, 0, 1).posted, ki::Posted::failed);
}

TEST(CxiLane, WrongArgumentsAreRefusedBeforeAnythingIsWritten) {
  CxiRig rig;
  {
    ki::Lane<kOne> lane(rig.queue());
    const ki::RemoteMemory to = rig.to();
    ki::LocalMemory from = rig.from();
    EXPECT_EQ(lane.put(from, 1, to, 0, from.length_bytes).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.put(from, ~std::uint64_t{0}, to, 0, 8).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.get(from, 0, to, to.length_bytes, 1).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.put(from, 0, to, 0, 8, {.counter = 4}).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.signal(to, 64, 1).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.put_signal(from, 0, to, 0, 8, 64, 1).posted, ki::Posted::invalid);
    EXPECT_EQ(
        lane.atomic({ki::add_words().op, static_cast<strait::wire::cxi::AtomicType>(15)}, from, 0, to, 0, nullptr, 0)
            .posted,
        ki::Posted::invalid);
    from.length_bytes = std::uint64_t{1} << 33;
    ki::RemoteMemory large = to;
    large.length_bytes = from.length_bytes;
    EXPECT_EQ(lane.put(from, 0, large, 0, std::uint64_t{1} << 32).posted, ki::Posted::too_long);
    ki::RemoteMemory other = to;
    ++other.head.struct_size;
    EXPECT_EQ(lane.put_value(1, other, 0).posted, ki::Posted::invalid);
    EXPECT_EQ(lane.wait_counter(9, 0, soon()).waited, Waited::error);
    EXPECT_FALSE(lane.raise_counter(9, 1));
  }
  EXPECT_EQ(rig.state.transmit.next, 8u);
  EXPECT_EQ(*rig.pages.words(), 0u);
  ki::Queue wrong = rig.queue();
  ++wrong.head.abi_version;
  EXPECT_FALSE(ki::Lane<kOne>(wrong).usable());
  EXPECT_FALSE(ki::Lane<kMany>(rig.queue()).usable());
}

// ---- A device that has stopped: every public call ends by its deadline

template <Sharing S>
void stalled(CxiRig& rig) {
  rig.device->stall(true);
  ki::Lane<S> lane(rig.queue());
  const ki::LocalMemory from = rig.from();
  const ki::RemoteMemory to = rig.to();
  const auto now = [] { return Deadline::after_ns(2'000'000); };
  const ki::How patient{.room_ns = 2'000'000};
  const std::uint64_t start = strait::device::now_ns();
  const ki::Pending signalled = lane.put_signal(from, 0, to, 0, 8, 0, 1);
  ASSERT_TRUE(signalled.ok());
  unsigned posted = 0;
  while (lane.put(from, 0, to, 0, 8).ok()) ASSERT_LT(++posted, 200u);
  EXPECT_GE(posted, 50u);
  EXPECT_EQ(lane.put(from, 0, to, 0, 8, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.get(from, 0, to, 0, 8, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.put_value(1, to, 0, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.add(to, 0, 1, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.signal(to, 0, 1, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.fetch_add(to, 0, 1, from, 0, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.compare_swap(to, 0, 1, 2, from, 0, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.atomic(ki::add_words(), from, 0, to, 0, nullptr, 0, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.put_signal(from, 0, to, 0, 8, 0, 1, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.put_each(from, 0, to, 0, 8, patient).posted, ki::Posted::full);
  EXPECT_EQ(lane.wait(signalled, now()).waited, Waited::timeout);
  EXPECT_EQ(lane.flush(now()).waited, Waited::timeout);
  EXPECT_EQ(lane.drain(now()).waited, Waited::timeout);
  for (unsigned i = 0; i < 80; ++i)  // more than the triggered ring has room for
    EXPECT_EQ(lane.wait_counter(1, 1 + i, Deadline::after_ns(100'000)).waited, Waited::timeout);
  EXPECT_EQ(lane.read_counter(1, now()).waited, Waited::timeout);
  ASSERT_TRUE(lane.raise_counter(2, 1));
  EXPECT_EQ(lane.wait_counter(2, 1, now()).waited, Waited::timeout);
  EXPECT_EQ(lane.reset_counter(kTargetCounter, now()).waited, Waited::ok);  // its word shows 0 already
  EXPECT_EQ(lane.wait_signal(rig.signal(0), 1, now()).waited, Waited::timeout);
  __atomic_store_n(&rig.abort, 1u, __ATOMIC_RELEASE);
  EXPECT_EQ(lane.flush(soon()).waited, Waited::aborted);
  EXPECT_EQ(lane.read_counter(1, soon()).waited, Waited::aborted);
  __atomic_store_n(&rig.abort, 0u, __ATOMIC_RELEASE);
  EXPECT_LT(strait::device::now_ns() - start, 10'000'000'000u);
  rig.device->stall(false);
  EXPECT_EQ(lane.flush(soon()).waited, Waited::ok);  // nothing was lost meanwhile
  EXPECT_EQ(lane.wait(signalled, soon()).waited, Waited::ok);
  EXPECT_EQ(rig.device->complaint(), "");
}
TEST(CxiLane, AStoppedDeviceHoldsNobodyBeyondTheDeadline) {
  CxiRig rig;
  stalled<kOne>(rig);
}
TEST(CxiLane, AStoppedDeviceHoldsNoThreadBeyondTheDeadline) {
  CxiRig rig({.sharing = kMany});
  stalled<kMany>(rig);
}

TEST(CxiLane, ARingThatTheDeviceGaveUpSaysWhy) {
  CxiRig rig;
  ki::Lane<kOne> lane(rig.queue());
  ASSERT_TRUE(lane.put(rig.from(), 0, rig.to(), 0, 8).ok());
  ASSERT_EQ(lane.flush(soon()).waited, Waited::ok);
  rig.device->stall(true);
  *rig.transmit.words() = std::uint64_t{50} << 48 | 5;  // cmd_invalid_arg
  ki::Posted last = ki::Posted::ok;
  for (unsigned i = 0; i < 100 && last == ki::Posted::ok; ++i) last = lane.put(rig.from(), 0, rig.to(), 0, 8).posted;
  EXPECT_EQ(last, ki::Posted::failed);
  const ki::Outcome out = lane.drain(soon());
  EXPECT_EQ(out.waited, Waited::error);
  EXPECT_EQ(out.code, ReturnCode::cmd_invalid_arg);
  const ki::Outcome flushed = lane.flush(soon());
  EXPECT_EQ(flushed.waited, Waited::error) << "what is behind it counts nowhere";
  EXPECT_EQ(flushed.code, ReturnCode::cmd_invalid_arg);
}

// ---- Many threads

TEST(CxiLane, WaitersThatShareHaveOneEventUnderWay) {
  CxiRig rig({.sharing = kMany});
  ki::Lane<kMany> lane(rig.queue());
  const auto wait_in_vain = [&](std::uint64_t goal) {
    EXPECT_EQ(lane.wait_counter(1, goal, Deadline::after_ns(20'000'000)).waited, Waited::timeout);
    EXPECT_EQ(lane.drain(soon()).waited, Waited::ok);
  };
  wait_in_vain(5);
  EXPECT_EQ(rig.device->armed(), 1u);
  wait_in_vain(5);
  wait_in_vain(9);
  EXPECT_EQ(rig.device->armed(), 1u) << "the next is armed when that has come";
  wait_in_vain(3);
  EXPECT_EQ(rig.device->armed(), 2u) << "it would have come too late";
  EXPECT_TRUE(lane.raise_counter(1, 5));
  EXPECT_EQ(lane.wait_counter(1, 5, soon()).success, 5u);
  std::thread waits([&] {
    ki::Lane<kMany> other(rig.queue());
    EXPECT_EQ(other.wait_counter(1, 9, soon()).success, 9u);
  });
  EXPECT_TRUE(lane.raise_counter(1, 4));
  waits.join();
  EXPECT_EQ(rig.device->armed(), 0u);
  EXPECT_EQ(rig.device->complaint(), "");
}

TEST(CxiLane, ManyThreadsOnOneRingLoseNothing) {
  CxiRig rig({.sharing = kMany, .places = 4});
  constexpr unsigned kThreads = 8;
  constexpr std::uint64_t kEach = 400;
  std::vector<std::thread> threads;
  std::atomic<unsigned> failed{0};
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ki::Lane<kMany> lane(rig.queue());
      const ki::How how{.room_ns = 20'000'000'000};
      const ki::RemoteMemory to = rig.to();
      std::mt19937 random(t);
      std::uint64_t* const slot = rig.local.words() + 64 + t;
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        bool ok = lane.put_value(t << 16 | i, to, 1024 + 8 * t, how).ok();
        ok = lane.add(to, 0, 1, how).ok() && ok;
        if (random() % 4 == 0) ok = lane.atomic(ki::add_words(), rig.from(), 0, to, 8, nullptr, 0, how).ok() && ok;
        if (random() % 8 == 0) {
          *slot = i;
          const ki::Pending put = lane.put_signal(rig.from(), 8 * (64 + t), to, 2048 + 8 * t, 8, t, 1, how);
          ok = put.ok() && lane.wait(put, soon()).waited == Waited::ok && ok;
          ok = __atomic_load_n(rig.remote.words() + 256 + t, __ATOMIC_RELAXED) == i && ok;
        }
        if (!ok) ++failed;
      }
      if (lane.flush(soon()).waited != Waited::ok) ++failed;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(rig.device->complaint(), "");
  EXPECT_EQ(rig.remote.words()[0], kThreads * kEach);
  for (unsigned t = 0; t < kThreads; ++t) EXPECT_EQ(rig.remote.words()[128 + t], t << 16 | kEach);
}

TEST(CxiLane, DoorbellsOfManyThreadsAreAllCounted) {
  CxiRig rig({.sharing = kMany});
  constexpr unsigned kThreads = 8;
  constexpr std::uint64_t kEach = 20000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ki::Lane<kMany> lane(rig.queue());
      for (std::uint64_t i = 0; i < kEach; ++i) (void)lane.raise_counter(1, 1);
    });
  }
  for (std::thread& t : threads) t.join();
  ki::Lane<kMany> lane(rig.queue());
  EXPECT_EQ(lane.wait_counter(1, kThreads * kEach, soon()).waited, Waited::ok);
  EXPECT_EQ(lane.read_counter(1, soon()).success, kThreads * kEach);
}

// Warps put one command per member in one claim, and one of them has none.
template <Sharing S>
void warps_put_each(CxiRig& rig, unsigned blocks, unsigned rounds) {
  std::atomic<unsigned> failed{0};
  strait::device::run_on_cpu({.blocks = blocks, .threads = 8, .warp_size = 8}, [&](unsigned block, unsigned thread) {
    ki::Lane<S, strait::device::Warp> lane(rig.queue());
    const unsigned who = block * 8 + thread;
    for (unsigned round = 1; round <= rounds; ++round) {
      rig.local.words()[who] = round;
      const std::uint64_t bytes = thread == round % 8 ? 0 : 8;
      const ki::Pending put = lane.put_each(rig.from(), 8 * who, rig.to(), 8 * who, bytes, {.room_ns = 20'000'000'000});
      const ki::Outcome out = lane.wait(put, soon());
      if (!put.ok() || out.waited != Waited::ok) ++failed;
      const std::uint64_t there = __atomic_load_n(rig.remote.words() + who, __ATOMIC_RELAXED);
      if (bytes != 0 && there != round) ++failed;
    }
  });
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(rig.device->complaint(), "");
  EXPECT_EQ(rig.device->count(kFirstCt).success, std::uint64_t{blocks} * rounds * 7);
}
// Who has nothing to wait for must not leave the others alone in a barrier.
template <Sharing S, class G>
void members_wait_together(CxiRig& rig) {
  constexpr unsigned kThreads = 8;
  std::atomic<unsigned> as_told{0}, refused{0};
  strait::device::run_on_cpu({.blocks = 1, .threads = kThreads, .warp_size = kThreads}, [&](unsigned, unsigned thread) {
    ki::Lane<S, G> lane(rig.queue());
    for (unsigned wrong = 0; wrong < kThreads; ++wrong) {
      const ki::RemoteMemory to = rig.to();
      const std::uint64_t offset = thread == wrong ? to.length_bytes : 8 * thread;
      const ki::Pending put = lane.put_each(rig.from(), 0, to, offset, 8, {.room_ns = 20'000'000'000});
      const ki::Outcome out = lane.wait(put, soon());
      if (out.waited == (thread == wrong ? Waited::error : Waited::ok)) ++as_told;
    }
    const ki::Pending none = lane.put_each(rig.from(), 0, rig.to(), rig.to().length_bytes, 8);
    if (lane.wait(none, soon()).waited == Waited::error) ++refused;
  });
  EXPECT_EQ(as_told, kThreads * kThreads);
  EXPECT_EQ(refused, kThreads);
  EXPECT_EQ(rig.device->complaint(), "");
}
TEST(CxiLane, MembersThatWereToldDifferentThingsWaitTogether) {
  CxiRig one, block, many({.sharing = kMany});
  members_wait_together<kOne, strait::device::Warp>(one);
  members_wait_together<kOne, strait::device::Block>(block);
  members_wait_together<kMany, strait::device::Warp>(many);
}

TEST(CxiLane, AWarpPutsOneEach) {
  CxiRig rig;
  warps_put_each<kOne>(rig, 1, 60);
}
TEST(CxiLane, WarpsPutOneEachOnOneRing) {
  CxiRig rig({.sharing = kMany});
  warps_put_each<kMany>(rig, 3, 40);
}

}  // namespace
