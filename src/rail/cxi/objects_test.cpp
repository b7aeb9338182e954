// SPDX-License-Identifier: Apache-2.0
// What the library asks of a CXI device, in which order, and what it makes of refusals.
#include "rail/cxi/objects.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rail/cxi/command_queue.hpp"
#include "rail/cxi/encode.hpp"
#include "rail/cxi/event_queue.hpp"
#include "rail/cxi/testing.hpp"

namespace strait::rail::cxi {
namespace {

using testing::Notes;

struct CxiObjects : ::testing::Test {
  void SetUp() override {
    auto opened = Device::serve(Notes::ops_table(), "device=7");
    ASSERT_TRUE(opened) << opened.error().text;
    device = std::move(*opened);
    auto made = Lni::make(*device);
    ASSERT_TRUE(made);
    lni = std::move(*made);
  }
  Notes notes;
  std::unique_ptr<Device> device;
  Lni lni;
};

TEST_F(CxiObjects, SaysWhatItIs) {
  EXPECT_EQ(device->name(), "cxi7");
  EXPECT_EQ(device->info().nid, 0x123u);
  EXPECT_TRUE(device->software());
}

TEST_F(CxiObjects, AreFreedChildrenFirst) {
  {
    auto eq = EventQueue::make(lni, 8192, nullptr);
    ASSERT_TRUE(eq) << eq.error().text;
    auto domain = Domain::make(lni, 1);
    ASSERT_TRUE(domain);
    EXPECT_EQ(domain->pid(), 17u);
    auto portal = Portal::make(lni, *domain, 9, eq->number(), w::kPteIsMatching);
    ASSERT_TRUE(portal);
    EXPECT_EQ(notes.mapped, 1u);
    notes.commands.clear();
  }
  const std::vector<w::Op> freed = {w::Op::pte_unmap, w::Op::pte_free, w::Op::domain_free, w::Op::eq_free,
                                    w::Op::atu_unmap};
  EXPECT_EQ(notes.ops(), freed);
  EXPECT_EQ(notes.mapped, 0u);
}

TEST_F(CxiObjects, RefusalsSayWhatTheyMean) {
  notes.refuse[w::Op::ct_alloc] = ENOSPC;
  std::uint64_t word = 0;
  const auto counter = Counter::make(lni, &word);
  ASSERT_FALSE(counter);
  EXPECT_EQ(counter.error().code, Code::limit);
  EXPECT_NE(counter.error().text.find("cxi7 made no counter"), std::string::npos) << counter.error().text;
  EXPECT_NE(counter.error().text.find("used up"), std::string::npos) << counter.error().text;
  EXPECT_NE(counter.error().remedy.find("cxi_service"), std::string::npos);
  notes.refuse[w::Op::lni_alloc] = EKEYREVOKED;
  const auto other = Lni::make(*device);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::denied);
  EXPECT_NE(other.error().text.find("disabled"), std::string::npos);
  notes.refuse[w::Op::atu_unmap] = EBUSY;
  auto memory = Memory::make(lni, {.address = 0x10000, .bytes = 4096, .flags = w::kMapRead});
  ASSERT_TRUE(memory);
  const Status status = memory->give_back();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::again);
  EXPECT_TRUE(memory->valid());
  notes.refuse.clear();
  EXPECT_TRUE(memory->give_back());
}

TEST_F(CxiObjects, MemoryIsAskedForAsTheDriverWantsIt) {
  auto memory = Memory::make(
      lni, {.address = 0x12345, .bytes = 100, .flags = w::kMapRead | w::kMapDevice, .dmabuf = 9, .dmabuf_offset = 64});
  ASSERT_TRUE(memory);
  const auto asked = notes.last(w::Op::atu_map)->as<w::AtuMapCmd>();
  EXPECT_EQ(asked.flags, w::kMapRead | w::kMapDevice | w::kMapPin);
  EXPECT_EQ(asked.hints.dmabuf_fd, 9);
  EXPECT_EQ(asked.hints.dmabuf_valid, 1);
  EXPECT_EQ(asked.hints.dmabuf_offset, 64u);
  EXPECT_EQ(memory->iova(0x12345), memory->md().iova + 0x345);
  auto plain = Memory::make(lni, {.address = 0x12345, .bytes = 100, .flags = w::kMapRead});
  ASSERT_TRUE(plain);
  EXPECT_EQ(notes.last(w::Op::atu_map)->as<w::AtuMapCmd>().hints.dmabuf_fd, -1);
  EXPECT_EQ(notes.last(w::Op::atu_map)->as<w::AtuMapCmd>().hints.dmabuf_valid, 0);
}

