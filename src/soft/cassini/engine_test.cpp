// SPDX-License-Identifier: Apache-2.0
// Command queues: fetching, padding, wrapping, what stops one, and what the status says.
#include "soft/cassini/engine.hpp"

#include <gtest/gtest.h>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::put;
using bench::Rig;
using bench::Ring;
using wire::CmdSize;
using wire::CmdType;
using wire::ReturnCode;

wire::CqCmd queue_command(wire::CqOp op) {
  wire::CqCmd command{};
  command.set_header(CmdType::cq, CmdSize::b64, op);
  return command;
}

wire::NomatchDmaCmd small_put(std::uint64_t iova) {
  wire::NomatchDmaCmd command{};
  command.set_header(CmdType::dma, CmdSize::b32, wire::DmaOp::nomatch_put);
  command.set_lac(Rig::kLac);
  command.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
  command.set_local_addr(iova);
  command.set_request_len(8);
  return command;
}

// What the queue answered to its one bad command, and that it then takes nothing more.
void expect_failure(Rig& client, bench::Ring& ring, bench::Queue& events, ReturnCode code, std::uint32_t header,
                    std::uint32_t slot) {
  client.drive();
  EXPECT_TRUE(ring.cq->failed);
  EXPECT_EQ(ring.status().return_code(), code);
  EXPECT_EQ(ring.status().fail_command(), header);
  EXPECT_EQ(ring.status().rd_ptr(), slot / 2);
  EXPECT_EQ(ring.status().fail_loc_32(), slot % 2 != 0);
  const auto* const event = static_cast<const wire::CommandFailure*>(static_cast<const void*>(events.next()));
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event_type(), wire::EventType::command_failure);
  EXPECT_EQ(event->return_code(), code);
  EXPECT_EQ(event->fail_loc(), slot / 2);
  EXPECT_EQ(event->fail_command(), header);
  EXPECT_EQ(event->is_target(), !ring.cq->transmit);
  EXPECT_EQ(event->cq_id(), ring.cq->transmit ? ring.cq->id : ring.cq->id - wire::kFirstTargetCq);
  const std::size_t before = client.card->requests.size();
  ring.emit(put(Rig::kIova, 8));
  ring.ring();
  client.drive();
  EXPECT_EQ(client.card->requests.size(), before) << "a stopped queue stays stopped";
  EXPECT_EQ(ring.status().num_write_cmds_rejected(), 1u);
}

TEST(CassiniQueue, CommandsOfAllSizesWithPaddingAndWraps) {
  for (const bool shared : {true, false}) {
    Rig client;
    auto ring = client.queue(true, false);
    if (!shared) ring->cq->ring.direct = nullptr;
    wire::AmoDmaCmd atomic{};
    atomic.set_header(CmdType::dma, CmdSize::b128, wire::DmaOp::atomic);
    atomic.set_lac(Rig::kLac);
    atomic.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
    atomic.set_local_addr(Rig::kIova);
    atomic.set_request_len(8);
    atomic.set_atomic_op(wire::AtomicOp::sum);
    atomic.set_atomic_type(wire::AtomicType::uint64);
    std::size_t sent = 0;
    for (std::uint32_t i = 0; i < 300; ++i) {
      switch (i % 4) {
        case 0: ring->emit(put(Rig::kIova + i, 8)); break;
        case 1: ring->emit(small_put(Rig::kIova + i)); break;
        case 2: ring->emit(atomic); break;
        default: {
          std::vector<std::uint64_t> words(32);
          words[0] = wire::header_byte(CmdType::idc, CmdSize::b256, wire::DmaOp::put) | 208u << 8 |
                     std::uint64_t{wire::unicast_dfa(Rig::kNid, 1)} << 32;
          ring->emit_words(words, 256);
        }
      }
      ++sent;
      if (i % 3 == 0) ring->ring();
      client.drive();
    }
    ring->ring();
    client.drive();
    EXPECT_FALSE(ring->cq->failed) << static_cast<int>(ring->status().return_code());
    EXPECT_EQ(client.card->requests.size(), sent);
    EXPECT_EQ(ring->status().rd_ptr(), ring->slot / 2);
    EXPECT_GT(client.card->tally.commands.load(), sent) << "padding counts as well";
  }
}

TEST(CassiniQueue, NothingIsReadBeforeThePointerMoves) {
  Rig client;
  auto ring = client.queue(true, false);
  ring->emit(put(Rig::kIova, 8));
  client.drive();
  EXPECT_TRUE(client.card->requests.empty());
  ring->page[0] = 0xabcd0000 | 5;  // 16 bits count
  client.drive();
  EXPECT_EQ(client.card->requests.size(), 1u);
}

