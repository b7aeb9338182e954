// SPDX-License-Identifier: Apache-2.0
// The rules of RoCEv2, one by one: the requester and congestion (docs/wire-roce.md).
#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

class RuleRequester : public ::testing::Test {
 protected:
  explicit RuleRequester(const LiveConfig& config = {}) : live(config) {}
  [[nodiscard]] Wqe large(m::Opcode opcode, std::uint32_t n) const {
    return {.opcode = opcode, .raddr = 0x10000, .rkey = 0x77, .data = {{address_of(memory.data()), n, key}}, .imm = 9};
  }
  [[nodiscard]] Wqe small() const {
    return {.opcode = m::Opcode::rdma_write, .raddr = 0x1000, .rkey = 0x77, .inlined = pattern(8, 1)};
  }
  Live live;
  std::vector<std::byte> memory = pattern(1 << 20, 3);
  std::uint32_t key = live.reg(memory.data(), memory.size());
};

TEST_F(RuleRequester, AWriteGoesOutAsFirstMiddleLast) {
  live.queue->post(large(m::Opcode::rdma_write, 3 * kPmtu + 1));
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].opcode, write_first);
  EXPECT_EQ(sent[0].va, 0x10000u);
  EXPECT_EQ(sent[0].rkey, 0x77u);
  EXPECT_EQ(sent[0].length, 3 * kPmtu + 1);
  EXPECT_EQ(sent[1].opcode, write_middle);
  EXPECT_EQ(sent[2].opcode, write_middle);
  EXPECT_EQ(sent[3].opcode, write_last);
  EXPECT_EQ(sent[3].pad, 3);
  EXPECT_TRUE(sent[3].ack_req) << "the last packet asks";
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sent[i].psn, live.ours(i));
    EXPECT_TRUE(std::equal(sent[i].payload.begin(), sent[i].payload.end(), memory.begin() + i * kPmtu));
  }
}

// After a loss in the middle the message goes on in the middle, at its old place.
class RuleRestart : public RuleRequester, public ::testing::WithParamInterface<m::Opcode> {};
INSTANTIATE_TEST_SUITE_P(Of, RuleRestart,
                         ::testing::Values(m::Opcode::rdma_write, m::Opcode::rdma_write_imm, m::Opcode::send,
                                           m::Opcode::send_imm),
                         [](const auto& each) { return fmt::format("x{:02x}", static_cast<int>(each.param)); });

TEST_P(RuleRestart, MidMessageGoesOnWithMiddleAndLast) {
  live.queue->write(large(GetParam(), 5 * kPmtu));
  live.queue->write(small());
  live.queue->publish();
  live.drive();
  const auto before = live.sent();
  ASSERT_EQ(before.size(), 6u);
  const auto again = live.feed(live.ack(live.ours(2), 0x60));
  ASSERT_EQ(again.size(), 4u) << "and what was behind it";
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].opcode, before[i + 2].opcode);
    EXPECT_EQ(again[i].psn, before[i + 2].psn);
    EXPECT_EQ(again[i].payload, before[i + 2].payload);
    EXPECT_EQ(again[i].imm, before[i + 2].imm);
  }
  EXPECT_FALSE(live.queue->poll());
  live.feed(live.ack(live.ours(5)));
  EXPECT_TRUE(live.queue->poll());
  EXPECT_TRUE(live.queue->poll());
  EXPECT_TRUE(live.qp().idle());
}

TEST_F(RuleRequester, TheTimerGoesBackToTheOldestUnacknowledged) {
  live.queue->post(large(m::Opcode::rdma_write, 4 * kPmtu));
  ASSERT_EQ(live.sent().size(), 4u);
  live.feed(live.ack(live.ours(1)));
  EXPECT_FALSE(live.queue->poll()) << "half a message";
  EXPECT_TRUE(live.drive_until([&] { return live.port->on_the_way().size() >= 2; }));
  const auto again = live.sent();
  EXPECT_EQ(again[0].psn, live.ours(2));
  EXPECT_EQ(again[0].opcode, write_middle);
  EXPECT_EQ(again[1].opcode, write_last);
}

TEST_F(RuleRequester, OneRetryAtATime) {
  for (int i = 0; i < 3; ++i) live.queue->write(small());
  live.queue->publish();
  live.drive();
  live.sent();
  EXPECT_EQ(live.feed(live.ack(live.ours(0), 0x60)).size(), 3u);
  EXPECT_TRUE(live.feed(live.ack(live.ours(0), 0x60)).empty()) << "the same loss";
  EXPECT_EQ(live.state().retries_used, 1u);
  EXPECT_EQ(live.feed(live.ack(live.ours(1), 0x60)).size(), 2u) << "a new one, after progress";
}

