// SPDX-License-Identifier: Apache-2.0
// The rules of RoCEv2, one by one: sequence numbers and acknowledgement (docs/wire-roce.md).
#include <array>

#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// Memory on this end for what the test, as the peer, writes and reads; or the other way round.
struct Memory {
  explicit Memory(Live& live, std::size_t n = 4096) : bytes(n), key(live.reg(bytes.data(), n)) {}
  [[nodiscard]] std::uint64_t at(std::size_t offset = 0) const { return address_of(bytes.data()) + offset; }
  std::vector<std::byte> bytes;
  std::uint32_t key;
};

Pkt write_of(const Memory& memory, std::uint32_t psn, std::vector<std::byte> payload) {
  const auto n = static_cast<std::uint32_t>(payload.size());
  return {.opcode = write_only, .psn = psn, .va = memory.at(), .rkey = memory.key, .length = n, .payload = payload};
}

Wqe small_write() {
  return {.opcode = m::Opcode::rdma_write, .raddr = 0x1000, .rkey = 0x77, .inlined = pattern(8, 1)};
}

// ---- PSN and MSN

TEST(RulePsn, TwentyFourBitsThatWrap) {
  Live live;  // expects 0xfffffd
  Memory memory(live);
  for (std::uint32_t i = 0; i < 6; ++i) {
    const Pkt answer = live.answer(write_of(memory, live.at(i), pattern(4, i)));
    EXPECT_EQ(answer.opcode, ack_op);
    EXPECT_EQ(answer.psn, (0xfffffd + i) & 0xffffff);
    EXPECT_EQ(answer.msn, i + 1);
    EXPECT_EQ(answer.qpn, live.config().remote_qpn);
  }
  EXPECT_EQ(live.state().epsn, 3u);
}

TEST(RulePsn, HalfTheCircleIsAheadAndHalfIsBehind) {
  LiveConfig config;
  config.receive_psn = 1;
  {
    Live live(config);
    Memory memory(live);
    const Pkt answer = live.answer(write_of(memory, 0x800000, pattern(4, 1)));
    EXPECT_EQ(answer.syndrome, 0x60u) << "2^23 - 1 ahead";
    EXPECT_EQ(answer.psn, 1u);
  }
  Live live(config);
  Memory memory(live);
  const Pkt answer = live.answer(write_of(memory, 0x800001, pattern(4, 1)));
  EXPECT_EQ(answer.syndrome, 0x1fu) << "2^23 behind: a duplicate";
  EXPECT_EQ(answer.psn, 0u);
  EXPECT_EQ(memory.bytes, std::vector<std::byte>(4096)) << "and not executed";
}

TEST(RulePsn, AReadTakesAsManyAsItsResponseHasPackets) {
  Live live;
  Memory memory(live);
  const auto responses = live.feed(
      {.opcode = read_request, .psn = live.at(0), .va = memory.at(), .rkey = memory.key, .length = 3 * 256 - 1});
  ASSERT_EQ(responses.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(responses[i].psn, live.at(i));
  EXPECT_EQ(live.answer(write_of(memory, live.at(4), pattern(4, 1))).syndrome, 0x60u);
  EXPECT_EQ(live.answer(write_of(memory, live.at(3), pattern(4, 1))).syndrome, 0x1fu);
  // An empty one still takes one.
  ASSERT_EQ(live.feed({.opcode = read_request, .psn = live.at(4)}).size(), 1u);
  EXPECT_EQ(live.answer(write_of(memory, live.at(5), pattern(4, 1))).syndrome, 0x1fu);
}

TEST(RulePsn, TheRequesterCountsTheSame) {
  Live live;
  Memory memory(live);
  live.queue->write(
      {.opcode = m::Opcode::rdma_read, .raddr = 0x1000, .rkey = 1, .data = {{memory.at(), 3 * 256 - 1, memory.key}}});
  live.queue->write({.opcode = m::Opcode::atomic_fa,
                     .raddr = 0x1000,
                     .rkey = 1,
                     .data = {{memory.at(), 8, memory.key}},
                     .atomic = {1, 0}});
  live.queue->write({.opcode = m::Opcode::nop});
  live.queue->write({.opcode = m::Opcode::rdma_write, .raddr = 0, .rkey = 1, .data = {{memory.at(), 300, memory.key}}});
  live.queue->write(small_write());
  live.queue->publish();
  live.drive();
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 5u);
  const std::array<std::uint32_t, 5> steps{0, 3, 4, 5, 6};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(sent[i].psn, live.ours(steps[i])) << i;
}

