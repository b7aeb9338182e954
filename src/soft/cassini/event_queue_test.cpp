// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::Rig;
using wire::EventType;

template <std::size_t Words>
wire::EventWords<Words> numbered(std::uint64_t number) {
  wire::EventWords<Words> event{};
  event.words[0] = number;
  event.set_event_size(Words == 2 ? wire::EventSize::b16 : Words == 4 ? wire::EventSize::b32 : wire::EventSize::b64);
  event.set_event_type(EventType::send);
  event.set_return_code(wire::ReturnCode::ok);
  return event;
}

template <std::size_t Words>
bool post_numbered(Rig& client, bench::Queue& queue, std::uint64_t number) {
  const auto event = numbered<Words>(number);
  return client.card->post(*queue.eq, &event, sizeof event);
}

TEST(CassiniEventQueue, EventsOfThreeSizesNeverCrossABlock) {
  for (const bool shared : {true, false}) {
    Rig client;
    auto queue = client.events();
    if (!shared) queue->eq->buffer.direct = nullptr;
    EXPECT_TRUE(post_numbered<2>(client, *queue, 1));  // 64
    EXPECT_TRUE(post_numbered<8>(client, *queue, 2));  // fillers of 16 and 32, then 128
    EXPECT_TRUE(post_numbered<4>(client, *queue, 3));  // 192, and a filler
    EXPECT_TRUE(post_numbered<2>(client, *queue, 4));  // 256
    EXPECT_TRUE(post_numbered<2>(client, *queue, 5));  // 272
    EXPECT_TRUE(post_numbered<4>(client, *queue, 6));  // 288
    EXPECT_EQ(queue->eq->write_byte, 320u);
    for (std::uint64_t i = 1; i <= 6; ++i) {
      const wire::EventHead* const event = queue->next();
      ASSERT_NE(event, nullptr);
      EXPECT_EQ(event->words[0], i);
    }
    EXPECT_EQ(queue->next(), nullptr);
    EXPECT_EQ(queue->bytes->value<wire::EventHead>(80).event_type(), EventType::null_event);
    EXPECT_EQ(queue->bytes->value<wire::EventHead>(80).event_size(), wire::EventSize::b16);
    EXPECT_EQ(queue->bytes->value<wire::EventHead>(96).event_size(), wire::EventSize::b32);
  }
}

// Consumers read a short event of the target's as if it were a long one, whose return code is the block's last byte.
TEST(CassiniEventQueue, AHalfBlockIsClosedBeforeItsEventIsSeen) {
  Rig client;
  auto queue = client.events();
  EXPECT_TRUE(post_numbered<4>(client, *queue, 1));
  EXPECT_EQ(queue->bytes->value<wire::EventWords<8>>(64).return_code(), wire::ReturnCode::ok);
  EXPECT_EQ(queue->bytes->value<wire::EventHead>(96).event_type(), EventType::null_event);
  EXPECT_EQ(queue->eq->write_byte, 128u);
}

TEST(CassiniEventQueue, WithoutCombiningEachEventHasABlock) {
  Rig client;
  auto queue = client.events();
  queue->eq->flags = wire::kEqCombiningDisable;
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(post_numbered<2>(client, *queue, i));
  EXPECT_EQ(queue->bytes->value<std::uint64_t>(128), 1u);
  EXPECT_EQ(queue->bytes->value<std::uint64_t>(192), 2u);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(queue->next()->words[0], i);
}