TEST(CassiniQueue, HalfOfACommandIsWaitedFor) {
  Rig client;
  auto ring = client.queue(true, false);
  std::vector<std::uint64_t> words(16);
  words[0] = wire::header_byte(CmdType::idc, CmdSize::b128, wire::DmaOp::put) | 100u << 8 |
             std::uint64_t{wire::unicast_dfa(Rig::kNid, 1)} << 32;
  ring->emit_words(words, 128);
  ring->page[0] = 5;
  client.drive();
  EXPECT_TRUE(client.card->requests.empty());
  EXPECT_FALSE(ring->cq->failed);
  ring->page[0] = 6;
  client.drive();
  EXPECT_EQ(client.card->requests.size(), 1u);
}

TEST(CassiniQueue, APointerOutsideTheRingStopsTheQueue) {
  for (const std::uint32_t pointer : {1u, 3u, 64u, 65535u}) {
    Rig client;
    auto events = client.events();
    auto ring = client.queue(true, false, events->eq);
    ring->page[0] = pointer;
    expect_failure(client, *ring, *events, ReturnCode::cmd_invalid_arg, 0, wire::kFirstSlot);
  }
}

TEST(CassiniQueue, ACommandLiesOnAMultipleOfItsSize) {
  Rig client;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  ring->emit(put(Rig::kIova, 8));
  const std::uint64_t header = wire::header_byte(CmdType::dma, CmdSize::b128, wire::DmaOp::atomic);
  const std::uint32_t at = ring->slot;
  ring->raw(&header, 8, 128);
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::cmd_align_error, static_cast<std::uint32_t>(header), at);
  EXPECT_EQ(client.card->requests.size(), 1u) << "what is before the bad one is done";
}

TEST(CassiniQueue, TheSecondHalfOfABlockIsNamed) {
  Rig client;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  ring->emit(small_put(Rig::kIova));
  const std::uint32_t at = ring->slot;
  auto bad = small_put(Rig::kIova);
  bad.set_header(CmdType::dma, CmdSize::b32, wire::DmaOp::ethernet_tx);
  ring->emit(bad);
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::illegal_op, bad.header(), at);
}

TEST(CassiniQueue, NobodyIsToldWithoutAnEventQueue) {
  Rig client;
  auto ring = client.queue(true, false);
  const auto bad = queue_command(static_cast<wire::CqOp>(7));
  ring->emit(bad);
  ring->ring();
  client.drive();
  EXPECT_EQ(ring->status().return_code(), ReturnCode::illegal_op);
}

TEST(CassiniQueue, FenceAndProfileChange) {
  Rig client;
  client.lni->cps[5] = std::make_unique<Cp>();
  client.lni->cps[5]->vni = 99;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  ring->emit(put(Rig::kIova, 8));
  ring->emit(queue_command(wire::CqOp::fence));
  auto change = queue_command(wire::CqOp::lcid);
  change.set_lcid(5);
  ring->emit(change);
  ring->emit(queue_command(wire::CqOp::noop));
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  ASSERT_EQ(client.card->requests.size(), 2u);
  EXPECT_EQ(client.card->requests[0].vni, Rig::kVni);
  EXPECT_EQ(client.card->requests[1].vni, 99u);

  // One that has no profile.
  change.set_lcid(6);
  if (ring->slot / 2 % 2 != 0) ring->emit(queue_command(wire::CqOp::noop));
  const std::uint32_t at = ring->slot;
  ring->emit(change);
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::cmd_invalid_arg, change.header(), at);
}

TEST(CassiniQueue, AProfileChangeHasItsPlaceAndItsCompany) {
  {
    Rig client;
    auto events = client.events();
    auto ring = client.queue(true, false, events->eq);
    ring->emit(queue_command(wire::CqOp::noop));
    const std::uint32_t at = ring->slot;
    ring->emit(queue_command(wire::CqOp::lcid));
    ring->ring();
    expect_failure(client, *ring, *events, ReturnCode::cmd_align_error, queue_command(wire::CqOp::lcid).header(), at);
  }
  Rig client;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  ring->emit(queue_command(wire::CqOp::lcid));
  const std::uint32_t at = ring->slot;
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::cmd_invalid_arg, put(0, 0).header(), at);
}