TEST(RuleMsn, CountsAMessageAtItsLastPacketAndAReadAtItsStart) {
  Live live;
  Memory memory(live);
  Pkt first = write_of(memory, live.at(0), pattern(256, 1));
  first.opcode = write_first;
  first.length = 512;
  EXPECT_EQ(live.answer(first).msn, 0u) << "not done yet";
  EXPECT_EQ(live.answer({.opcode = write_last, .psn = live.at(1), .payload = pattern(256, 2)}).msn, 1u);
  const auto read =
      live.feed({.opcode = read_request, .psn = live.at(2), .va = memory.at(), .rkey = memory.key, .length = 600});
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].msn, 2u);
  EXPECT_EQ(read[2].msn, 2u);
  EXPECT_EQ(live.answer({.opcode = fetch_add, .psn = live.at(5), .va = memory.at(), .rkey = memory.key}).msn, 3u);
}

// ---- acknowledgement by the responder

TEST(RuleAck, OnlyWhoAsksIsAnsweredAndOneAnswerCoversAll) {
  Live live;
  Memory memory(live);
  Pkt quiet = write_of(memory, live.at(0), pattern(4, 1));
  quiet.ack_req = false;
  EXPECT_TRUE(live.feed(quiet).empty());
  live.inject(write_of(memory, live.at(1), pattern(4, 2)));
  live.inject(write_of(memory, live.at(2), pattern(4, 3)));
  quiet.psn = live.at(3);
  live.inject(quiet);
  live.drive();
  const auto answers = live.sent();
  ASSERT_EQ(answers.size(), 1u) << "what arrived together is acknowledged together";
  EXPECT_EQ(answers[0].psn, live.at(3));
  EXPECT_EQ(answers[0].msn, 4u);
  EXPECT_EQ(answers[0].syndrome, 0x1fu) << "credits are not used";
}

// ---- what the requester makes of answers

class RuleSyndrome : public ::testing::TestWithParam<std::pair<unsigned, m::Syndrome>> {};
INSTANTIATE_TEST_SUITE_P(All, RuleSyndrome,
                         ::testing::Values(std::pair{0x00u, m::Syndrome::none}, std::pair{0x0au, m::Syndrome::none},
                                           std::pair{0x1eu, m::Syndrome::none}, std::pair{0x1fu, m::Syndrome::none},
                                           std::pair{0x61u, m::Syndrome::remote_invalid_request},
                                           std::pair{0x62u, m::Syndrome::remote_access},
                                           std::pair{0x63u, m::Syndrome::remote_operation}),
                         [](const auto& each) { return fmt::format("x{:02x}", each.param.first); });

TEST_P(RuleSyndrome, BecomesTheCompletion) {
  Live live;
  const auto first = live.queue->write(small_write());
  Wqe unsignaled = small_write();
  unsignaled.flags = 0;
  const auto second = live.queue->write(unsignaled);
  live.queue->publish();
  live.drive();
  ASSERT_EQ(live.sent().size(), 2u);
  const auto [syndrome, result] = GetParam();
  // The last one of two: what it refuses is the second, and the first is done.
  live.feed(live.ack(live.ours(1), syndrome));
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->counter, first & 0xffff);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  event = live.queue->poll();
  if (result == m::Syndrome::none) {
    EXPECT_FALSE(event) << "the second was not signaled";
    EXPECT_FALSE(live.failed());
    EXPECT_TRUE(live.qp().idle());
    return;
  }
  ASSERT_TRUE(event) << "an error completes also what is not signaled";
  EXPECT_EQ(event->counter, second & 0xffff);
  EXPECT_EQ(event->syndrome, result);
  EXPECT_TRUE(live.failed());
  live.queue->post(small_write());
  event = live.wait();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  EXPECT_TRUE(live.sent().empty());
}

TEST(RuleAck, AReadResponseAcknowledgesWhatIsBeforeIt) {
  Live live;
  Memory memory(live);
  const auto write = live.queue->write(small_write());
  const auto read = live.queue->write(
      {.opcode = m::Opcode::rdma_read, .raddr = 0x1000, .rkey = 1, .data = {{memory.at(), 5, memory.key}}});
  live.queue->publish();
  live.drive();
  ASSERT_EQ(live.sent().size(), 2u);
  live.feed({.opcode = read_only, .psn = live.ours(1), .payload = pattern(5, 9)});
  for (const auto index : {write, read}) {
    const auto event = live.queue->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, index & 0xffff);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
  EXPECT_EQ(std::memcmp(memory.bytes.data(), pattern(5, 9).data(), 5), 0);
  EXPECT_EQ(memory.bytes[5], std::byte{0});
}

