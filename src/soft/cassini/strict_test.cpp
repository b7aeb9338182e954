// SPDX-License-Identifier: Apache-2.0
// Strict, queues: each rule is broken once by a program that looks right without it, and kept by one that does the same
// in the right way.
#include "soft/cassini/strict.hpp"

#include <gtest/gtest.h>

#include "soft/cassini/engine_testing.hpp"
#include "soft/cassini/strict_testing.hpp"

namespace strait::soft::cassini {
namespace {

using testing::Watched;

TEST(CassiniStrict, AProgramThatWaitsForRoomAndForCompletionsIsClean) {
  Watched it;
  it.open_target();
  auto& transmit = it.program.transmit;
  // Several turns of the ring, which is filled to its last block each time.
  for (int turn = 0; turn < 5; ++turn) {
    const std::uint64_t before = it.program.counter().success;
    const int most = static_cast<int>(transmit.blocks - wire::kFirstBlock - 1);
    std::memset(it.program.memory.data(), turn, 64);
    it.ring_many(most, it.put());
    it.drive();
    ASSERT_EQ(it.program.counter().success, before + static_cast<std::uint64_t>(most));
    EXPECT_EQ(it.program.memory.data()[sys::page_bytes()], static_cast<std::byte>(turn));
  }
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrict, CommandsComeLateAndInOrder) {
  Watched it;
  it.open_target();
  // The first pass after the ring does nothing at least once in ten: 16 lengths of waiting are equally likely.
  int late = 0;
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t before = it.program.counter().success;
    it.program.send(it.put());
    it.fabric.drive();
    if (it.program.counter().success == before) ++late;
    it.drive(16);
    ASSERT_EQ(it.program.counter().success, before + 1);
  }
  EXPECT_GT(late, 5);
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrict, AWritePointerThatPassesTheCard) {
  Watched it;
  it.open_target();
  it.ring_many(200, it.put());
  it.fabric.drive();  // at most 64 of them
  it.program.transmit.announce(it.program.transmit.at - 3);
  it.fabric.drive();
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::queue_overrun);
  EXPECT_EQ(found[0].thing, Thing::transmit_queue);
  EXPECT_EQ(found[0].number, it.program.transmit.id);
  EXPECT_NE(found[0].what.find("from 204 to 201"), std::string::npos) << found[0].what;
  EXPECT_EQ(it.program.client.client->card().numbers.get("strict_findings").load(), 1u);
}

TEST(CassiniStrict, AFindingIsToldOnce) {
  Watched it;
  for (int i = 0; i < 3; ++i) {
    it.ring_many(200, it.put());
    it.fabric.drive();
    it.program.transmit.announce(it.program.transmit.at - 3);
    it.fabric.drive();
    it.program.transmit.announce();
    it.drive();
  }
  EXPECT_EQ(it.rules(), "queue-overrun");
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrict, AWritePointerOutsideTheRing) {
  for (const std::uint64_t pointer : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1024}, std::uint64_t{0xffff}}) {
    Watched it;
    it.program.transmit.announce(pointer);
    it.fabric.drive();
    const auto found = it.findings();
    ASSERT_EQ(found.size(), 1u) << pointer;
    EXPECT_EQ(found[0].rule, Rule::pointer_outside);
    EXPECT_NE(found[0].what.find(fmt::format("it is {};", pointer)), std::string::npos) << found[0].what;
  }
}

TEST(CassiniStrict, ACommandThatChangesUnderTheCard) {
  Watched it;
  it.open_target();
  it.ring_many(200, it.put());
  it.fabric.drive();
  // Built in place, one block too far behind: still a good command, but not the one that was rung.
  const std::uint32_t block = it.program.transmit.at - 1;
  auto other = it.put(0, 32);
  std::memcpy(it.program.transmit.ring.data() + std::uint64_t{block} * wire::kBlockBytes, &other, sizeof other);
  it.drive();
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::command_changed);
  EXPECT_EQ(found[0].block, block);
}

TEST(CassiniStrict, BlocksThatTheCardIsPastMayChange) {
  Watched it;
  it.open_target();
  const std::uint32_t block = it.program.transmit.at;
  it.ring_many(200, it.put());
  it.drive();
  std::memset(it.program.transmit.ring.data() + std::uint64_t{block} * wire::kBlockBytes, 0xee, wire::kBlockBytes);
  it.ring_many(1, it.put());
  it.drive();
  EXPECT_EQ(it.rules(), "");
}

TEST(CassiniStrict, ACommandThatTheCardRefuses) {
  Watched it;
  auto command = it.put();
  command.set_eq(77);  // nobody's
  it.program.send(command);
  it.drive();
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::command_refused);
  EXPECT_EQ(found[0].block, wire::kFirstBlock);
  EXPECT_NE(found[0].what.find("return code 51"), std::string::npos) << found[0].what;
}

TEST(CassiniStrict, ASourceThatChangesBeforeTheCardHasReadIt) {
  Watched it;
  it.open_target();
  it.ring_many(200, it.put());
  it.fabric.drive();
  it.program.memory.data()[63] = std::byte{1};
  it.drive();
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::source_changed);
  EXPECT_NE(found[0].what.find("64 bytes from IOVA"), std::string::npos) << found[0].what;
}

