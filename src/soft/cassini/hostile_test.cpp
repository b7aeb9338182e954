// SPDX-License-Identifier: Apache-2.0
// One client does what it should not; another one on the same card goes on as if it were alone.
#include <random>

#include "soft/cassini/neighbour_testing.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniNeighbours : ::testing::Test {
  void settle() {
    for (int i = 0; i < 100000; ++i) {
      if (fabric.drive() == 0) return;
    }
    FAIL() << "the device does not come to rest";
  }
  // A service with 16 of everything for itself.
  std::uint32_t reserve() {
    TestClient root{card, kRoot, 3};
    wire::SvcAllocCmd ask{};
    ask.svc_desc.flags = wire::kSvcResourceLimits | wire::kSvcRestrictedVnis;
    ask.svc_desc.num_vld_vnis = 1;
    ask.svc_desc.vnis[0] = 20;
    for (auto& each : ask.svc_desc.limits) each = {.max = 32, .res = 16};
    wire::SvcAllocResp made{};
    EXPECT_EQ(root.send(ask, made), 0);
    return made.svc_id;
  }
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  Friend good{card, 1, 5};
  Neighbour bad{card, 2, 6};
  std::mt19937_64 random{20261116};
};

void scribble(std::mt19937_64& random, const sys::Mapping& page, int words) {
  auto* const at = reinterpret_cast<std::uint64_t*>(page.data());
  for (int i = 0; i < words; ++i) __atomic_store_n(at + random() % (page.size() / 8), random(), __ATOMIC_RELAXED);
}

TEST_F(CassiniNeighbours, GarbageInEveryPageOfItsOwn) {
  settle();
  ASSERT_TRUE(good.works(fabric));
  for (int round = 0; round < 150; ++round) {
    // New ones each time: a queue that met a bad command has stopped.
    ClientRing rings[] = {bad.queue(wire::kCqIsTx), bad.queue(0), bad.queue(wire::kCqIsTx | wire::kCqTxTriggered)};
    for (ClientRing& ring : rings) {
      scribble(random, ring.ring, 4096);
      // A first byte that begins something.
      for (std::uint32_t block = wire::kFirstBlock; block < ring.blocks; ++block) {
        ring.ring.data()[block * 64] = static_cast<std::byte>(4 | (random() & 0xf3));
      }
      ring.announce(round % 4 == 0 ? random() : 4 + random() % ring.blocks);
      if (round % 3 == 0) scribble(random, ring.launch, 64);
    }
    scribble(random, bad.event_state, 8);
    scribble(random, bad.doorbell, 8);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(good.works(fabric)) << "round " << round;
  }
}

TEST_F(CassiniNeighbours, AnEventQueueThatNobodyReads) {
  const std::uint32_t pte = bad.portal(1, 0, true);
  bad.append(bad.entry(pte, wire::PtlList::priority, 0, 4096));
  settle();
  for (int burst = 0; burst < 40; ++burst) {
    for (int i = 0; i < 200; ++i) {
      wire::FullDmaCmd c = bad.put(bad, 1, 4096, 64);
      c.set_flags(wire::kEventCtAck);
      c.set_eq(bad.eq);
      bad.transmit.emit(c);
    }
    bad.transmit.announce();
    ASSERT_TRUE(good.works(fabric));
    for (int i = 0; i < 8; ++i) fabric.drive();
  }
  settle();
  wire::EqStatus status{};
  std::memcpy(&status, bad.events.data(), sizeof status);
  EXPECT_TRUE(status.unackd_dropped_event()) << "who does not read is told that it missed something";
  ASSERT_TRUE(good.works(fabric));
}

