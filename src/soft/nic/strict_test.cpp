// SPDX-License-Identifier: Apache-2.0
// The strict NIC, over every carrier: each rule is found where it was broken and reported once, the right program next
// to it is not, payloads are whole when they are told of, and no page stays guarded.
#include <unistd.h>

#include <algorithm>

#include "soft/nic/strict_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

using Buffer = StrictBuffer;

INSTANTIATE_TEST_SUITE_P(Over, StrictNic, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) {
                           return each.param == Over::one_copy           ? "one_copy"
                                  : each.param == Over::through_the_ring ? "through_the_ring"
                                                                         : "packets";
                         });

// ---- The nine rules -------------------------------------------------------------------------------------------------

TEST_P(StrictNic, SourceChanged) {
  pair->qa->post(write());
  expect_done(*pair->qa);
  expect_findings({});
  const std::uint64_t wqe = pair->qa->post(write());
  source.at[100] ^= std::byte{1};
  expect_done(*pair->qa);
  expect_line(Rule::source_changed, pair->qa->qpn, "\"wqe\":" + std::to_string(wqe) + ",");
  pair->qa->post(write());  // the same again is the same cause
  source.at[100] ^= std::byte{1};
  expect_done(*pair->qa);
  expect_findings({{Rule::source_changed, 1}});
}

TEST_P(StrictNic, SourceOfASendChanged) {
  Buffer into;
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, pair->reg_b(into.at, kStrictBytes)}});
  pair->qa->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), kStrictBytes, lkey}}});
  source.at[kStrictBytes - 1] ^= std::byte{1};
  expect_done(*pair->qa);
  expect_findings({{Rule::source_changed, 1}});
}

TEST_P(StrictNic, InlinePayloadsMayChangeAtOnce) {
  Wqe small = write();
  small.data.clear();
  small.inlined = pattern(32, 3);
  pair->qa->post(small);
  expect_done(*pair->qa);
  expect_findings({});
}

TEST_P(StrictNic, TargetReadEarly) {
  pair->qa->post(write());
  expect_done(*pair->qa);
  EXPECT_TRUE(target.holds(1));  // after it was told
  expect_findings({});
  pair->qa->post(write());
  drive_until_guarded();
  EXPECT_EQ(__atomic_load_n(reinterpret_cast<unsigned char*>(target.at), __ATOMIC_RELAXED),
            std::to_integer<unsigned char>(target.at[0]));
  expect_done(*pair->qa);
  expect_findings({{Rule::target_read_early, 1}});
  expect_line(Rule::target_read_early, pair->qb->qpn, "\"wqe\":null,\"message\":1,");
  EXPECT_EQ(pair->a->findings(Rule::target_read_early), 0u);  // it is b's memory
  EXPECT_TRUE(target.holds(1));
}

// A receive belongs to the NIC until its completion.
TEST_P(StrictNic, ReceiveReadEarly) {
  Buffer into;
  const std::uint32_t key = pair->reg_b(into.at, kStrictBytes);
  const Wqe send{.opcode = m::Opcode::send, .data = {{address_of(source.at), kStrictBytes, lkey}}};
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
  pair->qa->post(send);
  expect_done(*pair->qb);
  EXPECT_TRUE(into.holds(1));  // after it was told
  expect_done(*pair->qa);
  expect_findings({});
  std::fill_n(into.at, kStrictBytes, std::byte{0});
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
  pair->qa->post(send);
  drive_until_guarded(into.at);
  EXPECT_FALSE(pair->qb->poll());
  EXPECT_EQ(look(into.at + 100), std::byte{0});
  expect_done(*pair->qb);
  expect_done(*pair->qa);
  EXPECT_TRUE(into.holds(1));
  expect_line(Rule::target_read_early, pair->qb->qpn, "\"wqe\":null,\"message\":1,");
  EXPECT_EQ(pair->a->findings(Rule::target_read_early), 0u);
  expect_findings({{Rule::target_read_early, 1}});
}