// Each later write is acknowledged on its own; all these acknowledgements tell of the same lost response.
TEST_F(RuleRequester, OneLostResponseIsCountedOnce) {
  live.queue->write(large(m::Opcode::rdma_read, 8));
  for (int i = 0; i < 20; ++i) live.queue->write(small());
  live.queue->publish();
  live.drive();
  live.sent();
  for (std::uint32_t i = 1; i <= 20; ++i) live.inject(live.ack(live.ours(i)));
  live.drive();
  EXPECT_FALSE(live.failed());
  EXPECT_EQ(live.state().retries_used, 1u);
  live.feed({.opcode = read_only, .psn = live.ours(0), .payload = pattern(8, 1)});
  live.feed(live.ack(live.ours(20)));
  for (int i = 0; i < 21; ++i) EXPECT_TRUE(live.queue->poll());
}

TEST_F(RuleRequester, NoMoreReadsUnderWayThanAgreed) {
  LiveConfig config;
  config.max_reads_out = 2;
  Live few(config);
  const std::uint32_t few_key = few.reg(memory.data(), memory.size());
  const Wqe read{
      .opcode = m::Opcode::rdma_read, .raddr = 0, .rkey = 1, .data = {{address_of(memory.data()), 8, few_key}}};
  for (int i = 0; i < 3; ++i) few.queue->write(read);
  few.queue->write(small());
  few.queue->publish();
  few.drive();
  ASSERT_EQ(few.sent().size(), 2u) << "the third read waits, and what is behind it too";
  const auto next = few.feed({.opcode = read_only, .psn = few.ours(0), .payload = pattern(8, 1)});
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].opcode, read_request);
  EXPECT_EQ(next[0].psn, few.ours(2));
  EXPECT_EQ(next[1].opcode, write_only);
}

TEST_F(RuleRequester, AFenceWaitsForReadsAndAtomicsOnly) {
  Wqe fenced = small();
  fenced.flags = m::kCompletionAlways | m::kFenceAndInitiatorSmall;
  live.queue->write(small());
  live.queue->write(fenced);
  live.queue->publish();
  live.drive();
  EXPECT_EQ(live.sent().size(), 2u) << "a write is nothing to wait for";
  live.queue->write(large(m::Opcode::rdma_read, 2 * kPmtu));
  live.queue->write(fenced);
  live.queue->publish();
  live.drive();
  EXPECT_EQ(live.sent().size(), 1u);
  EXPECT_TRUE(live.feed({.opcode = read_first, .psn = live.ours(2), .payload = pattern(kPmtu, 1)}).empty());
  const auto after = live.feed({.opcode = read_last, .psn = live.ours(3), .payload = pattern(kPmtu, 1)});
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].opcode, write_only);
  EXPECT_EQ(after[0].psn, live.ours(4));
}

TEST_F(RuleRequester, CompletionsComeInOrderWhateverIsAnsweredFirst) {
  std::vector<std::uint64_t> indices;
  indices.push_back(live.queue->write(large(m::Opcode::rdma_read, 8)));
  indices.push_back(live.queue->write(small()));
  indices.push_back(live.queue->write({.opcode = m::Opcode::nop}));
  indices.push_back(live.queue->write(large(m::Opcode::rdma_read, 8)));
  live.queue->publish();
  live.drive();
  live.sent();
  live.feed({.opcode = read_only, .psn = live.ours(2), .payload = pattern(8, 2)});  // of the second read: too early
  EXPECT_FALSE(live.queue->poll());
  live.feed({.opcode = read_only, .psn = live.ours(0), .payload = pattern(8, 1)});
  live.feed({.opcode = read_only, .psn = live.ours(2), .payload = pattern(8, 2)});
  for (const auto index : indices) {
    const auto event = live.queue->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, index & 0xffff);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
}

TEST_F(RuleRequester, AnErrorCompletesOnceAndFlushesTheRest) {
  Wqe quiet = small();
  quiet.flags = 0;
  live.queue->post_receive({});
  live.queue->write(quiet);
  const auto wrong = live.queue->write(quiet);
  const auto read = live.queue->write(large(m::Opcode::rdma_read, 8));
  live.queue->publish();
  live.drive();
  live.feed(live.ack(live.ours(1), 0x62));
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->counter, wrong & 0xffff);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
  event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->counter, read & 0xffff);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_error);
  EXPECT_FALSE(live.queue->poll());
  EXPECT_EQ(live.qp().answers_awaited, 0u);
}