// 10^5 messages that nobody expects: they fill what all have in common, and not what is reserved.
TEST_F(CassiniNeighbours, UnexpectedMessagesWithoutEnd) {
  const std::uint32_t service = reserve();
  ASSERT_NE(service, 0u);
  Friend reserved{card, 4, 7, service};

  const std::uint32_t pte = bad.portal(1, wire::kPteIsMatching);
  wire::TargetCmd overflow = bad.entry(pte, wire::PtlList::overflow, 0, 65536, wire::kLeManageLocal);
  bad.append(overflow);
  settle();
  std::uint64_t sent = 0;
  std::int64_t slowest = 0;
  while (sent < 100000) {
    for (int i = 0; i < 500; ++i, ++sent) bad.transmit.emit(bad.put(bad, 1, 4096, 0));
    bad.transmit.announce();
    for (int i = 0; i < 16; ++i) {
      const std::int64_t before = sys::now_ns();
      fabric.drive();
      slowest = std::max(slowest, sys::now_ns() - before);
    }
    if (sent % 10000 == 0) {
      ASSERT_TRUE(good.works(fabric)) << sent;
      ASSERT_TRUE(reserved.works(fabric)) << sent;
    }
  }
  settle();
  EXPECT_GT(card.les_in_use, 16000u) << "they were kept";
  EXPECT_LT(slowest, 1'000'000'000) << "no pass takes long";
  const std::uint64_t entries = card.les_in_use;
  const std::uint32_t index = reserved.portal(3);
  for (int i = 0; i < 8; ++i) reserved.append(reserved.entry(index, wire::PtlList::priority, 0, 64));
  settle();
  EXPECT_EQ(card.les_in_use, entries + 8) << "what is reserved is there";
  EXPECT_TRUE(reserved.works(fabric));
  EXPECT_TRUE(good.works(fabric));
}

TEST_F(CassiniNeighbours, ExhaustsWhatIsNotReserved) {
  const std::uint32_t service = reserve();
  ASSERT_NE(service, 0u);
  settle();
  // All counters, queues, portals and contexts that it can get.
  const auto take_all = [&](auto call) {
    int taken = 0;
    while (call() == 0) ++taken;
    return taken;
  };
  wire::CtAllocResp ct{};
  EXPECT_GT(take_all([&] { return bad.client.send(make<wire::CtAllocCmd>([&](auto& c) { c.lni = bad.lni; }), ct); }),
            2000);
  wire::PteAllocResp pte{};
  EXPECT_GT(
      take_all([&] { return bad.client.send(make<wire::PteAllocCmd>([&](auto& c) { c.lni_hndl = bad.lni; }), pte); }),
      2000);
  wire::CqAllocResp cq{};
  const auto queue = [&](std::uint32_t flags) {
    return bad.client.send(make<wire::CqAllocCmd>([&](auto& c) {
                             c.lni = bad.lni;
                             c.opts.count = 64;
                             c.opts.flags = flags;
                           }),
                           cq);
  };
  EXPECT_GT(take_all([&] { return queue(wire::kCqIsTx); }), 900);
  EXPECT_GT(take_all([&] { return queue(0); }), 400);
  // Triggers for a number that never comes.
  wire::CmdWords<8> arm{};
  arm.set_header(wire::CmdType::ct, wire::CmdSize::b64, wire::CtOp::trig_event);
  auto& words = *reinterpret_cast<wire::CtCmd*>(arm.words);
  words.set_trig_ct(bad.ct);
  words.set_threshold(std::uint64_t{1} << 40);
  for (int i = 0; i < 8; ++i) {
    for (int n = 0; n < 500; ++n) bad.counting.emit(arm);
    bad.counting.announce();
    settle();
  }
  EXPECT_TRUE(good.works(fabric));
  Friend reserved{card, 4, 7, service};
  settle();
  EXPECT_TRUE(reserved.works(fabric));
  for (int i = 0; i < 10; ++i) EXPECT_NE(reserved.client.ct(reserved.lni).ctn, 0u);
  // And its triggers.
  words.set_trig_ct(reserved.ct);
  words.set_threshold(reserved.counter().success + 1);
  reserved.counting.emit(arm);
  reserved.counting.announce();
  settle();
  EXPECT_TRUE(reserved.works(fabric));
  EXPECT_EQ(wire::CtWriteback{reserved.word}.success(), reserved.counter().success) << "its trigger fired";
}

// Handles and cookies of another client are as unknown as those of nobody.
TEST_F(CassiniNeighbours, ForgedHandlesAndCookies) {
  settle();
  const auto refuses = [&](auto command) { EXPECT_EQ(bad.client.send(command), EINVAL); };
  refuses(make<wire::LniFreeCmd>([&](auto& c) { c.lni = good.lni; }));
  refuses(make<wire::CqFreeCmd>([&](auto& c) { c.cq = good.transmit.id; }));
  refuses(make<wire::CtFreeCmd>([&](auto& c) { c.ctn = good.ct; }));
  refuses(make<wire::EqFreeCmd>([&](auto& c) { c.eq = good.eq; }));
  refuses(make<wire::AtuUnmapCmd>([&](auto& c) { c.id = good.md.id; }));
  refuses(make<wire::DomainFreeCmd>([&](auto& c) { c.domain = good.domain; }));
  refuses(
      make<wire::CtWbUpdateCmd>([&](auto& c) { c.ctn = good.ct, c.wb = reinterpret_cast<std::uint64_t>(&bad.word); }));
  refuses(make<wire::EqResizeCompleteCmd>([&](auto& c) { c.eq_hndl = good.eq; }));
  refuses(make<wire::PteFreeCmd>([&](auto& c) { c.pte_number = 1; }));
  wire::CtAllocResp ct{};
  EXPECT_EQ(bad.client.send(make<wire::CtAllocCmd>([&](auto& c) { c.lni = good.lni; }), ct), EINVAL);
  wire::CqAllocResp cq{};
  EXPECT_EQ(
      bad.client.send(make<wire::CqAllocCmd>([&](auto& c) { c.lni = bad.lni, c.eq = good.eq, c.opts.flags = 2; }), cq),
      EINVAL);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t offset = i % 2 == 0 ? random() : (random() % 64) * 4096;
    const std::uint64_t bytes = i % 3 == 0 ? random() : 4096;
    if (bad.client.client->map(offset, bytes) != 0) bad.client.client->unmap(offset);
  }
  // Counters and queues of the other in commands: the queue stops, the other does not notice.
  const std::uint64_t before = good.counter().success;
  wire::FullDmaCmd c = bad.put(good, 0, 0, 8);
  c.set_ct(good.ct);
  bad.send(c);
  settle();
  EXPECT_EQ(bad.transmit.status().return_code(), wire::ReturnCode::invalid_event);
  EXPECT_EQ(good.counter().success, before);
  EXPECT_TRUE(good.works(fabric));
}