TEST(CassiniEventQueue, TwoBlocksAreNeverUsedAndDropsAreToldOnce) {
  Rig client;
  auto queue = client.events(64);
  Wait status;
  int raised = 0;
  status.raise = [&] { ++raised; };
  queue->eq->status_wait = &status;
  for (std::uint64_t i = 0; i < 62; ++i) ASSERT_TRUE(post_numbered<8>(client, *queue, i)) << i;
  EXPECT_FALSE(client.card->has_room(*queue->eq, 1));
  EXPECT_FALSE(post_numbered<8>(client, *queue, 62));
  EXPECT_FALSE(post_numbered<2>(client, *queue, 63));
  const auto& told = queue->bytes->value<wire::EqStatus>(0);
  EXPECT_TRUE(told.unackd_dropped_event());
  EXPECT_EQ(told.event_slots_free(), 0u);
  EXPECT_EQ(told.timestamp_ns(), told.timestamp_ns_copy());
  EXPECT_EQ(told.timestamp_sec(), told.timestamp_sec_copy());
  EXPECT_NE(told.timestamp_sec(), 0u);
  EXPECT_EQ(raised, 1);

  // Read all, say that the drops are known: the next drop is told again.
  while (queue->next() != nullptr) {
  }
  wire::EqSwState state{};
  state.set_rd_ptr(queue->at / 64);
  state.set_event_drop_seq_no(told.event_drop_seq_no());
  queue->page[0] = state.word;
  std::memset(queue->bytes->at(64), 0, 63 * 64);
  for (std::uint64_t i = 0; i < 62; ++i) ASSERT_TRUE(post_numbered<8>(client, *queue, i)) << i;
  EXPECT_EQ(raised, 1);
  EXPECT_FALSE(post_numbered<8>(client, *queue, 62));
  EXPECT_EQ(raised, 2);
  EXPECT_NE(told.event_drop_seq_no(), state.event_drop_seq_no());
  EXPECT_EQ(client.card->tally.dropped_events.load(), 3u);
}

TEST(CassiniEventQueue, DropsMayBeSilent) {
  Rig client;
  auto queue = client.events(64);
  queue->eq->flags = wire::kEqDropStatusDisable;
  for (std::uint64_t i = 0; i < 70; ++i) post_numbered<8>(client, *queue, i);
  EXPECT_EQ(queue->bytes->value<wire::EqStatus>(0).timestamp_sec(), 0u);
}

TEST(CassiniEventQueue, TheRingGoesRoundToItsSecondBlock) {
  Rig client;
  auto queue = client.events(64);
  std::uint64_t read = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(i % 3 == 0   ? post_numbered<8>(client, *queue, i)
                : i % 3 == 1 ? post_numbered<4>(client, *queue, i)
                             : post_numbered<2>(client, *queue, i));
    if (i % 7 != 6) continue;
    const std::uint32_t from = queue->at;
    while (const wire::EventHead* const event = queue->next()) ASSERT_EQ(event->words[0], read++);
    if (queue->at > from) {
      std::memset(queue->bytes->at(from), 0, queue->at - from);
    } else {
      std::memset(queue->bytes->at(from), 0, 64 * 64 - from);
      std::memset(queue->bytes->at(64), 0, queue->at - 64);
    }
    queue->acknowledge();
  }
  EXPECT_EQ(read, 994u);
}

TEST(CassiniEventQueue, ReservedBlocksAreNoRoomButTakeEvents) {
  Rig client;
  auto queue = client.events(64);
  queue->eq->reserved_fc = 60;
  EXPECT_TRUE(client.card->has_room(*queue->eq, 2));
  EXPECT_FALSE(client.card->has_room(*queue->eq, 3));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(post_numbered<8>(client, *queue, i));
  EXPECT_FALSE(client.card->has_room(*queue->eq, 0));
}

TEST(CassiniEventQueue, NonsenseOfTheConsumerIsIgnored) {
  Rig client;
  auto queue = client.events(64);
  for (const std::uint64_t word : {std::uint64_t{64}, std::uint64_t{0x3ffffff}, ~std::uint64_t{0}, std::uint64_t{0}}) {
    queue->page[0] = word;
    EXPECT_TRUE(post_numbered<8>(client, *queue, 1));
  }
  for (std::uint64_t i = 0; i < 100; ++i) post_numbered<8>(client, *queue, i);
  EXPECT_EQ(client.card->tally.events.load(), 62u);
}