// Two equal additions in a row are both counted where the page is memory.
TEST_F(CxiObjects, CounterDoorbells) {
  std::uint64_t word = 0;
  auto counter = Counter::make(lni, &word);
  ASSERT_TRUE(counter);
  EXPECT_EQ(notes.last(w::Op::ct_alloc)->as<w::CtAllocCmd>().wb, reinterpret_cast<std::uintptr_t>(&word));
  counter->add(1);
  counter->add(1);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(counter->doorbell()), 2u);
  ASSERT_TRUE(counter->move_to(nullptr));
  EXPECT_EQ(notes.last(w::Op::ct_wb_update)->as<w::CtWbUpdateCmd>().ctn, counter->number());
}

struct Placed {
  std::uint32_t slot;
  std::uint8_t header;
};

// Commands start on multiples of their size, the rest is NOOPs, and the ring begins again behind the status area.
TEST_F(CxiObjects, CommandsLieWhereTheDeviceLooks) {
  auto made = CommandQueue::make(lni, {.blocks = 64, .lcid = 3});
  ASSERT_TRUE(made);
  CommandQueue queue = std::move(*made);
  EXPECT_EQ(notes.last(w::Op::cq_alloc)->as<w::CqAllocCmd>().opts.flags, w::kCqIsTx);
  auto* const ring = queue.ring_memory();
  auto* const pointer = reinterpret_cast<std::uint64_t*>(queue.launch_page());
  queue.ring();
  EXPECT_EQ(*pointer, 0u) << "nothing was added, so nothing is written";

  ASSERT_TRUE(queue.emit(encode_state(Way{}), w::CmdSize::b32));
  ASSERT_TRUE(queue.emit(encode_fetching(Way{}, Atomic{}), w::CmdSize::b128));
  queue.ring();
  EXPECT_EQ(std::to_integer<int>(ring[8 * 32]), w::header_byte(w::CmdType::idc, w::CmdSize::b32, w::DmaOp::cstate));
  for (std::size_t i = 9 * 32; i < 12 * 32; ++i) ASSERT_EQ(ring[i], std::byte{0}) << i;
  EXPECT_EQ(std::to_integer<int>(ring[12 * 32]),
            w::header_byte(w::CmdType::dma, w::CmdSize::b128, w::DmaOp::fetching_atomic));
  EXPECT_EQ(*pointer, 8u);

  // An odd number of slots is rounded up by a NOOP.
  ASSERT_TRUE(queue.emit(encode_state(Way{}), w::CmdSize::b32));
  queue.ring();
  EXPECT_EQ(*pointer, 9u);

  // Full: one block stays empty.
  const w::FullDmaCmd put = encode_put(Way{}, Transfer{});
  int count = 0;
  while (queue.emit(put, w::CmdSize::b64)) ++count;
  EXPECT_EQ(count, 64 - 4 - 1 - 5);
  // The device has read everything up to block 40.
  w::QueueStatus status = w::initial_queue_status();
  status.set_rd_ptr(40);
  std::memcpy(ring, &status, sizeof status);
  EXPECT_TRUE(queue.emit(put, w::CmdSize::b64));
  queue.ring();
  EXPECT_GE(*pointer, 4u);
  EXPECT_LT(*pointer, 40u) << "it wrapped to block 4, not to 0";
}

TEST_F(CxiObjects, ATriggeredQueueIsPaddedWithCounterCommands) {
  auto queue = CommandQueue::make(lni, {.kind = CommandQueue::Kind::triggered, .blocks = 64});
  ASSERT_TRUE(queue);
  EXPECT_EQ(notes.last(w::Op::cq_alloc)->as<w::CqAllocCmd>().opts.flags, w::kCqIsTx | w::kCqTxTriggered);
  ASSERT_TRUE(queue->emit(encode_count(w::CtOp::get, 5), w::CmdSize::b64));
  w::TrigDmaCmd trigger{};
  trigger.trigger.set_header(w::CmdType::ct, w::CmdSize::b128, w::CtOp::trig_dma);
  ASSERT_TRUE(queue->emit(trigger, w::CmdSize::b128));
  EXPECT_EQ(std::to_integer<int>(queue->ring_memory()[5 * 64]),
            w::header_byte(w::CmdType::ct, w::CmdSize::b64, w::CtOp::noop));
}