TEST_F(CassiniNeighbours, LengthsAndOffsetsBeyondEverything) {
  const std::uint32_t pte = bad.portal(1);
  wire::TargetCmd whole = bad.entry(pte, wire::PtlList::priority, 0, (std::uint64_t{1} << 56) - 1);
  bad.append(whole);
  settle();
  // Behind its memory follow its events: an access may go on there.
  std::uint32_t failures = 0;
  const auto fails = [&](const wire::FullDmaCmd& command) {
    bad.send(command);
    settle();
    EXPECT_EQ(bad.counter().failure, ++failures);
    EXPECT_TRUE(good.works(fabric));
  };
  fails(bad.put(bad, 1, 0, 0xffffffff));
  fails(bad.put(bad, 1, 0, 64, (std::uint64_t{1} << 56) - 1));
  fails(bad.put(bad, 1, 0, 64, (Neighbour::kPages + 1) * 4096 - 63));
  fails(bad.put(bad, 1, (Neighbour::kPages + 1) * 4096 - 63, 64));
  fails(bad.put(good, 0, 0, 4097));
  fails(bad.put(good, 0, 0, 1, 4096));
  fails(bad.put(good, 0, 0, 64, std::uint64_t{0} - 64));
  wire::FullDmaCmd get = bad.put(good, 0, 0, 4097);
  get.set_header(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::get);
  get.set_flags(wire::kEventCtReply | wire::kEventSuccessDisable);
  fails(get);
}