TEST(CassiniQueue, TriggeredQueuesTakeCounterCommandsAndOthersTakeNone) {
  {
    Rig client;
    auto events = client.events();
    auto ring = client.queue(true, true, events->eq);
    const std::uint32_t at = ring->slot;
    ring->emit(put(Rig::kIova, 8));
    ring->ring();
    expect_failure(client, *ring, *events, ReturnCode::illegal_op, put(0, 0).header(), at);
  }
  Rig client;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  bench::CounterCommand get(wire::CtOp::get);
  const std::uint32_t at = ring->slot;
  ring->emit(get);
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::illegal_op, get.header(), at);
}

TEST(CassiniQueue, TargetCommandsGoToTheTarget) {
  Rig client;
  auto events = client.events();
  auto ring = client.queue(false, false, events->eq);
  wire::TargetCmd append{};
  append.set_header(CmdType::cq, CmdSize::b64, wire::TargetOp::append);
  append.set_buffer_id(7);
  ring->emit(append);
  ring->ring();
  client.drive();
  ASSERT_EQ(client.card->target_commands.size(), 1u);
  EXPECT_EQ(client.card->target_commands[0][1], 7u);

  // No room for what it would report: tried again, in order.
  client.card->target_code = ReturnCode::delayed;
  ring->emit(append);
  ring->emit(append);
  ring->ring();
  client.card->drive();
  client.card->drive();
  EXPECT_EQ(client.card->target_commands.size(), 3u);
  client.card->target_code = ReturnCode::ok;
  client.drive();
  EXPECT_EQ(client.card->target_commands.size(), 5u);
  EXPECT_EQ(ring->status().rd_ptr(), ring->slot / 2);

  client.card->target_code = ReturnCode::no_space;
  const std::uint32_t at = ring->slot;
  ring->emit(append);
  ring->ring();
  expect_failure(client, *ring, *events, ReturnCode::no_space, append.header(), at);
}

TEST(CassiniQueue, WhatWasAppendedFirstIsThereFirst) {
  Rig client;
  auto sends = client.queue(true, false);  // made first: queues are not looked at in the order of their making
  auto appends = client.queue(false, false);
  wire::TargetCmd append{};
  append.set_header(CmdType::cq, CmdSize::b64, wire::TargetOp::append);
  std::size_t there = 0;
  client.card->meanwhile = [&](const Request&) { there = client.card->target_commands.size(); };
  for (const std::size_t rounds : {1u, 2u, 3u}) {
    appends->emit(append);
    appends->ring();
    sends->emit(put(Rig::kIova, 8));
    sends->ring();
    client.drive();
    EXPECT_EQ(there, rounds) << "a message came before the buffer that was posted for it";
  }
}

TEST(CassiniQueue, ATargetQueueTransmitsNothing) {
  for (const std::uint8_t header : {put(0, 0).header(), queue_command(wire::CqOp::lcid).header(),
                                    wire::header_byte(CmdType::cq, CmdSize::b64, static_cast<wire::TargetOp>(13))}) {
    Rig client;
    auto events = client.events();
    auto ring = client.queue(false, false, events->eq);
    const std::uint64_t word = header;
    ring->raw(&word, 8, 64);
    ring->ring();
    expect_failure(client, *ring, *events, ReturnCode::illegal_op, header, wire::kFirstSlot);
  }
}

TEST(CassiniQueue, TheStatusFollowsThePolicy) {
  const struct {
    wire::CqPolicy policy;
    std::uint32_t after_one, after_many;  // where the pointer in the status is
  } rows[] = {{wire::CqPolicy::always, 5, 25},
              {wire::CqPolicy::high_freq_empty, 5, 25},
              {wire::CqPolicy::low_freq_empty, 5, 25},
              {wire::CqPolicy::low_freq, 0, 0}};
  for (const auto& row : rows) {
    Rig client;
    auto ring = client.queue(true, false, nullptr, 1024);
    ring->cq->policy = static_cast<std::uint32_t>(row.policy);
    ring->emit(put(Rig::kIova, 8));
    ring->ring();
    client.drive();
    EXPECT_EQ(ring->status().rd_ptr(), row.after_one);
    for (int i = 0; i < 20; ++i) ring->emit(put(Rig::kIova, 8));
    ring->ring();
    client.drive();
    EXPECT_EQ(ring->status().rd_ptr(), row.after_many);
    for (int i = 0; i < 300; ++i) ring->emit(put(Rig::kIova, 8));
    ring->ring();
    client.drive();
    EXPECT_GE(ring->status().rd_ptr(), 256u);
  }
}

TEST(CassiniQueue, ASmallRingIsToldBeforeItIsFull) {
  Rig client;
  auto ring = client.queue(true, false, nullptr, 64);
  ring->cq->policy = static_cast<std::uint32_t>(wire::CqPolicy::low_freq);
  for (int i = 0; i < 59; ++i) ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  EXPECT_GE(ring->status().rd_ptr(), 20u);
}