TEST_P(StrictNic, LastByteOfAReceivePolled) {
  Buffer into;
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, pair->reg_b(into.at, kStrictBytes)}});
  pair->qa->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), kStrictBytes, lkey}}});
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (look(into.at + kStrictBytes - 1) != source.at[kStrictBytes - 1] && !deadline.passed()) pair->drive(1);
  expect_done(*pair->qa);
  expect_line(Rule::last_byte_polled, pair->qb->qpn, "\"message\":0,");
  expect_findings({{Rule::last_byte_polled, 1}});
}

// What a read brings belongs to the NIC until its completion.
TEST_P(StrictNic, TargetOfAReadReadEarly) {
  Buffer back;
  const std::uint32_t key = pair->reg_a(back.at, kStrictBytes);
  target.fill(5);
  pair->qa->post(read(back.at, kStrictBytes, key));
  expect_done(*pair->qa);
  EXPECT_TRUE(back.holds(5));
  expect_findings({});
  std::fill_n(back.at, kStrictBytes, std::byte{0});
  const std::uint64_t wqe = pair->qa->post(read(back.at, kStrictBytes, key));
  drive_until_guarded(back.at);
  EXPECT_FALSE(pair->qa->poll());
  EXPECT_EQ(look(back.at + 100), std::byte{0});
  expect_done(*pair->qa);
  EXPECT_TRUE(back.holds(5));
  expect_line(Rule::target_read_early, pair->qa->qpn, "\"wqe\":" + std::to_string(wqe) + ",\"message\":null,");
  EXPECT_EQ(pair->b->findings(Rule::target_read_early), 0u);
  expect_findings({{Rule::target_read_early, 1}});
}

// One or the other is there in the end; nobody has looked.
TEST_P(StrictNic, TwoReadsIntoOnePlace) {
  Buffer back;
  const std::uint32_t key = pair->reg_a(back.at, kStrictBytes);
  target.fill(6);
  for (int i = 0; i < 2; ++i) pair->qa->post(read(back.at, kStrictBytes, key));
  drive_until_guarded(back.at);
  for (int i = 0; i < 2; ++i) pair->qa->post(read(back.at, kStrictBytes, key));
  for (int i = 0; i < 4; ++i) expect_done(*pair->qa);
  EXPECT_TRUE(back.holds(6));
  expect_findings({});
}

TEST_P(StrictNic, LastBytePolled) {
  const auto* last = reinterpret_cast<unsigned char*>(target.at + kStrictBytes - 1);
  pair->qa->post(write());
  const auto expected = std::to_integer<unsigned char>(source.at[kStrictBytes - 1]);
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != expected && !deadline.passed()) pair->drive(1);
  expect_done(*pair->qa);
  expect_line(Rule::last_byte_polled, pair->qb->qpn, "\"message\":0,");
  expect_findings({{Rule::last_byte_polled, 1}});
}

// Where no whole page is written nobody can be caught; but the last byte is there before the others.
TEST_P(StrictNic, LastByteOfASmallWriteComesFirst) {
  constexpr std::uint32_t kSmall = 1000;
  const auto* last = reinterpret_cast<unsigned char*>(target.at + kSmall - 1);
  source.at[kSmall - 1] = source.at[0] = std::byte{0x5a};
  pair->qa->post(write(kSmall));
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != 0x5a && !deadline.passed()) {
    pair->a->drive(0);
    if (__atomic_load_n(last, __ATOMIC_ACQUIRE) != 0x5a) pair->b->drive(0);
  }
  EXPECT_EQ(target.at[0], std::byte{0});
  expect_done(*pair->qa);
  EXPECT_TRUE(std::equal(source.at, source.at + kSmall, target.at));
  expect_findings({});
}

