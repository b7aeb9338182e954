// SPDX-License-Identifier: Apache-2.0
// What the device is shown: the record, the doorbell, and when. One thread; threads_test.cpp has the crowd.
#include <gtest/gtest.h>

#include "requests.hpp"

namespace {

using namespace paper;
using namespace strait::device;

bool same_counters(const Slots& a, const Slots& b) {
  return a.reserved == b.reserved && a.ready == b.ready && a.rung == b.rung && a.completed == b.completed &&
         a.requests == b.requests;
}

template <Sharing S>
void walk_the_record(std::uint64_t first) {
  SendRig rig(4, first);
  rig.record.send = sw::be32{static_cast<std::uint32_t>(first & 0xffff)};
  Random random{first + 77};
  std::vector<std::uint64_t> starts;
  std::size_t completed = 0;
  std::uint32_t before = rig.sent();
  for (int i = 0; i < 3000; ++i) {
    const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
    const Pending p = post<S>(rig.ring, make_request(random, kind, random.below(5), random.below(100)));
    if (p.ok()) starts.push_back(p.start);
    if (p.ok() && random.below(3) != 0) continue;  // several posts share a doorbell
    ring_doorbell<S>(rig.ring);
    const std::uint32_t now = rig.sent();
    ASSERT_EQ(now, rig.ring.slots.reserved & 0xffff);
    ASSERT_GE(static_cast<std::int16_t>(now - before), 0) << "the record went backwards";
    ASSERT_LE(static_cast<std::uint16_t>(now - rig.ring.slots.completed), rig.blocks());
    before = now;
    if (p.posted == Posted::full || random.below(2) == 0) {
      completed += random.below(static_cast<std::uint32_t>(starts.size() - completed)) + (completed < starts.size());
      if (completed > starts.size()) completed = starts.size();
      if (completed == 0) continue;
      (void)complete_up_to<S>(rig.ring, static_cast<std::uint16_t>(starts[completed - 1]));
    }
  }
  EXPECT_GT(starts.size(), 1000u);
}

TEST(Invariant04_RecordIsTheNextIndex, NeverBackwardsNeverTooFar) {
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{65000}, (std::uint64_t{1} << 32) - 500}) {
    walk_the_record<kOne>(first);
    walk_the_record<kMany>(first);
  }
}

TEST(Invariant04_RecordIsTheNextIndex, RingingWithoutNewsStoresNothing) {
  SendRig rig(3);
  ASSERT_TRUE(post_nop<kOne>(rig.ring, 0).ok());
  ring_doorbell<kOne>(rig.ring);
  rig.doorbell = 0;
  rig.record.send = sw::be32{0x7777};
  ring_doorbell<kOne>(rig.ring);
  EXPECT_EQ(rig.doorbell, 0u);
  EXPECT_EQ(rig.sent(), 0x7777u);
}

template <Sharing S>
void fill_up() {
  SendRig rig(3);
  const std::vector<std::uint8_t> payload(60, 1);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(post_nop<S>(rig.ring, kSignaled).ok());
  const SendRing before = rig.ring;
  const std::vector<std::uint8_t> image(rig.memory.data(), rig.memory.data() + rig.memory.size());
  EXPECT_EQ(post_send_inline<S>(rig.ring, payload.data(), 60, 0).posted, Posted::full) << "two blocks, one is free";
  EXPECT_TRUE(same_counters(rig.ring.slots, before.slots));
  EXPECT_EQ(std::memcmp(image.data(), rig.memory.data(), image.size()), 0);
  EXPECT_EQ(free_blocks<S>(rig.ring), 1u);
  ASSERT_TRUE(post_nop<S>(rig.ring, kSignaled).ok()) << "the failed attempt must not have taken the last block";
  EXPECT_EQ(post_nop<S>(rig.ring, kSignaled).posted, Posted::full);
  ring_doorbell<S>(rig.ring);
  EXPECT_EQ(post_nop<S>(rig.ring, kSignaled).posted, Posted::full) << "rung is not completed";
  ASSERT_TRUE(complete_up_to<S>(rig.ring, 1).known);
  EXPECT_EQ(free_blocks<S>(rig.ring), 2u);
  EXPECT_TRUE(post_send_inline<S>(rig.ring, payload.data(), 60, 0).ok());
  const std::vector<std::uint8_t> huge(600, 1);
  EXPECT_EQ(post_send_inline<S>(rig.ring, huge.data(), 600, 0).posted, Posted::too_long) << "never fits this ring";
}