TEST(CassiniQueue, QueuesTakeTurns) {
  Rig client;
  auto busy = client.queue(true, false, nullptr, 1024);
  auto other = client.queue(true, false);
  for (int i = 0; i < 500; ++i) busy->emit(put(Rig::kIova, 8));
  busy->ring();
  other->emit(put(Rig::kIova, 16));
  other->ring();
  client.card->drive();
  EXPECT_LE(client.card->requests.size(), 65u);
  EXPECT_EQ(client.card->requests.back().length, 16u);
}

TEST(CassiniQueue, AWindowWriteMovesThePointer) {
  Rig client;
  auto ring = client.queue(true, false);
  const auto window = [&](std::uint32_t offset, std::uint32_t slot, std::uint32_t blocks) {
    std::uint64_t* const to = ring->page.data() + (offset + wire::low_latency_offset(slot)) / 8;
    // The last window ends with the page.
    const std::size_t words = std::min<std::size_t>(blocks * 8, 512 - static_cast<std::size_t>(to - ring->page.data()));
    std::memcpy(to, ring->bytes->at(slot * 32u), words * 8);
  };
  std::size_t sent = 0;
  // Around the ring several times, with single blocks only; then a pointer equal to the one of before.
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  ++sent;
  const std::uint32_t first = ring->slot;
  do {
    const std::uint32_t at = ring->slot;
    ring->emit(put(Rig::kIova, 8));
    window(wire::kLowLatency64Offset, at, 1);
    client.drive();
    ASSERT_EQ(client.card->requests.size(), ++sent);
  } while (ring->slot + 2 != first);
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  EXPECT_EQ(client.card->requests.size(), ++sent) << "the same pointer, one turn later";

  if (ring->slot / 2 % 2 != 0) {
    ring->emit(queue_command(wire::CqOp::noop));
    ring->ring();
  }
  client.drive();
  std::uint32_t at = ring->slot;
  ring->emit(put(Rig::kIova, 8));
  ring->emit(put(Rig::kIova, 8));
  window(wire::kLowLatency128Offset, at, 2);
  client.drive();
  EXPECT_EQ(client.card->requests.size(), sent += 2);

  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  ++sent;
  at = ring->slot;
  ring->emit(queue_command(wire::CqOp::noop));
  ring->emit(put(Rig::kIova, 8));
  ring->emit(put(Rig::kIova, 8));
  window(wire::kLowLatency128UnalignedOffset, at + 2, 2);
  client.drive();
  EXPECT_EQ(client.card->requests.size(), sent += 2);
  EXPECT_EQ(ring->status().rd_ptr(), ring->slot / 2);
}

// What is in the ring from that slot on, written to the window of 64 bytes as well.
void write_window(Ring& ring, std::uint32_t slot) {
  std::memcpy(ring.page.data() + (wire::kLowLatency64Offset + wire::low_latency_offset(slot)) / 8,
              ring.bytes->at(slot * 32u), wire::kBlockBytes);
}

TEST(CassiniQueue, OnlyTransmitQueuesHaveWindows) {
  Rig client;
  auto counter = client.counter();
  auto counters = client.queue(true, true);
  bench::CounterCommand count(wire::CtOp::inc);
  count.ct().set_ct(counter->ct->id);
  count.ct().set_ct_success(3);
  count.ct().set_with_success(true);
  counters->emit(count);
  auto target = client.queue(false, false);
  target->emit(queue_command(wire::CqOp::noop));
  for (Ring* const ring : {counters.get(), target.get()}) {
    const std::uint32_t at = wire::kFirstSlot;
    const std::uint64_t before = ring->status().word;
    for (const std::uint32_t window :
         {wire::kLowLatency64Offset, wire::kLowLatency128Offset, wire::kLowLatency128UnalignedOffset})
      std::memcpy(ring->page.data() + (window + wire::low_latency_offset(at)) / 8, ring->bytes->at(at * 32u), 64);
    client.drive();
    EXPECT_EQ(ring->status().word, before) << "not taken, not refused";
    EXPECT_EQ(ring->cq->read_slot, wire::kFirstBlock);
  }
  EXPECT_EQ(counter->ct->success, 0u);
  for (Ring* const ring : {counters.get(), target.get()}) {
    ring->ring();
    client.drive();
    EXPECT_EQ(ring->status().rd_ptr(), wire::kFirstBlock + 1);
    EXPECT_EQ(ring->status().return_code(), ReturnCode::ok);
  }
  EXPECT_EQ(counter->ct->success, 3u);
}