TEST_P(StrictNic, SendQueueOverrun) {
  make(4);
  std::uint64_t last = 0;
  for (int i = 0; i < 4; ++i) last = pair->qa->post(write(kStrictBytes / 4));
  EXPECT_EQ(last, 3u);
  for (int i = 0; i < 4; ++i) expect_done(*pair->qa);
  expect_findings({});
  for (int i = 0; i < 5; ++i) {  // the fifth goes into the block of the first
    pair->qa->write(write(kStrictBytes / 4));
    pair->qa->publish();
    pair->a->drive(pair->qa->qpn);
  }
  expect_line(Rule::send_queue_overrun, pair->qa->qpn, "\"wqe\":4,");
  expect_findings({{Rule::send_queue_overrun, 1}});
}

TEST_P(StrictNic, CompletionQueueOverrun) {
  TestQueue small_a(*pair->a, pair->pd_a, 64, 16, 4), small_b(*pair->b, pair->pd_b);
  connect_too(small_a, small_b);
  for (int i = 0; i < 4; ++i) small_a.post(write(64));
  for (int i = 0; i < 4; ++i) expect_done(small_a);
  for (int i = 0; i < 4; ++i) small_a.post(write(64, 0));
  small_a.post(write(64));
  expect_done(small_a);
  expect_findings({});
  for (int i = 0; i < 5; ++i) small_a.post(write(64));
  for (int i = 0; i < 10'000 && pair->a->findings(Rule::completion_queue_overrun) == 0; ++i) pair->drive(1);
  expect_line(Rule::completion_queue_overrun, small_a.qpn, "\"wqe\":13,");
  expect_findings({{Rule::completion_queue_overrun, 1}});
}

TEST_P(StrictNic, UsedAfterDeregistration) {
  pair->qa->post(write());
  expect_done(*pair->qa);
  ASSERT_TRUE(pair->a->deregister_memory(lkey));
  expect_findings({});
  const std::uint64_t wqe = pair->qa->post(write());
  const auto event = pair->wait(*pair->qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_protection);
  expect_line(Rule::used_after_deregistration, pair->qa->qpn, "\"wqe\":" + std::to_string(wqe) + ",");
  expect_findings({{Rule::used_after_deregistration, 1}});
}

TEST_P(StrictNic, ReceiveIntoDeregisteredMemory) {
  Buffer into;
  const std::uint32_t key = pair->reg_b(into.at, kStrictBytes);
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
  ASSERT_TRUE(pair->b->deregister_memory(key));
  pair->qa->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), 1000, lkey}}});
  ASSERT_TRUE(pair->wait(*pair->qa));
  expect_line(Rule::used_after_deregistration, pair->qb->qpn, "\"wqe\":0,");
  expect_findings({{Rule::used_after_deregistration, 1}});
}