TEST_F(CxiObjects, ARingOfTheCallers) {
  alignas(4096) static std::byte ring[4096];
  std::fill(std::begin(ring), std::end(ring), std::byte{0xff});
  auto queue = CommandQueue::make(lni, {.kind = CommandQueue::Kind::target, .blocks = 64, .ring = ring});
  ASSERT_TRUE(queue);
  const auto asked = notes.last(w::Op::cq_alloc_buf)->as<w::CqAllocBufCmd>();
  EXPECT_EQ(asked.opts.buf, reinterpret_cast<std::uintptr_t>(ring));
  EXPECT_EQ(asked.opts.is_host_mem, 1);
  EXPECT_EQ(asked.opts.dmabuf_fd, -1);
  EXPECT_EQ(asked.opts.opts.flags, 0u);
  EXPECT_EQ(queue->status().rd_ptr(), 4u);
  EXPECT_EQ(queue->status().return_code(), w::ReturnCode::ok);
}

// A device that writes events, for the test of who reads them.
struct Writer {
  void put(std::uint64_t at, w::EventType type, w::EventSize size, std::uint64_t first) {
    std::uint64_t words[8] = {};
    const std::uint32_t bytes = w::bytes_of(size);
    words[0] = first;
    w::EventHead head{};
    head.set_event_size(size);
    head.set_event_type(type);
    words[1] = head.words[1];
    words[bytes / 8 - 1] = w::with_bits<56, 6>(words[bytes / 8 - 1], static_cast<std::uint64_t>(w::ReturnCode::ok));
    std::memcpy(events + at, words, bytes);
  }
  std::byte* events;
};

TEST_F(CxiObjects, EventsAreTakenInOrderAndGivenBack) {
  auto queue = EventQueue::make(lni, 4096, nullptr);
  ASSERT_TRUE(queue);
  const auto asked = notes.last(w::Op::eq_alloc)->as<w::EqAllocCmd>();
  EXPECT_EQ(asked.attr.queue_len, 4096u);
  Writer device_side{reinterpret_cast<std::byte*>(asked.attr.queue)};
  const auto* const state = reinterpret_cast<const std::uint64_t*>(notes.pages(4096));
  Event event;
  EXPECT_FALSE(queue->next(event));
  // Around the ring three times: a short one, a gap, a long one.
  std::uint64_t at = 64;
  std::uint64_t number = 0;
  for (int turn = 0; turn < 3 * 63 / 2; ++turn) {
    device_side.put(at, w::EventType::ack, w::EventSize::b16, ++number);
    device_side.put(at + 16, w::EventType::null_event, w::EventSize::b16, 0);
    device_side.put(at + 32, w::EventType::null_event, w::EventSize::b32, 0);
    at = at + 64 >= 4096 ? 64 : at + 64;
    device_side.put(at, w::EventType::put, w::EventSize::b64, ++number);
    at = at + 64 >= 4096 ? 64 : at + 64;
    ASSERT_TRUE(queue->next(event));
    EXPECT_EQ(event.type, w::EventType::ack);
    EXPECT_EQ(event.words[0], number - 1);
    ASSERT_TRUE(queue->next(event));
    EXPECT_EQ(event.type, w::EventType::put);
    EXPECT_EQ(event.bytes, 64u);
    EXPECT_EQ(event.words[0], number);
    ASSERT_FALSE(queue->next(event));
    queue->acknowledge();
    EXPECT_EQ(w::EqSwState{*state}.rd_ptr(), at / 64);
  }
  queue->wake_by_events(true);
  EXPECT_FALSE(w::EqSwState{*state}.event_int_disable());
  EXPECT_FALSE(queue->lost_any());
}

// An event whose last byte has not arrived is none yet.
TEST_F(CxiObjects, HalfAnEventIsNone) {
  auto queue = EventQueue::make(lni, 4096, nullptr);
  ASSERT_TRUE(queue);
  auto* const events = reinterpret_cast<std::byte*>(notes.last(w::Op::eq_alloc)->as<w::EqAllocCmd>().attr.queue);
  Writer device_side{events};
  device_side.put(64, w::EventType::put, w::EventSize::b64, 1);
  const std::byte last = events[127];
  events[127] = std::byte{0};
  Event event;
  EXPECT_FALSE(queue->next(event));
  events[127] = last;
  EXPECT_TRUE(queue->next(event));
}

}  // namespace
}  // namespace strait::rail::cxi