TEST(Invariant06_SlotsArePublishedOnceAndInOrder, FullIsAnAnswerThatChangesNothing) {
  fill_up<kOne>();
  fill_up<kMany>();
}

TEST(Invariant06_SlotsArePublishedOnceAndInOrder, AnUnfinishedPosterHoldsBackWhatIsBehindIt) {
  SendRig rig(4);
  std::uint64_t slow = 0;
  ASSERT_TRUE(reserve<kMany>(rig.ring.slots, 2, slow));  // reserved, still writing
  ASSERT_TRUE(post_nop<kMany>(rig.ring, kSignaled).ok());
  ring_doorbell<kMany>(rig.ring);
  EXPECT_EQ(rig.sent(), 0u) << "the WQE at index 2 is complete, but 0 is not";
  EXPECT_EQ(rig.ring.slots.ready, 0u);
  const std::uint8_t wqe[8] = {0, 0, 0, 0, 0, 0xa1, 0xb2, 5};
  std::memcpy(rig.memory.data(), wqe, 8);
  commit<kMany>(rig.ring.slots, slow, 2);
  ring_doorbell<kMany>(rig.ring);
  EXPECT_EQ(rig.sent(), 3u) << "both are shown by whoever closes the gap";
  EXPECT_EQ(mlx5::Doorbell{}.index(), 0);
  mlx5::Doorbell bell;
  std::memcpy(&bell, &rig.doorbell, 8);
  EXPECT_EQ(bell.index(), 3) << "the next WQE's index";
  EXPECT_EQ(bell.qpn(), 0xa1b2u);
}

TEST(Invariant07_NoDoorbellIsLost, BurstWithOneDoorbell) {
  SendRig rig(5);
  for (int burst = 0; burst < 50; ++burst) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(post_nop<kOne>(rig.ring, 0).ok());
    ring_doorbell<kOne>(rig.ring);
    ASSERT_EQ(rig.ring.slots.rung, rig.ring.slots.reserved);
    ASSERT_EQ(rig.sent(), rig.ring.slots.reserved & 0xffff);
    rig.drain();
  }
}