// A key that never existed is an error of another kind; one that a peer revoked is told to who uses it.
TEST_P(StrictNic, OtherKeyFaultsAreNoFindings) {
  Wqe wrong = write();
  wrong.data[0].lkey = 0x123456;
  pair->qa->post(wrong);
  ASSERT_TRUE(pair->wait(*pair->qa));
  expect_findings({});
  make();
  ASSERT_TRUE(pair->b->deregister_memory(rkey));
  pair->qa->post(write());
  const auto event = pair->wait(*pair->qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
  expect_findings({});
}

TEST_P(StrictNic, UnflushedReadOfWhatIsBeingWritten) {
  Buffer back;
  const std::uint32_t key = pair->reg_a(back.at, kStrictBytes);
  pair->qa->post(write());
  expect_done(*pair->qa);
  pair->qa->post(read(back.at, kStrictBytes, key));  // after waiting
  expect_done(*pair->qa);
  EXPECT_TRUE(back.holds(1));
  expect_findings({});
  const std::uint64_t first = pair->qa->write(write(kStrictBytes, 0));
  const std::uint64_t second = pair->qa->write(read(back.at, 64, key));
  pair->qa->publish();
  pair->a->drive(pair->qa->qpn);
  expect_done(*pair->qa);
  expect_line(Rule::unflushed_read, pair->qa->qpn, "\"wqe\":" + std::to_string(second) + ",");
  EXPECT_NE(report.lines().front().find("WQE " + std::to_string(first) + " "), std::string::npos);
  expect_findings({{Rule::unflushed_read, 1}});
}

TEST_P(StrictNic, UnflushedReadOfWhatIsBeingFetched) {
  const auto fetch_and_forward = [&](std::uint8_t flags) {
    pair->qa->write(read(source.at, kStrictBytes / 2, lkey, 0));
    Wqe forward = write(kStrictBytes / 2, flags);
    forward.raddr += kStrictBytes / 2;
    pair->qa->write(forward);
    pair->qa->publish();
    pair->a->drive(pair->qa->qpn);
    expect_done(*pair->qa);
  };
  fetch_and_forward(m::kCompletionAlways | m::kFence);
  expect_findings({});
  fetch_and_forward(m::kCompletionAlways);
  EXPECT_GE(pair->a->findings(Rule::unflushed_read), 1u);
}

TEST_P(StrictNic, ReceiveTooLate) {
  Buffer into;
  const std::uint32_t key = pair->reg_b(into.at, kStrictBytes);
  const Wqe send{.opcode = m::Opcode::send, .data = {{address_of(source.at), kStrictBytes, lkey}}};
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
  pair->qa->post(send);
  expect_done(*pair->qa);
  expect_done(*pair->qb);
  expect_findings({});
  pair->qa->post(send);
  for (int i = 0; i < 100'000 && pair->b->findings(Rule::receive_too_late) == 0; ++i) pair->drive(1);
  pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
  expect_done(*pair->qa);
  expect_done(*pair->qb);
  expect_line(Rule::receive_too_late, pair->qb->qpn, "\"wqe\":1,");
  expect_findings({{Rule::receive_too_late, 1}});
}

// Receivers that are overlooked on purpose are no mistake of the program's.
TEST_P(StrictNic, AnRnrStormIsNoFinding) {
  make(64, "rnr=50%,seed=3");
  Buffer into;
  const std::uint32_t key = pair->reg_b(into.at, kStrictBytes);
  for (int i = 0; i < 20; ++i) {
    pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
    pair->qa->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), 3000, lkey}}});
    expect_done(*pair->qa);
    expect_done(*pair->qb);
  }
  expect_findings({});
}

TEST_P(StrictNic, AnOverrunOnPurposeIsNoFinding) {
  make(64, "overrun=2");
  for (int i = 0; i < 4; ++i) pair->qa->post(write(64));
  for (int i = 0; i < 1000; ++i) pair->drive(1);
  EXPECT_TRUE(pair->qa->poll());
  EXPECT_FALSE(pair->qa->poll());
  expect_findings({});
}

TEST_P(StrictNic, QueueCannotDrain) {
  make(8);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 7; ++i) pair->qa->write(write(64, 0));
    pair->qa->write(write(64));
    pair->qa->publish();
    pair->a->drive(pair->qa->qpn);
    expect_done(*pair->qa);
  }
  expect_findings({});
  for (int i = 0; i < 8; ++i) pair->qa->write(write(64, 0));
  pair->qa->publish();
  for (int i = 0; i < 10'000 && pair->a->findings(Rule::queue_cannot_drain) == 0; ++i) pair->drive(1);
  expect_line(Rule::queue_cannot_drain, pair->qa->qpn, "\"wqe\":31,");
  expect_findings({{Rule::queue_cannot_drain, 1}});
}

// ---- Hostile, but right ---------------------------------------------------------------------------------------------

TEST_P(StrictNic, PayloadsLandLateAndWhole) {
  std::uint64_t waited = 0;
  for (unsigned round = 2; round < 30; ++round) {
    source.fill(round);
    pair->qa->post(write());
    drive_until_guarded();
    while (staged()) {
      EXPECT_FALSE(pair->qa->poll());  // nobody is told before
      pair->drive(1);
      ++waited;
    }
    expect_done(*pair->qa);
    ASSERT_TRUE(target.holds(round));
  }
  EXPECT_GT(waited, 28u);
  expect_findings({});
}