// Triggers outlive the profile they were armed under.
TEST_F(CassiniNeighbours, ATriggerWithoutAProfile) {
  settle();
  std::uint64_t words[16] = {};
  wire::CtCmd head{};
  head.set_header(wire::CmdType::ct, wire::CmdSize::b128, wire::CtOp::trig_dma);
  head.set_trig_ct(bad.ct);
  head.set_threshold(5);
  std::memcpy(words, &head, sizeof head);
  const wire::FullDmaCmd put = bad.put(good, 0, 0, 8);
  std::memcpy(words + 3, &put, sizeof put);
  bad.counting.emit_bytes(words, sizeof words, 128);
  bad.counting.announce();
  settle();
  ASSERT_EQ(bad.client.free<wire::CpFreeCmd>(bad.cp.cp_hndl), 0);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(bad.doorbell.data()), 5, __ATOMIC_RELEASE);
  settle();
  EXPECT_EQ(bad.counting.status().return_code(), wire::ReturnCode::cmd_invalid_arg);
  EXPECT_TRUE(good.works(fabric));
}

// Large puts, as many as a ring and all triggers hold: the others have their turns in between.
TEST_F(CassiniNeighbours, MoreBytesThanOneTurnMoves) {
  constexpr std::uint64_t kLarge = 32 << 20;
  auto memory = sys::map_anonymous(kLarge, sys::Protect::read_write);
  ASSERT_TRUE(memory);
  std::memset(memory->data(), 1, kLarge);
  const wire::Md large = bad.client.map_memory(bad.lni, memory->data(), kLarge);
  const std::uint32_t pte = bad.portal(1);
  wire::TargetCmd whole = bad.entry(pte, wire::PtlList::priority, 0, kLarge);
  whole.set_lac(large.lac);
  whole.set_start(large.iova);
  bad.append(whole);
  settle();
  wire::FullDmaCmd put = bad.put(bad, 1, 0, kLarge);
  put.set_lac(large.lac);
  put.set_local_addr(large.iova);
  for (int i = 0; i < 50; ++i) bad.transmit.emit(put);
  bad.transmit.announce();
  ASSERT_TRUE(good.works(fabric, 2));
  EXPECT_LE(bad.counter().success, 4u) << "a turn is one of them";
  settle();
  EXPECT_EQ(bad.counter().success, 50u);

  std::uint64_t words[16] = {};
  wire::CtCmd head{};
  head.set_header(wire::CmdType::ct, wire::CmdSize::b128, wire::CtOp::trig_dma);
  head.set_trig_ct(bad.ct);
  head.set_threshold(60);
  std::memcpy(words, &head, sizeof head);
  std::memcpy(words + 3, &put, sizeof put);
  for (int i = 0; i < 40; ++i) bad.counting.emit_bytes(words, sizeof words, 128);
  bad.counting.announce();
  settle();
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(bad.doorbell.data()), 10, __ATOMIC_RELEASE);
  ASSERT_TRUE(good.works(fabric, 3));
  EXPECT_LE(bad.counter().success, 66u);
  settle();
  EXPECT_EQ(bad.counter().success, 100u) << "all of them fired";
}

// A client that goes in the middle of everything leaves nothing.
TEST_F(CassiniNeighbours, GoesWithWorkUnderWay) {
  settle();
  const std::uint32_t entries = card.les_in_use, counters = card.counters.taken(), mds = card.mds.taken();
  for (std::uint32_t round = 0; round < 50; ++round) {
    Neighbour guest{card, 10 + round, 8};
    const std::uint32_t pte = guest.portal(1, wire::kPteIsMatching);
    guest.append(guest.entry(pte, wire::PtlList::overflow, 0, 4096, wire::kLeManageLocal));
    for (int i = 0; i < 300; ++i) guest.transmit.emit(guest.put(guest, 1, 0, 8));
    guest.transmit.announce();
    for (std::uint32_t i = 0; i <= round % 5; ++i) fabric.drive();
  }
  EXPECT_EQ(card.les_in_use, entries);
  EXPECT_EQ(card.counters.taken(), counters);
  EXPECT_EQ(card.mds.taken(), mds);
  EXPECT_EQ(card.tles_in_use, 0u);
  EXPECT_TRUE(good.works(fabric));
}

}  // namespace
}  // namespace strait::soft::cassini::testing