TEST(RuleAck, AnAtomicAcknowledgementDoesToo) {
  Live live;
  alignas(8) std::uint64_t old = 0;
  const std::uint32_t key = live.reg(&old, 8);
  live.queue->write(small_write());
  live.queue->write({.opcode = m::Opcode::atomic_cs,
                     .raddr = 0x1000,
                     .rkey = 1,
                     .data = {{address_of(&old), 8, key}},
                     .atomic = {0x1111, 0x2222}});
  live.queue->publish();
  live.drive();
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].opcode, compare_swap);
  EXPECT_EQ(sent[1].swap_or_add, 0x1111u);
  EXPECT_EQ(sent[1].compare, 0x2222u);
  live.feed({.opcode = atomic_ack, .psn = live.ours(1), .original = 0x0102030405060708});
  ASSERT_TRUE(live.queue->poll());
  ASSERT_TRUE(live.queue->poll());
  EXPECT_EQ(old, 0x0102030405060708u);
}

TEST(RuleAck, ASequenceNakAcknowledgesWhatIsBeforeItAndTheRestIsSentAgain) {
  Live live;
  std::vector<std::uint64_t> indices;
  for (int i = 0; i < 4; ++i) indices.push_back(live.queue->write(small_write()));
  live.queue->publish();
  live.drive();
  ASSERT_EQ(live.sent().size(), 4u);
  const auto again = live.feed(live.ack(live.ours(2), 0x60));
  for (int i = 0; i < 2; ++i) {
    const auto event = live.queue->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, indices[static_cast<std::size_t>(i)] & 0xffff);
  }
  EXPECT_FALSE(live.queue->poll());
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].psn, live.ours(2));
  EXPECT_EQ(again[1].psn, live.ours(3));
}

TEST(RuleAck, AReceiverThatIsNotReadyAcknowledgesWhatIsBeforeIt) {
  Live live;
  for (int i = 0; i < 3; ++i) live.queue->write({.opcode = m::Opcode::send, .inlined = pattern(8, 1)});
  live.queue->publish();
  live.drive();
  ASSERT_EQ(live.sent().size(), 3u);
  live.inject(live.ack(live.ours(1), 0x20 | 12));
  const auto start = sys::now_ns();
  live.engine->drive(0);
  EXPECT_TRUE(live.queue->poll());
  EXPECT_FALSE(live.queue->poll());
  EXPECT_NE(live.state().resume_at_ns, 0);
  EXPECT_TRUE(live.drive_until([&] { return live.port->on_the_way().size() == 2; }));
  EXPECT_GE(sys::now_ns() - start, 640'000);
  EXPECT_EQ(live.sent()[0].psn, live.ours(1));
  live.feed(live.ack(live.ours(2)));
  EXPECT_TRUE(live.queue->poll());
  EXPECT_TRUE(live.queue->poll());
}

TEST(RuleAck, BeyondWhatWasSentIsIgnored) {
  Live live;
  live.queue->post(small_write());
  for (const std::uint32_t psn : {live.ours(1), live.ours(100), live.ours(0x7fffff), live.ours(0x800000)}) {
    live.feed(live.ack(psn));
    EXPECT_FALSE(live.queue->poll()) << psn;
    live.feed(live.ack(psn, 0x62));
    EXPECT_FALSE(live.queue->poll()) << psn;
    EXPECT_FALSE(live.failed());
  }
  live.feed(live.ack(live.ours(0)));
  EXPECT_TRUE(live.queue->poll());
  // Again: old news.
  live.feed(live.ack(live.ours(0)));
  live.feed(live.ack(live.ours(0), 0x61));
  EXPECT_FALSE(live.queue->poll());
  EXPECT_FALSE(live.failed());
}

TEST(RuleAck, BeyondAnOutstandingReadMeansThatItsResponseWasLost) {
  Live live;
  Memory memory(live);
  const auto read = live.queue->write(
      {.opcode = m::Opcode::rdma_read, .raddr = 0x1000, .rkey = 1, .data = {{memory.at(), 600, memory.key}}});
  const auto write = live.queue->write(small_write());
  live.queue->publish();
  live.drive();
  ASSERT_EQ(live.sent().size(), 2u);
  const auto again = live.feed(live.ack(live.ours(3)));
  EXPECT_FALSE(live.queue->poll());
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].opcode, read_request);
  EXPECT_EQ(again[0].psn, live.ours(0));
  live.inject({.opcode = read_first, .psn = live.ours(0), .payload = pattern(256, 1)});
  live.inject({.opcode = read_middle, .psn = live.ours(1), .payload = pattern(256, 2)});
  live.feed({.opcode = read_last, .psn = live.ours(2), .payload = pattern(88, 3)});
  live.feed(live.ack(live.ours(3)));
  for (const auto index : {read, write}) {
    const auto event = live.queue->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, index & 0xffff);
  }
}