TEST_F(RuleRequester, AResponseOfTheWrongSizeFailsTheRead) {
  live.queue->post(large(m::Opcode::rdma_read, 100));
  live.sent();
  live.feed({.opcode = read_only, .psn = live.ours(0), .payload = pattern(101, 1)});
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::bad_response);
}

TEST_F(RuleRequester, AnAnswerOfAnotherKindIsIgnored) {
  live.queue->post(large(m::Opcode::rdma_read, 8));
  live.sent();
  live.feed({.opcode = atomic_ack, .psn = live.ours(0), .original = 7});
  EXPECT_FALSE(live.queue->poll());
  live.feed({.opcode = read_only, .psn = live.ours(0), .payload = pattern(8, 1)});
  EXPECT_TRUE(live.queue->poll());
}

TEST_F(RuleRequester, SolicitedIsSetOnTheLastPacketOfWhatHasAnEvent) {
  Wqe send = large(m::Opcode::send, 2 * kPmtu);
  send.flags |= m::kSolicited;
  live.queue->write(send);
  Wqe write = small();
  write.flags |= m::kSolicited;
  live.queue->write(write);
  live.queue->publish();
  live.drive();
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_FALSE(sent[0].solicited);
  EXPECT_TRUE(sent[1].solicited);
  EXPECT_FALSE(sent[2].solicited) << "a plain write wakes nobody";
}

TEST_F(RuleRequester, ALongMessageAsksForAcknowledgementOnItsWay) {
  live.queue->post(large(m::Opcode::rdma_write, 1 << 20));
  std::uint32_t packets = 0;
  std::uint32_t last_ask = 0;
  const bool done = live.drive_until([&] {
    for (const Pkt& p : live.sent()) {
      if (p.psn != live.ours(packets)) continue;  // sent again by the timer
      ++packets;
      if (!p.ack_req) continue;
      EXPECT_LE(packets - last_ask, 1024u);
      last_ask = packets;
      live.inject(live.ack(p.psn));
    }
    return live.queue->poll().has_value();
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(packets, (1u << 20) / kPmtu);
}

// ---- congestion

TEST_F(RuleRequester, ACongestionNotificationSlowsTheSenderDown) {
  live.queue->post(large(m::Opcode::rdma_write, 1 << 20));
  const std::uint32_t before = live.state().window;
  live.feed({.opcode = cnp, .psn = 0, .ack_req = false});
  EXPECT_EQ(live.counts().cnp_received, 1u);
  EXPECT_EQ(live.state().window, before / 2);
  for (int i = 0; i < 20; ++i) live.feed({.opcode = cnp, .psn = 0, .ack_req = false});
  EXPECT_EQ(live.state().window, 4u) << "but never to a standstill";
  // Nothing new leaves until less is under way than the window allows; then it opens again, packet by packet.
  const std::uint32_t next = live.state().sent_end;
  live.sent();
  live.feed(live.ack(next - 1));
  EXPECT_EQ(live.state().window, 5u);
  EXPECT_EQ(r::psn_diff(live.state().sent_end, next), 5);
  live.feed(live.ack(r::psn_add(live.state().sent_end, 0xffffff)));
  EXPECT_EQ(live.state().window, 6u);
}

TEST_F(RuleRequester, ACongestedArrivalIsAnsweredByANotificationNowAndThen) {
  const Pkt write{.opcode = write_only, .psn = live.at(0)};
  auto answers = live.feed(write, true);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].opcode, cnp);
  EXPECT_EQ(answers[0].psn, 0u);
  EXPECT_EQ(answers[0].qpn, live.config().remote_qpn);
  EXPECT_EQ(answers[1].opcode, ack_op);
  // Many marks in a short time are one congestion: at most one notification in 50 us.
  const auto start = sys::now_ns();
  for (std::uint32_t i = 1; i < 50; ++i) {
    Pkt next = write;
    next.psn = live.at(i);
    live.inject(next, true);
  }
  live.drive();
  const auto periods = static_cast<std::uint64_t>((sys::now_ns() - start) / 50'000);
  EXPECT_LE(live.counts().cnp_sent, 2 + periods);
}

}  // namespace
}  // namespace strait::soft::nic::testing