TEST(CassiniQueue, AWindowTakesNoCommandOf256Bytes) {
  for (const bool by_window : {true, false}) {
    Rig client;
    auto events = client.events();
    auto ring = client.queue(true, false, events->eq);
    std::vector<std::uint64_t> long_one(32);
    long_one[0] = wire::header_byte(CmdType::idc, wire::CmdSize::b256, wire::DmaOp::put);
    const std::uint32_t at = ring->slot;
    ASSERT_EQ(at * 32u % 256, 0u);
    ring->emit_words(long_one, 256);
    if (!by_window) ring->ring();
    if (by_window) write_window(*ring, at);
    client.drive();
    EXPECT_TRUE(client.card->requests.empty());
    EXPECT_TRUE(ring->cq->failed);
    EXPECT_EQ(ring->status().return_code(), ReturnCode::cmd_invalid_arg) << "by the pointer: it has no state";
    EXPECT_EQ(ring->status().fail_ll(), by_window);
  }
}

// The status says how the command came that stopped the queue, and how many came later.
TEST(CassiniQueue, AStoppedQueueCountsWhatItRefuses) {
  Rig client;
  auto ring = client.queue(true, false);
  const auto refused = [] { return queue_command(static_cast<wire::CqOp>(9)); };
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  client.drive();
  std::uint32_t at = ring->slot;
  ring->emit(put(Rig::kIova, 8));
  write_window(*ring, at);
  client.drive();
  EXPECT_EQ(client.card->requests.size(), 2u);
  at = ring->slot;
  ring->emit(refused());
  write_window(*ring, at);
  client.drive();
  EXPECT_EQ(ring->status().return_code(), ReturnCode::illegal_op);
  EXPECT_EQ(ring->status().rd_ptr(), at / 2);
  EXPECT_TRUE(ring->status().fail_ll());
  EXPECT_EQ(ring->status().num_write_cmds_rejected(), 0u);
  for (std::uint32_t later = 1; later != 4; ++later) {
    at = ring->slot;
    ring->emit(put(Rig::kIova, 8));
    write_window(*ring, at);
    client.drive();
    EXPECT_EQ(ring->status().num_write_cmds_rejected(), later);
  }
  ring->ring();
  client.drive();
  EXPECT_EQ(ring->status().num_write_cmds_rejected(), 4u) << "a write pointer is one, too";
  EXPECT_EQ(client.card->requests.size(), 2u);

  // By the pointer, in a block that a window had had before.
  auto other = client.queue(true, false, nullptr, 64);
  at = other->slot;
  other->emit(put(Rig::kIova, 8));
  write_window(*other, at);
  client.drive();
  while (other->slot != at) {
    other->emit(put(Rig::kIova, 8));
    other->ring();
    client.drive();
  }
  other->emit(refused());
  other->ring();
  client.drive();
  EXPECT_EQ(other->status().return_code(), ReturnCode::illegal_op);
  EXPECT_FALSE(other->status().fail_ll());
  EXPECT_FALSE(other->status().ll_disabled());
}

TEST(CassiniQueue, ARingThatIsGoneStopsItsQueue) {
  Rig client;
  auto events = client.events();
  auto ring = client.queue(true, false, events->eq);
  ring->cq->ring.direct = nullptr;
  ring->emit(put(Rig::kIova, 8));
  ring->ring();
  ring->bytes->gone = true;
  client.drive();
  EXPECT_TRUE(ring->cq->failed);
  EXPECT_EQ(events->next()->return_code(), ReturnCode::pcie_unsuccess_cmpl);
}

TEST(CassiniQueue, AfterStoppingNothingOfItIsHeld) {
  Rig client;
  auto counter = client.counter();
  auto ring = client.queue(true, true);
  bench::CounterCommand arm(wire::CtOp::trig_inc);
  arm.ct().set_ct(counter->ct->id);
  arm.ct().set_trig_ct(counter->ct->id);
  arm.ct().set_threshold(5);
  ring->emit(arm);
  ring->ring();
  client.drive();
  EXPECT_EQ(client.card->tles_in_use, 1u);
  client.card->stopping(*ring->cq);
  client.card->transmit_queues.retire(ring->cq->id);
  EXPECT_EQ(client.card->tles_in_use, 0u);
  client.card->count(*counter->ct, 10, 0);
  client.drive();
  EXPECT_EQ(counter->ct->success, 10u);
}

}  // namespace
}  // namespace strait::soft::cassini