// Another thread posts and asks while the first is at the doorbell: it is turned away, and the first rings for it.
TEST(Invariant07_NoDoorbellIsLost, WhoIsTurnedAwayIsRungFor) {
  SendRig rig(5);
  ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
  std::vector<std::uint64_t> shown;
  int others = 3;
  show_ready<kMany>(rig.ring.slots, [&](std::uint64_t ready) {
    shown.push_back(ready);
    if (others-- == 0) return;
    ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
    bool rang = false;
    show_ready<kMany>(rig.ring.slots, [&](std::uint64_t) { rang = true; });
    EXPECT_FALSE(rang);
  });
  EXPECT_EQ(shown, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(rig.ring.slots.rung, rig.ring.slots.reserved);
  EXPECT_EQ(rig.ring.slots.requests, 0u);
}

// The device may answer before ring_doorbell() returns, and another thread may reap that answer.
TEST(Invariant07_NoDoorbellIsLost, ACompletionMayComeBeforeRingingReturns) {
  SendRig rig(3);
  ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
  bool shown = false;
  show_ready<kMany>(rig.ring.slots, [&](std::uint64_t ready) {
    shown = true;
    EXPECT_TRUE(complete_up_to<kMany>(rig.ring, static_cast<std::uint16_t>(ready - 1)).known);
  });
  EXPECT_TRUE(shown);
  EXPECT_EQ(rig.ring.slots.completed, 1u);
}

// ---- 13: doorbells may be repeated, delayed, and all but the last dropped
// --------------------------------------------

// The consumer's rule: the later of record and doorbell, seen from its own index; a jump beyond the ring is refused.
struct Consumer {
  explicit Consumer(SendRig& r) : rig(r) {}

  void hear(std::uint64_t doorbell) {
    mlx5::Doorbell bell;
    std::memcpy(&bell, &doorbell, 8);
    const auto by_record = static_cast<std::int16_t>(rig.sent() - static_cast<std::uint16_t>(index));
    const auto by_bell = static_cast<std::int16_t>(bell.index() - static_cast<std::uint16_t>(index));
    const int ahead = by_record > by_bell ? by_record : by_bell;
    if (ahead <= 0 || ahead > static_cast<int>(rig.blocks())) return;
    const std::uint64_t until = index + static_cast<unsigned>(ahead);
    while (index < until) {
      const Wqe w = rig.at(index);
      ASSERT_TRUE(w.well_formed);
      ASSERT_EQ(w.index, index & 0xffff);
      executed.push_back(static_cast<std::uint32_t>(big(w.imm, 4)));
      last = index;
      index += w.blocks();
    }
  }

  SendRig& rig;
  std::uint64_t index = 0;
  std::uint64_t last = 0;
  std::vector<std::uint32_t> executed;
};

enum class Delivery { once, twice, half_dropped, stale_again };

template <Sharing S>
std::vector<std::uint32_t> run(Delivery delivery, bool producer_convention) {
  SendRig rig(4);
  Consumer device(rig);
  Random random{99};
  std::uint64_t old_bell = 0;
  for (std::uint32_t id = 0; id < 600;) {
    bool full = false;
    for (std::uint32_t n = 1 + random.below(4); n > 0 && id < 600; --n) {
      const std::vector<std::uint8_t> payload(id % 90, 1);
      if (!post_send_imm_inline<S>(rig.ring, payload.data(), payload.size(), sw::be32{id}, 0).ok()) {
        full = true;
        break;
      }
      ++id;
    }
    ring_doorbell<S>(rig.ring);
    std::uint64_t bell = rig.doorbell;
    if (producer_convention) {  // what device libraries store: next index, no opcode, no length
      const mlx5::Doorbell d{sw::be32{static_cast<std::uint32_t>(rig.ring.slots.rung & 0xffff) << 8},
                             sw::be32{0xa1b2u << 8}};
      std::memcpy(&bell, &d, 8);
    }
    const bool last_chance = full || id == 600;
    if (delivery == Delivery::half_dropped && !last_chance && random.below(2) == 0) continue;
    device.hear(bell);
    if (delivery == Delivery::twice) device.hear(bell);
    if (delivery == Delivery::stale_again) device.hear(old_bell);
    old_bell = bell;
    if (device.index != 0) (void)complete_up_to<S>(rig.ring, static_cast<std::uint16_t>(device.last));
  }
  EXPECT_EQ(device.index, rig.ring.slots.reserved);
  return device.executed;
}

TEST(Invariant13_DoorbellsAreIdempotent, SameSequenceWhateverHappensToThem) {
  std::vector<std::uint32_t> want(600);
  for (std::uint32_t i = 0; i < 600; ++i) want[i] = i;
  for (auto d : {Delivery::once, Delivery::twice, Delivery::half_dropped, Delivery::stale_again})
    for (bool convention : {false, true}) {
      SCOPED_TRACE(testing::Message() << "delivery " << static_cast<int>(d) << ", convention " << convention);
      EXPECT_EQ(run<kOne>(d, convention), want);
      EXPECT_EQ(run<kMany>(d, convention), want);
    }
}

}  // namespace
