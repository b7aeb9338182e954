// SPDX-License-Identifier: Apache-2.0
// Faults of a client: with the same seed the same operations fail, and only what a program could see on hardware
// happens.
#include "soft/cassini/faults.hpp"

#include <gtest/gtest.h>

#include "soft/cassini/strict_testing.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini {
namespace {

using testing::Watched;

FaultPlan plan(std::string_view text) {
  auto parsed = FaultPlan::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : FaultPlan{};
}

ClientOptions with(std::string_view text, bool strict = false) {
  return {.strict = strict, .faults = plan(text)};
}

std::uint64_t injected(Watched& it) {
  return it.program.client.client->card().numbers.get("faults_injected").load();
}

// Until as many operations have ended, well or badly.
bool wait_for(Watched& it, std::uint64_t ended) {
  const sys::Deadline deadline = sys::Deadline::after_ns(60'000'000'000);
  while (it.program.counter().success + it.program.counter().failure < ended) {
    if (deadline.passed()) return false;
    it.fabric.drive();
  }
  return true;
}

TEST(CassiniFaults, WhatDoesNotFitIsRefusedByName) {
  for (const char* text : {"drop=2%,seed=7", "delay=1%:500us", "reorder=10%", "error=1%:2", "error=1%", "down=1s..2s",
                           "stall=1s..2s", "overrun=10", "seed=3", ""})
    EXPECT_TRUE(check_cassini_faults(plan(text))) << text;
  const struct {
    const char* text;
    const char* named;
  } rows[] = {{"dup=1%", "dup"},
              {"drop=1%,corrupt=1%", "corrupt"},
              {"rnr=1%", "rnr"},
              {"gone=5", "gone"},
              {"error=1%:0x1", "error with code 0x1"},
              {"error=1%:57", "error with code 0x39"},
              {"error=1%:200", "error with code 0xc8"}};
  for (const auto& row : rows) {
    const Status refused = check_cassini_faults(plan(row.text));
    ASSERT_FALSE(refused) << row.text;
    EXPECT_EQ(refused.error().code, Code::unsupported);
    EXPECT_NE(refused.error().text.find(std::string("faults: ") + row.named + " does not fit a Cassini"),
              std::string::npos)
        << refused.error().text;
  }
}

TEST(CassiniFaults, WhatIsLostIsSentAgain) {
  Watched it(with("drop=20%,seed=7"));
  it.open_target();
  std::memset(it.program.memory.data(), 0x3c, 64);
  it.ring_many(100, it.put());
  ASSERT_TRUE(wait_for(it, 100));
  EXPECT_EQ(it.program.counter().success, 100u) << "a loss is not seen, but for the time that it takes";
  EXPECT_EQ(it.program.memory.data()[sys::page_bytes()], std::byte{0x3c});
  // What the plan says of this queue's first 100 requests and their repetitions.
  std::uint64_t lost = 0;
  const FaultPlan same = plan("drop=20%,seed=7");
  for (std::uint64_t n = 0, done = 0; done < 100; ++n)
    ++(same.on_message(it.program.transmit.id, n) == Fault::drop ? lost : done);
  EXPECT_GT(lost, 5u);
  EXPECT_EQ(injected(it), lost);
}

TEST(CassiniFaults, WhatIsLostEveryTimeIsUndeliverable) {
  Watched it(with("drop=100%"));
  it.open_target();
  auto command = it.put();
  command.set_eq(it.program.eq);
  it.program.send(command);
  ASSERT_TRUE(wait_for(it, 1));
  EXPECT_EQ(it.program.counter().failure, 1u);
  EXPECT_EQ(injected(it), Faults::kMostTries);
  const auto& event = *reinterpret_cast<const wire::InitiatorShort*>(it.program.events.data() + 64);
  EXPECT_EQ(event.event_type(), wire::EventType::ack);
  EXPECT_EQ(event.return_code(), wire::ReturnCode::undeliverable);
}

TEST(CassiniFaults, ALinkThatIsDownLosesEverything) {
  Watched it(with("down=0s..1000s"));
  it.open_target();
  it.program.send(it.put());
  ASSERT_TRUE(wait_for(it, 1));
  EXPECT_EQ(it.program.counter().failure, 1u);
}

TEST(CassiniFaults, FailuresHaveTheCodeThatWasAskedFor) {
  Watched it(with("error=30%:36,seed=3"));
  it.open_target();
  it.ring_many(200, it.put());
  ASSERT_TRUE(wait_for(it, 100));
  it.drive();
  const FaultPlan same = plan("error=30%:36,seed=3");
  std::uint64_t failed = 0;
  for (std::uint64_t n = 0; n < 200; ++n) failed += same.on_work(it.program.transmit.id, n) ? 1 : 0;
  EXPECT_EQ(it.program.counter().failure, failed);
  EXPECT_EQ(it.program.counter().success, 200 - failed);
  EXPECT_EQ(injected(it), failed);
  const auto& event = *reinterpret_cast<const wire::InitiatorShort*>(it.program.events.data() + 64);
  EXPECT_EQ(event.return_code(), wire::ReturnCode::no_event) << "the command named no queue";
}

TEST(CassiniFaults, DelaysHoldTheQueueBack) {
  Watched it(with("delay=100%:20ms"));
  it.open_target();
  const std::int64_t before = sys::now_ns();
  it.ring_many(3, it.put());
  ASSERT_TRUE(wait_for(it, 3));
  EXPECT_GE(sys::now_ns() - before, 60'000'000);
  EXPECT_EQ(it.program.counter().success, 3u);
  EXPECT_EQ(injected(it), 3u);
}

// Puts of single bytes, each to its own place; in which order do they land?
std::vector<int> order_of(const char* faults, bool restricted, bool fences = false) {
  Watched it(with(faults));
  it.open_target(wire::kLeManageLocal);
  // The entry fills itself in the order of arrival.
  it.program.client.client->card().ptes.find(it.pte)->options |= wire::kPteEnRestrictedUnicastLm;
  constexpr int kPuts = 60;
  for (int i = 0; i < kPuts; ++i) {
    it.program.memory.data()[i] = static_cast<std::byte>(i);
    auto command = it.put(static_cast<std::uint64_t>(i), 1);
    if (restricted) command.set_flags(command.flags() | wire::kRestricted);
    it.program.transmit.emit(command);
    if (!fences) continue;
    wire::CqCmd fence{};
    fence.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::CqOp::fence);
    it.program.transmit.emit(fence);
  }
  it.program.transmit.announce();
  EXPECT_TRUE(wait_for(it, kPuts));
  EXPECT_EQ(it.program.counter().success, static_cast<std::uint64_t>(kPuts));
  std::vector<int> out;
  for (int i = 0; i < kPuts; ++i)
    out.push_back(static_cast<int>(it.program.memory.data()[sys::page_bytes() + static_cast<std::size_t>(i)]));
  return out;
}

TEST(CassiniFaults, OnlyWhatHasNoOrderIsOvertaken) {
  std::vector<int> in_order(60);
  for (int i = 0; i < 60; ++i) in_order[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(order_of("reorder=50%,seed=5", false), in_order);
  EXPECT_EQ(order_of("reorder=50%,seed=5", true, true), in_order) << "a fence holds";
  EXPECT_EQ(order_of("seed=5", true), in_order);
  std::vector<int> mixed = order_of("reorder=50%,seed=5", true);
  EXPECT_NE(mixed, in_order);
  std::sort(mixed.begin(), mixed.end());
  EXPECT_EQ(mixed, in_order) << "each once";
}

TEST(CassiniFaults, AStalledCardLooksAtNothing) {
  Watched it(with("stall=0s..1000s"));
  it.program.send(it.put());
  it.drive();
  EXPECT_EQ(it.program.counter().success + it.program.counter().failure, 0u);
  EXPECT_EQ(it.program.transmit.status().rd_ptr(), wire::kFirstBlock);
}

TEST(CassiniFaults, AnEventThatIsLostIsToldInTheStatusAndIsNoFinding) {
  Watched it(with("overrun=3", true));
  it.open_target();
  auto command = it.put();
  command.set_eq(it.program.eq);
  command.set_flags(wire::kEventSendDisable);
  it.ring_many(5, command);
  it.drive(60);
  EXPECT_EQ(it.program.client.client->card().tally.events.load(), 4u);
  EXPECT_EQ(it.program.client.client->card().tally.dropped_events.load(), 1u);
  wire::EqStatus status{};
  std::memcpy(&status, it.program.events.data(), sizeof status);
  EXPECT_TRUE(status.event_drop_seq_no());
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniFaults, LossesBreakNoRule) {
  Watched it(with("drop=10%,delay=5%:100us,seed=9", true));
  it.open_target();
  it.ring_many(500, it.put());
  ASSERT_TRUE(wait_for(it, 500));
  EXPECT_EQ(it.program.counter().success, 500u);
  EXPECT_EQ(it.rules(), "");
}

}  // namespace
}  // namespace strait::soft::cassini