TEST(CassiniEventQueue, FillLevelsAreTold) {
  Rig client;
  auto queue = client.events(64);
  queue->eq->threshold_base = 80;   // 63 slots: 12 are free
  queue->eq->threshold_delta = 40;  // 37
  queue->eq->threshold_count = 2;
  const auto& status = queue->bytes->value<wire::EqStatus>(0);
  std::uint32_t posted = 0;
  while (!status.thld_sts()) {
    ASSERT_TRUE(post_numbered<8>(client, *queue, posted));
    ++posted;
  }
  EXPECT_EQ(posted, 62u - 37);
  EXPECT_EQ(status.thld_id(), 1u);
  EXPECT_EQ(status.event_slots_free(), 37u);
  while (status.thld_id() == 1) {
    ASSERT_TRUE(post_numbered<8>(client, *queue, posted));
    ++posted;
  }
  EXPECT_EQ(posted, 62u - 12);
  EXPECT_EQ(status.thld_id(), 0u);
}

TEST(CassiniEventQueue, WaitersAreWokenUnlessTheyAskNotToBe) {
  Rig client;
  auto queue = client.events(64);
  Wait wait;
  int raised = 0;
  wait.raise = [&] { ++raised; };
  queue->eq->event_wait = &wait;
  post_numbered<2>(client, *queue, 1);
  EXPECT_EQ(raised, 1);
  wire::EqSwState off{};
  off.set_rd_ptr(1);
  off.set_event_int_disable(true);
  queue->page[0] = off.word;
  post_numbered<2>(client, *queue, 2);
  client.card->drive();
  EXPECT_EQ(raised, 1);
  // Enabled again with something unread: woken for what came before.
  off.set_event_int_disable(false);
  queue->page[0] = off.word;
  client.card->drive();
  EXPECT_EQ(raised, 2);
  client.card->drive();
  EXPECT_EQ(raised, 2) << "once";

  // The queue goes while it is watched.
  off.set_event_int_disable(true);
  queue->page[0] = off.word;
  post_numbered<2>(client, *queue, 3);
  client.card->event_queues.retire(queue->eq->id);
  client.card->drive();
}

TEST(CassiniEventQueue, AResizeEndsTheOldBufferWithASwitch) {
  Rig client;
  auto queue = client.events(64);
  post_numbered<2>(client, *queue, 1);
  bench::Bytes larger(128 * 64);
  queue->eq->next = Eq::Next{.buffer = {.direct = larger.at(0)}, .slots = 128};
  post_numbered<2>(client, *queue, 2);
  ASSERT_EQ(queue->next()->words[0], 1u);
  EXPECT_EQ(queue->next()->event_type(), EventType::eq_switch);
  EXPECT_EQ(queue->next(), nullptr);
  EXPECT_EQ(larger.value<std::uint64_t>(64), 2u);
  EXPECT_TRUE(queue->eq->on_buffer_b);
  EXPECT_FALSE(queue->eq->next.has_value());
  // What the consumer says of the old buffer says nothing of the new one.
  queue->page[0] = 40;
  for (std::uint64_t i = 0; i < 125; ++i) ASSERT_TRUE(post_numbered<8>(client, *queue, i));
  EXPECT_FALSE(post_numbered<8>(client, *queue, 0));
  wire::EqSwState state{};
  state.set_rd_ptr(40);
  state.set_reading_buffer_b(true);
  queue->page[0] = state.word;
  EXPECT_TRUE(post_numbered<8>(client, *queue, 0));
}

TEST(CassiniEventQueue, AFullQueueStillSwitches) {
  Rig client;
  auto queue = client.events(64);
  for (std::uint64_t i = 0; i < 62; ++i) ASSERT_TRUE(post_numbered<8>(client, *queue, i));
  bench::Bytes other(64 * 64);
  queue->eq->next = Eq::Next{.buffer = {.direct = other.at(0)}, .slots = 64};
  client.card->switch_buffer(*queue->eq);
  for (std::uint64_t i = 0; i < 62; ++i) ASSERT_EQ(queue->next()->words[0], i);
  ASSERT_EQ(queue->next()->event_type(), EventType::eq_switch);
}

TEST(CassiniEventQueue, TimestampsComeByThemselves) {
  Rig client;
  auto queue = client.events(64);
  queue->eq->flags = wire::kEqTimestampEvents;
  for (int i = 0; i < 1000; ++i) client.card->drive();
  const wire::EventHead* const event = queue->next();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event_type(), EventType::timestamp);
  EXPECT_EQ(queue->next(), nullptr) << "one a second";
}

}  // namespace
}  // namespace strait::soft::cassini
