// SPDX-License-Identifier: Apache-2.0
// What a plan of faults says of a connection's n-th message is what the engine does to it: `strait faults` prints the
// one (tests/tool/faults_test.cpp), a program meets the other.
#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr const char* kPlan = "drop=30%,seed=7";

// As `strait faults --flow FROM:TO` names it.
std::uint64_t flow_of(std::uint32_t from, std::uint32_t to) {
  return std::uint64_t{from & 0xffff} << 16 | (to & 0xffff);
}

class FaultDecisions : public ::testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Over, FaultDecisions, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) {
                           return each.param == Over::one_copy           ? "one_copy"
                                  : each.param == Over::through_the_ring ? "through_the_ring"
                                                                         : "packets";
                         });

// One write of one message at a time, sent until it is there: whether it got there says what was done to it.
TEST_P(FaultDecisions, AreThePlansForEachMessage) {
  const FaultPlan plan = FaultPlan::parse(kPlan).value();
  PairConfig config(GetParam());
  config.faults = plan;
  config.only_a_has_faults = true;
  Pair pair(config);
  const std::uint64_t flow = flow_of(pair.qa->qpn, pair.qb->qpn);
  const auto messages = [&] { return EngineTestPeer::queue_pair(*pair.a, pair.qa->qpn).message_rolls; };
  std::vector<std::byte> to(64);
  const std::uint32_t key = pair.reg_b(to.data(), to.size());
  std::uint64_t lost = 0;
  for (unsigned i = 0; i < 60; ++i) {
    const auto payload = pattern(16, i);
    std::fill(to.begin(), to.end(), std::byte{0});
    const auto landed = [&] { return std::memcmp(to.data(), payload.data(), payload.size()) == 0; };
    std::uint64_t n = messages();
    pair.qa->post({.opcode = m::Opcode::rdma_write, .raddr = address_of(to.data()), .rkey = key, .inlined = payload});
    for (const auto deadline = sys::Deadline::after_ns(30'000'000'000); !landed();) {
      while (messages() == n && !deadline.passed()) pair.a->drive(0);
      ASSERT_FALSE(deadline.passed());
      // More than one only if this thread was stopped for longer than the resend timer.
      bool leaves = false;
      for (; n != messages(); ++n) {
        const bool dropped = plan.on_message(flow, n) == Fault::drop;
        leaves |= !dropped;
        lost += dropped ? 1 : 0;
      }
      for (int pass = 0; pass < 4; ++pass) pair.b->drive(0);
      ASSERT_EQ(landed(), leaves) << "message " << n - 1;
    }
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->syndrome, m::Syndrome::none);
  }
  EXPECT_GT(lost, 5u);
  EXPECT_GE(pair.a->counts().faults_injected, lost);
}

// And which numbers are missing on the wire.
TEST(FaultDecisionsOfPackets, NameTheNumbersThatNeverLeave) {
  const FaultPlan plan = FaultPlan::parse(kPlan).value();
  LiveConfig config;
  config.engine.faults = plan;
  Live live(config);
  constexpr std::uint32_t kWrites = 32, kPackets = 2 * kWrites;  // all of them leave in one pass
  std::vector<std::byte> from(2 * kPmtu);
  const std::uint32_t key = live.reg(from.data(), from.size());
  for (std::uint32_t i = 0; i < kWrites; ++i)
    live.queue->write({.opcode = m::Opcode::rdma_write,
                       .raddr = 0x1000,
                       .rkey = 1,
                       .data = {{address_of(from.data()), 2 * kPmtu, key}}});
  live.queue->publish();
  live.engine->drive(live.queue->qpn);
  ASSERT_GE(live.counts().packets_sent, kPackets);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t n = 0; n < kPackets; ++n) {
    if (plan.on_message(flow_of(live.queue->qpn, config.remote_qpn), n) == Fault::none)
      expected.push_back(live.ours(n));
  }
  ASSERT_LT(expected.size(), kPackets - 5);
  std::vector<std::uint32_t> left;
  for (const Pkt& packet : live.sent()) left.push_back(packet.psn);
  left.resize(std::min(left.size(), expected.size()));  // behind them: what was sent again by now
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace strait::soft::nic::testing