TEST_P(StrictNic, EveryLengthAndOffsetLandsWhole) {
  for (const std::uint32_t n : {1u, 7u, 8u, 63u, 64u, 65u, 127u, 1000u, 4096u, 4097u, 9000u, 20'000u}) {
    for (const std::uint32_t at : {0u, 1u, 8u, 63u, 4000u}) {
      std::fill_n(target.at, kStrictBytes, std::byte{0});
      Wqe wqe = write(n);
      wqe.raddr += at;
      pair->qa->post(wqe);
      expect_done(*pair->qa);
      ASSERT_TRUE(std::equal(source.at, source.at + n, target.at + at)) << n << " at " << at;
      ASSERT_EQ(std::count(target.at + at + n, target.at + kStrictBytes, std::byte{0}),
                static_cast<std::ptrdiff_t>(kStrictBytes - at - n));
      ASSERT_EQ(std::count(target.at, target.at + at, std::byte{0}), static_cast<std::ptrdiff_t>(at));
    }
  }
  expect_findings({});
}

// Shorter than its receive, in several pieces or in one, and read back again.
TEST_P(StrictNic, MessagesAndAnswersOfEveryLengthLandWhole) {
  Buffer into, back;
  const std::uint32_t into_key = pair->reg_b(into.at, kStrictBytes), back_key = pair->reg_a(back.at, kStrictBytes);
  for (const std::uint32_t n : {1u, 7u, 8u, 63u, 64u, 65u, 1000u, 1024u, 1025u, 4096u, 9000u, 40'000u}) {
    for (const std::uint32_t at : {0u, 1u, 4000u}) {
      for (const bool pieces : {false, true}) {
        SCOPED_TRACE(fmt::format("{} bytes at {}{}", n, at, pieces ? " in two pieces" : ""));
        std::fill_n(into.at, kStrictBytes, std::byte{0});
        std::fill_n(back.at, kStrictBytes, std::byte{0});
        const std::uint64_t start = address_of(into.at + at);
        if (pieces) {
          pair->qb->post_receive({{start, 500, into_key}, {start + 500, 44'000, into_key}});
        } else {
          pair->qb->post_receive({{start, 44'500, into_key}});
        }
        pair->qa->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), n, lkey}}});
        expect_done(*pair->qa);
        const auto event = pair->wait(*pair->qb);
        ASSERT_TRUE(event);
        EXPECT_EQ(event->bytes, n);
        ASSERT_TRUE(std::equal(source.at, source.at + n, into.at + at));
        ASSERT_EQ(std::count(into.at + at + n, into.at + kStrictBytes, std::byte{0}),
                  static_cast<std::ptrdiff_t>(kStrictBytes - at - n));
        std::copy_n(source.at, n, target.at);
        Wqe get = read(back.at + at, n, back_key);
        if (pieces && n > 1)
          get.data = {{address_of(back.at + at), 1, back_key}, {address_of(back.at + at + 1), n - 1, back_key}};
        pair->qa->post(get);
        expect_done(*pair->qa);
        ASSERT_TRUE(std::equal(source.at, source.at + n, back.at + at));
        ASSERT_EQ(std::count(back.at + at + n, back.at + kStrictBytes, std::byte{0}),
                  static_cast<std::ptrdiff_t>(kStrictBytes - at - n));
      }
    }
  }
  expect_findings({});
}

TEST_P(StrictNic, SoItIsUnderLoss) {
  make(64, "drop=5%,dup=3%,reorder=3%,seed=11");
  for (unsigned round = 2; round < 60; ++round) {
    source.fill(round);
    for (std::uint32_t part = 0; part < 4; ++part) {
      Wqe wqe = write(kStrictBytes / 4, part == 3 ? m::kCompletionAlways : std::uint8_t{0});
      wqe.raddr += part * (kStrictBytes / 4);
      wqe.data[0].addr += part * (kStrictBytes / 4);
      pair->qa->write(wqe);
    }
    pair->qa->publish();
    pair->a->drive(pair->qa->qpn);
    expect_done(*pair->qa);
    ASSERT_TRUE(target.holds(round)) << round;
  }
  expect_findings({});
}

TEST_P(StrictNic, MessagesAndAnswersToo) {
  make(64, "drop=5%,dup=3%,reorder=3%,seed=12", 10'000'000'000);
  Buffer into, back;
  const std::uint32_t into_key = pair->reg_b(into.at, kStrictBytes), back_key = pair->reg_a(back.at, kStrictBytes);
  for (unsigned round = 2; round < 60; ++round) {
    source.fill(round);
    target.fill(round + 1000);
    pair->qb->post_receive({{address_of(into.at), kStrictBytes, into_key}});
    pair->qa->write({.opcode = m::Opcode::send,
                     .data = {{address_of(source.at), static_cast<std::uint32_t>(kStrictBytes) - round, lkey}},
                     .flags = 0});
    pair->qa->write(read(back.at, kStrictBytes, back_key));
    pair->qa->publish();
    pair->a->drive(pair->qa->qpn);
    expect_done(*pair->qa);
    expect_done(*pair->qb);
    ASSERT_TRUE(std::equal(source.at, source.at + kStrictBytes - round, into.at)) << round;
    ASSERT_TRUE(back.holds(round + 1000)) << round;
  }
  expect_findings({});
}

// A peer that reads what another one writes gets some bytes or other, and nobody is blamed or refused.
TEST_P(StrictNic, APeerMayReadWhatIsOnItsWay) {
  TestQueue reader(*pair->a, pair->pd_a), answerer(*pair->b, pair->pd_b);
  connect_too(reader, answerer);
  Buffer back;
  const std::uint32_t key = pair->reg_a(back.at, kStrictBytes);
  pair->qa->post(write());
  drive_until_guarded();
  reader.post(read(back.at, kStrictBytes, key));
  expect_done(reader);
  expect_done(*pair->qa);
  EXPECT_TRUE(target.holds(1));
  expect_findings({});
}

// ---- Guards go away -------------------------------------------------------------------------------------------------

TEST_P(StrictNic, MemoryIsReadableAfterTheQueuePairFailed) {
  pair->qa->post(write());
  drive_until_guarded();
  ASSERT_TRUE(pair->b->fail_qp(pair->qb->qpn));
  EXPECT_TRUE(readable(target.at));
  EXPECT_TRUE(readable(target.at + kStrictBytes - 1));
  ASSERT_TRUE(pair->a->fail_qp(pair->qa->qpn));
  expect_findings({});
}

TEST_P(StrictNic, MemoryIsReadableAfterItWasDeregistered) {
  pair->qa->post(write());
  drive_until_guarded();
  ASSERT_TRUE(pair->b->deregister_memory(rkey));
  EXPECT_TRUE(readable(target.at));
  const auto event = pair->wait(*pair->qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);  // it had not landed
  EXPECT_EQ(std::count(target.at, target.at + kStrictBytes, std::byte{0}), static_cast<std::ptrdiff_t>(kStrictBytes));
  expect_findings({});
}

TEST_P(StrictNic, MemoryIsReadableAfterTheQueuePairWasDestroyed) {
  pair->qa->post(write());
  drive_until_guarded();
  pair->qb.reset();
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

TEST_P(StrictNic, ReceivesAndReadTargetsAreReadableAfterAFailure) {
  for (const bool reading : {false, true}) {
    for (const int how : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", reading ? "read" : "receive", how));
      make();
      Buffer into;
      const std::uint32_t key = reading ? pair->reg_a(into.at, kStrictBytes) : pair->reg_b(into.at, kStrictBytes);
      if (!reading) pair->qb->post_receive({{address_of(into.at), kStrictBytes, key}});
      pair->qa->post(reading ? read(into.at, kStrictBytes, key)
                             : Wqe{.opcode = m::Opcode::send, .data = {{address_of(source.at), kStrictBytes, lkey}}});
      drive_until_guarded(into.at);
      Engine& engine = reading ? *pair->a : *pair->b;
      std::unique_ptr<TestQueue>& queue = reading ? pair->qa : pair->qb;
      if (how == 0) {
        ASSERT_TRUE(engine.fail_qp(queue->qpn));
      } else if (how == 1) {
        queue.reset();
      } else {
        ASSERT_TRUE(engine.deregister_memory(key));
      }
      EXPECT_TRUE(readable(into.at));
      EXPECT_TRUE(readable(into.at + kStrictBytes - 1));
      if (how != 2) continue;
      const auto event = pair->wait(*queue);  // the program took its memory back too early
      ASSERT_TRUE(event);
      EXPECT_EQ(event->syndrome, m::Syndrome::local_protection);
      EXPECT_EQ(std::count(into.at, into.at + kStrictBytes, std::byte{0}), static_cast<std::ptrdiff_t>(kStrictBytes));
      EXPECT_EQ(engine.findings(Rule::used_after_deregistration), 1u);
    }
  }
}

TEST_P(StrictNic, MemoryIsReadableAfterTheNicWasClosed) {
  pair->qa->post(write());
  drive_until_guarded();
  pair->qb->outlives_engine = true;
  pair->b.reset();
  EXPECT_TRUE(readable(target.at));
}

// ---- The file -------------------------------------------------------------------------------------------------------

TEST_P(StrictNic, CountersSayHowMany) {
  EXPECT_NE(pair->a->counters_text().find("strict_findings=0"), std::string::npos);
  pair->qa->post(write());
  source.at[0] ^= std::byte{1};
  expect_done(*pair->qa);
  EXPECT_NE(pair->a->counters_text().find("strict_findings=1"), std::string::npos);
}

// What is random depends on the seed alone, and a finding says which it was.
TEST(StrictSeed, ReplaysAndIsTold) {
  ReportFile report;
  const auto delays = [&](std::uint64_t seed) {
    Strict strict("nic", {.report = report.path, .exit_code = 0, .seed = seed, .quiet = true});
    strict.found(Rule::source_changed, 7, 0, "something");
    std::vector<std::uint32_t> passes(64);
    for (std::uint32_t& each : passes) each = strict.lateness();
    return passes;
  };
  const auto seven = delays(7);
  EXPECT_EQ(delays(7), seven);
  EXPECT_NE(delays(8), seven);
  const auto lines = report.lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].ends_with(R"("seed":7})")) << lines[0];
  EXPECT_TRUE(lines[2].ends_with(R"("seed":8})")) << lines[2];
  EXPECT_EQ(strict_seed_of(0, std::nullopt), 1u);
  EXPECT_EQ(strict_seed_of(0, FaultPlan::parse("drop=1%,seed=9").value()), 9u);
  EXPECT_EQ(strict_seed_of(5, FaultPlan::parse("drop=1%,seed=9").value()), 5u);
}

TEST(StrictReport, NamesAreEscaped) {
  ReportFile report;
  {
    Strict strict("a \"nic\"\\\n", {.report = report.path, .exit_code = 0, .quiet = true});
    strict.found(Rule::source_changed, 7, 65536 + 3, "\ttab");
    strict.found(Rule::source_changed, 7, 4, "the same cause");
    strict.found(Rule::source_changed, 8, Strict::kNone, "another queue pair", 5);
    EXPECT_EQ(strict.count(Rule::source_changed), 3u);
    EXPECT_EQ(strict.causes(Rule::source_changed), 2u);
  }
  const auto lines = report.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(R"("nic":"a \"nic\"\\\u000a")"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(R"("queue_pair":7,"wqe":3,"message":null,)"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(R"("what":"\u0009tab")"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(R"("queue_pair":8,"wqe":null,"message":5,)"), std::string::npos) << lines[1];
}

TEST(StrictReport, AFileThatCannotBeWrittenIsRefusedAtOpen) {
  EngineConfig config;
  config.strict = StrictConfig{.report = "/nowhere/at/all", .exit_code = 0, .quiet = true};
  const auto opened = Engine::open(config);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().explain().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace strait::soft::nic::testing
