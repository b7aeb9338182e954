// SPDX-License-Identifier: Apache-2.0
// Faults that come to a whole device: a port that is down, an engine that stalls, work requests that fail for no
// reason. Over every carrier. The clocks of these tests say what cannot have happened yet, and nothing about speed.
#include <tuple>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::int64_t kAWhileNs = 100'000'000;
constexpr const char* kDownAWhile = "down=0ms..100ms";
constexpr const char* kDownForGood = "down=0s..1000s";
constexpr const char* kStalledAWhile = "stall=0ms..100ms";
constexpr const char* kStalledForGood = "stall=0s..1000s";
constexpr std::int64_t kPatienceNs = 5'000'000;  // of each try, of eight

const char* outage_over(Over over) {
  return over == Over::one_copy ? "one_copy" : over == Over::through_the_ring ? "through_the_ring" : "packets";
}

// Both know memory of the other; only a has the faults.
struct Outages {
  Outages(Over over, const char* plan, std::int64_t answer_ns = 0)
      : began_ns(sys::now_ns()), pair(config_of(over, plan), 64, answer_ns) {
    keys[0] = pair.reg_a(memory[0].data(), memory[0].size());
    keys[1] = pair.reg_b(memory[1].data(), memory[1].size());
  }
  static PairConfig config_of(Over over, const char* plan) {
    PairConfig config(over);
    config.faults = FaultPlan::parse(plan).value();
    config.only_a_has_faults = true;
    return config;
  }
  // From one side's memory into the other's.
  void write(int from) {
    (from == 0 ? pair.qa : pair.qb)
        ->post({.opcode = m::Opcode::rdma_write,
                .raddr = address_of(memory[1 - from].data()),
                .rkey = keys[1 - from],
                .data = {{address_of(memory[from].data()), kBytes, keys[from]}}});
  }
  std::optional<Event> outcome(int of) { return pair.wait(of == 0 ? *pair.qa : *pair.qb); }
  [[nodiscard]] bool both_as_they_were() const {
    return memory[0] == pattern(kBytes, 1) && memory[1] == pattern(kBytes, 2);
  }

  static constexpr std::uint32_t kBytes = 20'000;
  std::int64_t began_ns;
  std::vector<std::byte> memory[2] = {pattern(kBytes, 1), pattern(kBytes, 2)};
  std::uint32_t keys[2] = {};
  Pair pair;
};

class Outage : public ::testing::TestWithParam<std::tuple<Over, int>> {
 protected:
  static Over over() { return std::get<0>(GetParam()); }
  static int who() { return std::get<1>(GetParam()); }  // asks: 0 is the one with the faults
};
INSTANTIATE_TEST_SUITE_P(Over, Outage,
                         ::testing::Combine(::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                                            ::testing::Values(0, 1)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", outage_over(std::get<0>(each.param)),
                                              std::get<1>(each.param) == 0 ? "asking" : "asked");
                         });

TEST_P(Outage, APortThatComesUpAgainHeals) {
  Outages it(over(), kDownAWhile);
  it.write(who());
  auto event = it.outcome(who());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_GE(sys::now_ns() - it.began_ns, kAWhileNs) << "an answer while the port was down";
  EXPECT_EQ(it.memory[0], it.memory[1]);
}

TEST_P(Outage, APortThatStaysDownEndsInATimeoutAndNothingPasses) {
  Outages it(over(), kDownForGood, kPatienceNs);
  it.write(who());
  const auto event = it.outcome(who());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_TRUE(it.both_as_they_were());
  EXPECT_FALSE(who() == 0 ? it.pair.qb->poll() : it.pair.qa->poll()) << "the other side has heard of nothing";
}

TEST_P(Outage, AnEngineThatRunsAgainHeals) {
  Outages it(over(), kStalledAWhile);
  it.write(who());
  const auto event = it.outcome(who());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_GE(sys::now_ns() - it.began_ns, kAWhileNs) << "done by an engine that did not run";
  EXPECT_EQ(it.memory[0], it.memory[1]);
}

class OutageOver : public ::testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Over, OutageOver, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) { return std::string(outage_over(each.param)); });

TEST_P(OutageOver, AnEngineThatStaysStalledIsGivenUp) {
  Outages it(GetParam(), kStalledForGood, kPatienceNs);
  it.write(1);
  it.write(0);
  const auto event = it.outcome(1);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  it.pair.drive(200);
  EXPECT_FALSE(it.pair.qa->poll()) << "it cannot even give up";
  EXPECT_TRUE(it.both_as_they_were());
}

// Nothing is wrong with the work request, nothing of it reaches the other side, and what is behind it is flushed.
TEST_P(OutageOver, AWorkRequestFailsWithTheSyndromeThatWasAskedFor) {
  for (const auto& [plan, syndrome] : {std::pair{"error=100%", m::Syndrome::remote_operation},
                                       std::pair{"error=100%:0x13", m::Syndrome::remote_access},
                                       std::pair{"error=100%:0x15", m::Syndrome::transport_retry_exceeded},
                                       std::pair{"error=100%:0x04", m::Syndrome::local_protection}}) {
    Outages it(GetParam(), plan);
    it.pair.qa->post({.opcode = m::Opcode::nop});
    it.write(0);
    auto event = it.outcome(0);
    ASSERT_TRUE(event) << plan;
    EXPECT_EQ(event->opcode, m::CqeOpcode::requester_error) << plan;
    EXPECT_EQ(event->syndrome, syndrome) << plan;
    ASSERT_TRUE(event = it.outcome(0)) << plan;
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed) << plan;
    it.pair.drive(20);
    EXPECT_FALSE(it.pair.qb->poll()) << plan;
    EXPECT_TRUE(it.both_as_they_were()) << plan;
    EXPECT_EQ(it.pair.a->counts().faults_injected, 1u) << plan;
    EXPECT_EQ(it.pair.b->counts().error_completions, 0u) << plan;
  }
}

// One in ten: each that fails takes its queue pair along, and everything before it was done.
TEST_P(OutageOver, WhatComesBeforeAFailureIsDone) {
  Outages it(GetParam(), "error=10%:0x14,seed=5");
  const Event none{};
  Event last = none;
  int done = 0;
  for (int i = 0; i < 200 && last.syndrome == m::Syndrome::none; ++i) {
    it.write(0);
    const auto event = it.outcome(0);
    ASSERT_TRUE(event);
    last = *event;
    done += last.syndrome == m::Syndrome::none ? 1 : 0;
  }
  EXPECT_EQ(last.syndrome, m::Syndrome::remote_operation) << "none of 200";
  EXPECT_GT(done, 0) << "the seed says that the first is not the one";
  EXPECT_EQ(it.memory[0], it.memory[1]);
}

}  // namespace
}  // namespace strait::soft::nic::testing