TEST(CassiniStrict, SmallCommandsHaveSourcesToo) {
  Watched it;
  it.open_target();
  wire::NomatchDmaCmd command{};
  command.set_header(wire::CmdType::dma, wire::CmdSize::b32, wire::DmaOp::nomatch_put);
  command.set_lac(it.program.md.lac);
  command.set_local_addr(it.program.md.iova + 256);
  command.set_request_len(5);
  command.set_dfa(wire::unicast_dfa(it.program.nid, wire::endpoint_of(5, wire::kMaxPidBits, 0)));
  const auto ring = [&] {
    for (int i = 0; i < 100; ++i) {
      std::byte two[64];
      std::memcpy(two, &command, 32);
      std::memcpy(two + 32, &command, 32);
      it.program.transmit.block(two, sizeof two);
    }
    it.program.transmit.announce();
  };
  ring();
  it.drive();
  EXPECT_EQ(it.rules(), "");
  ring();
  it.fabric.drive();
  it.program.memory.data()[256 + 5] = std::byte{1};  // behind the source
  it.drive();
  EXPECT_EQ(it.rules(), "");
  ring();
  it.fabric.drive();
  it.program.memory.data()[256 + 4] = std::byte{1};
  it.drive();
  EXPECT_EQ(it.rules(), "source-changed");
}

// An event for every put, and a consumer that takes them, or not.
std::string with_events(bool takes, std::uint64_t ahead) {
  Watched it;
  it.open_target();
  auto command = it.put();
  command.set_eq(it.program.eq);
  command.set_flags(wire::kEventSendDisable);
  const auto page = reinterpret_cast<std::uint64_t*>(it.program.event_state.data());
  for (int round = 0; round < 20; ++round) {
    it.ring_many(60, command);
    it.drive(40);
    if (!takes) continue;
    const Eq& eq = *it.program.client.client->card().event_queues.find(it.program.eq);
    const std::uint64_t slot = eq.write_byte / 64 + ahead;
    __atomic_store_n(page, slot >= eq.slots ? slot - eq.slots + 1 : slot, __ATOMIC_RELEASE);
  }
  return it.rules();
}

TEST(CassiniStrict, EventsThatFindNoRoom) {
  EXPECT_EQ(with_events(true, 0), "");
  EXPECT_EQ(with_events(false, 0), "event-queue-overrun");
}

TEST(CassiniStrict, EventsThatAreAcknowledgedBeforeTheyAreThere) {
  EXPECT_TRUE(with_events(true, 1).starts_with("event-pointer"));
}

TEST(CassiniStrict, AnEventPointerOutsideTheQueue) {
  Watched it;
  it.open_target();
  auto command = it.put();
  command.set_eq(it.program.eq);
  command.set_flags(wire::kEventSendDisable);
  *reinterpret_cast<std::uint64_t*>(it.program.event_state.data()) = 64;
  it.program.send(command);
  it.drive();
  const auto found = it.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::event_pointer);
  EXPECT_EQ(found[0].number, it.program.eq);
}

// Memory that only calls reach, so that it can go.
TEST(CassiniStrict, MemoryThatIsGoneUnderACounterAndUnderEvents) {
  bench::Rig rig;
  Counters numbers;
  Strict strict(1, numbers.get("strict_findings"));
  rig.lni->strict = &strict;
  bench::Bytes memory(4096);
  auto counted = rig.counter();
  counted->ct->write_back = {.memory = &memory, .address = 8};
  auto told = rig.events();
  told->eq->buffer = {.memory = &memory, .address = 64};
  wire::TimestampEvent event{};
  event.set_event_size(wire::EventSize::b16);
  event.set_event_type(wire::EventType::timestamp);
  store_counter(*counted->ct);
  EXPECT_TRUE(rig.card->post(*told->eq, &event, sizeof event));
  EXPECT_EQ(strict.causes(), 0u);
  memory.gone = true;
  store_counter(*counted->ct);
  EXPECT_TRUE(rig.card->post(*told->eq, &event, sizeof event));
  const auto found = strict.take();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rule, Rule::memory_gone);
  EXPECT_EQ(found[0].thing, Thing::counter);
  EXPECT_EQ(found[1].thing, Thing::event_queue);
  EXPECT_EQ(strict.causes(Rule::memory_gone), 2u);
}

TEST(CassiniStrict, WhatNobodyTakesIsNotKeptForEver) {
  Counters numbers;
  Strict strict(1, numbers.get("strict_findings"));
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_TRUE(strict.found(Rule::memory_gone, Thing::counter, i, "x"));
  EXPECT_FALSE(strict.found(Rule::memory_gone, Thing::counter, 7, "x"));
  EXPECT_EQ(strict.take(10).size(), 10u);
  EXPECT_EQ(strict.take(1000).size(), Strict::kMostKept - 10);
  EXPECT_EQ(strict.causes(), 1000u);
}

}  // namespace
}  // namespace strait::soft::cassini