// Nobody honest sends this; it must not make the read impossible to finish.
TEST(RuleAck, InsideAnOutstandingReadChangesNothing) {
  Live live;
  Memory memory(live);
  live.queue->post(
      {.opcode = m::Opcode::rdma_read, .raddr = 0x1000, .rkey = 1, .data = {{memory.at(), 600, memory.key}}});
  live.sent();
  live.feed(live.ack(live.ours(1)));
  live.inject({.opcode = read_first, .psn = live.ours(0), .payload = pattern(256, 1)});
  live.inject({.opcode = read_middle, .psn = live.ours(1), .payload = pattern(256, 2)});
  live.feed({.opcode = read_last, .psn = live.ours(2), .payload = pattern(88, 3)});
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
}

// ---- timers and counts

TEST(RuleRnr, TimerCodesAreThoseOfTheTable) {
  constexpr std::array<double, 32> kMilliseconds = {655.36, .01,   .02,   .03,    .04,    .06,    .08,    .12,
                                                    .16,    .24,   .32,   .48,    .64,    .96,    1.28,   1.92,
                                                    2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                                    40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (unsigned code = 0; code < 32; ++code) {
    Live live;
    live.queue->post({.opcode = m::Opcode::send, .inlined = pattern(8, 1)});
    const auto before = sys::now_ns();
    live.inject(live.ack(live.ours(0), 0x20 | code));
    live.engine->drive(0);
    const auto after = sys::now_ns();
    const auto wait = static_cast<std::int64_t>(kMilliseconds[code] * 1e6 + 0.5);
    EXPECT_GE(live.state().resume_at_ns, before + wait) << code;
    EXPECT_LE(live.state().resume_at_ns, after + wait) << code;
  }
}

TEST(RuleRnr, GivesUpAfterItsRetriesAndProgressRefillsThem) {
  LiveConfig config;
  config.rnr_retries = 2;
  Live live(config);
  const Wqe send{.opcode = m::Opcode::send, .inlined = pattern(8, 1)};
  const auto refuse = [&](std::uint32_t step) {
    EXPECT_TRUE(live.drive_until([&] { return !live.port->on_the_way().empty(); }));
    live.feed(live.ack(live.ours(step), 0x21));
  };
  live.queue->post(send);
  refuse(0), refuse(0);
  EXPECT_TRUE(live.drive_until([&] { return !live.port->on_the_way().empty(); }));
  live.feed(live.ack(live.ours(0)));
  ASSERT_TRUE(live.queue->poll());
  live.queue->post(send);
  refuse(1), refuse(1);
  EXPECT_FALSE(live.queue->poll());
  refuse(1);
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::rnr_retry_exceeded);
  EXPECT_TRUE(live.failed());
}

TEST(RuleRnr, SevenRetriesAreForEver) {
  Live live;
  live.queue->post({.opcode = m::Opcode::send, .inlined = pattern(8, 1)});
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(live.drive_until([&] { return !live.port->on_the_way().empty(); }));
    live.feed(live.ack(live.ours(0), 0x21));
  }
  EXPECT_FALSE(live.failed());
}

TEST(RuleRetry, ASequenceNakCountsAndProgressRefillsTheCount) {
  LiveConfig config;
  config.retries = 1;
  Live live(config);
  for (std::uint32_t i = 0; i < 4; ++i) live.queue->write(small_write());
  live.queue->publish();
  live.drive();
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_FALSE(live.feed(live.ack(live.ours(i), 0x60)).empty()) << i;
  EXPECT_FALSE(live.failed()) << "each one brought something";
  config.retries = 0;
  Live strict(config);
  strict.queue->post(small_write());
  strict.feed(strict.ack(strict.ours(0), 0x60));
  const auto event = strict.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
}

TEST(RuleRetry, TheTimerGivesUpAfterItsRetries) {
  LiveConfig config;
  config.retries = 2;
  config.ack_timeout_ns = 5'000'000;
  Live live(config);
  const auto start = sys::now_ns();
  live.queue->post(small_write());
  const auto event = live.wait();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_GE(sys::now_ns() - start, 15'000'000);
  EXPECT_EQ(live.engine->counts().timeouts, 3u);
  const auto sent = live.sent();
  EXPECT_GE(sent.size(), 3u);
  for (const Pkt& p : sent) EXPECT_EQ(p.psn, live.ours(0));
}

// A receiver that had no receive for the first of two packets finds the second out of sequence, and may say so.
TEST(RuleRetry, ASequenceNakWhileWaitingForAReceiverIsNotCounted) {
  LiveConfig config;
  config.retries = 0;
  Live live(config);
  for (int i = 0; i < 2; ++i) live.queue->write({.opcode = m::Opcode::send, .inlined = pattern(8, 1)});
  live.queue->publish();
  live.drive();
  live.sent();
  live.inject(live.ack(live.ours(0), 0x20 | 12));
  live.inject(live.ack(live.ours(0), 0x60));
  live.drive();
  EXPECT_FALSE(live.failed());
  EXPECT_TRUE(live.drive_until([&] { return live.port->on_the_way().size() >= 2; }));
}

}  // namespace
}  // namespace strait::soft::nic::testing
