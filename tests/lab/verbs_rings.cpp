// SPDX-License-Identifier: Apache-2.0
// Runs in the lab's guest: mlx5 rings over rxe by the verbs rail alone, through the plug-in interface. What a Node
// never posts is here: lists of many pieces, messages cut into several, garbage in the ring.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "rail/mlx5/nic.hpp"
#include "rail/mlx5/queue.hpp"
#include "sys/clock.hpp"
#include "sys/library.hpp"
#include "sys/socket.hpp"

namespace strait::rail {
namespace {
namespace m = wire::mlx5;
using device::Completion;
using m::Syndrome;

constexpr std::uint32_t kAll =
    STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
constexpr std::size_t kBytes = 1 << 20;

class VerbsRings : public testing::Test {
 protected:
  void open(const std::string& more = "", QueueShape shape = {64, 16}, std::uint32_t rnr_retries = 7) {
    library_ = sys::Library::open(STRAIT_VERBS_LIBRARY).value();
    const auto entry = library_.symbol<strait_nic_entry>(STRAIT_NIC_ENTRY).value();
    nic_ = Nic::open(entry(), "device=rxe0" + more).value();
    for (auto* memory : {&source_, &target_}) memory->resize(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) source_[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8));
    source_key_ = nic_->register_memory(request(source_)).value();
    target_key_ = nic_->register_memory(request(target_)).value();
    a_ = Queue::make(*nic_, shape).value();
    b_ = Queue::make(*nic_, shape).value();
    connect(*a_, *b_, rnr_retries);
    connect(*b_, *a_, rnr_retries);
  }
  static MemoryRequest request(std::vector<std::uint8_t>& memory) {
    MemoryRequest request;
    request.address = reinterpret_cast<std::uintptr_t>(memory.data());
    request.length_bytes = memory.size();
    request.access = kAll;
    return request;
  }
  void connect(const Queue& from, const Queue& to, std::uint32_t rnr_retries) const {
    strait_nic_connect_request request{};
    request.struct_size = sizeof request;
    request.remote_qpn = to.qpn();
    request.remote = nic_->address();
    request.ack_timeout_ns = 1'000'000'000;
    request.retries = 7;
    request.rnr_retries = rnr_retries;
    request.rnr_wait_ns = 100'000;
    const Status connected = from.connect(request);
    ASSERT_TRUE(connected) << connected.error().explain();
  }

  [[nodiscard]] device::Remote to(std::uint64_t offset) const {
    return {reinterpret_cast<std::uintptr_t>(target_.data()) + offset, target_key_.rkey()};
  }
  [[nodiscard]] device::Piece from(std::uint64_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(source_.data()) + offset, length, source_key_.lkey()};
  }
  [[nodiscard]] device::Piece into(std::uint64_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(target_.data()) + offset, length, target_key_.lkey()};
  }
  void receive(Queue& queue, const device::Piece& piece) {
    ASSERT_TRUE(device::post_receive<kOwner>(queue.receive(), &piece, piece.length == 0 ? 0 : 1).ok());
    device::publish_receives<kOwner>(queue.receive());
    queue.drive();
  }

  // The next completion, or one with the opcode `invalid` when none comes in time.
  Completion next(Queue& queue, std::int64_t within_ns = 60'000'000'000) {
    const sys::Deadline deadline = sys::Deadline::after_ns(within_ns);
    Completion completion{};
    do {
      nic_->drive(0);
      if (device::poll(queue.completions(), completion) != device::Polled::empty) {
        if (completion.is_requester())
          (void)device::complete_up_to<kOwner>(queue.send(), completion.wqe_counter);
        else
          (void)device::take_receive<kOwner>(queue.receive(), completion.wqe_counter);
        return completion;
      }
    } while (!deadline.passed());
    completion = {};
    completion.opcode = m::CqeOpcode::invalid;
    return completion;
  }
  void expect_silence(Queue& queue) { EXPECT_EQ(next(queue, 100'000'000).opcode, m::CqeOpcode::invalid); }
  std::uint64_t counter(const std::string& name) {
    const std::string all = "," + nic_->counters();
    const std::size_t at = all.find("," + name + "=");
    return at == std::string::npos ? UINT64_MAX : std::stoull(all.substr(at + name.size() + 2));
  }

  sys::Library library_;
  std::vector<std::uint8_t> source_, target_;
  std::unique_ptr<Nic> nic_;
  MemoryKey source_key_, target_key_;
  std::unique_ptr<Queue> a_, b_;
};

TEST_F(VerbsRings, CutsLongMessagesAndLongLists) {
  open(",max_message=10000");
  // 20 pieces, more than the device is asked to take at once, of lengths around the cut.
  std::vector<device::Piece> pieces;
  std::vector<std::uint8_t> wanted;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::uint32_t length = 1 + i * 1500;
    pieces.push_back(from(i * 40000, length));
    wanted.insert(wanted.end(), source_.begin() + i * 40000, source_.begin() + i * 40000 + length);
  }
  ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(7), pieces.data(), 20, device::kSignaled).ok());
  a_->ring();
  const Completion done = next(*a_);
  EXPECT_EQ(done.opcode, m::CqeOpcode::requester) << static_cast<int>(done.syndrome);
  EXPECT_EQ(done.byte_count, wanted.size());
  EXPECT_EQ(std::memcmp(target_.data() + 7, wanted.data(), wanted.size()), 0);
  EXPECT_EQ(counter("work_requests"), 1u);
  EXPECT_GT(counter("posted"), 30u);
  expect_silence(*a_);

  // The immediate comes once, behind the last piece.
  receive(*b_, into(0, 0));
  ASSERT_TRUE(
      device::post_write_imm<kOwner>(a_->send(), to(0), from(5, 25000), wire::be32{0xabcd}, device::kSignaled).ok());
  a_->ring();
  EXPECT_EQ(next(*a_).opcode, m::CqeOpcode::requester);
  const Completion told = next(*b_);
  EXPECT_EQ(told.opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(told.imm.value(), 0xabcdu);
  EXPECT_EQ(std::memcmp(target_.data(), source_.data() + 5, 25000), 0);

  // And back.
  std::vector<device::Piece> places;
  for (std::uint32_t i = 0; i < 18; ++i) places.push_back(into(500'000 + i * 2000, 2000));
  MemoryRequest all = request(source_);
  ASSERT_TRUE(
      device::post_read<kOwner>(a_->send(), {all.address, source_key_.rkey()}, places.data(), 18, device::kSignaled)
          .ok());
  a_->ring();
  EXPECT_EQ(next(*a_).opcode, m::CqeOpcode::requester);
  EXPECT_EQ(std::memcmp(target_.data() + 500'000, source_.data(), 36000), 0);

  // A message cannot be cut.
  ASSERT_TRUE(device::post_send<kOwner>(a_->send(), from(0, 10001), device::kNoFlags).ok());
  a_->ring();
  EXPECT_EQ(next(*a_).syndrome, Syndrome::local_length);
}

TEST_F(VerbsRings, NopsCompleteInTheirPlace) {
  open();
  for (std::uint32_t i = 0; i < 8; ++i)
    ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(i * 100), from(i * 100, 100), device::kNoFlags).ok());
  const device::Pending nop = device::post_nop<kOwner>(a_->send(), device::kSignaled);
  a_->ring();
  const Completion done = next(*a_);
  EXPECT_EQ(done.opcode, m::CqeOpcode::requester);
  EXPECT_EQ(done.wqe_counter, nop.start);
  EXPECT_EQ(std::memcmp(target_.data(), source_.data(), 800), 0) << "what lies before it is done";
}

// More than the device was asked to hold, round and round the ring, with inline payloads across its end.
TEST_F(VerbsRings, GoesRoundTheRing) {
  open("", {16, 16});
  std::uint32_t posted = 0;
  for (std::uint32_t turn = 0; turn < 300; ++turn) {
    const std::uint32_t length = 1 + turn % 150;
    while (
        !device::post_write_inline<kOwner>(a_->send(), to(turn * 200), source_.data() + turn, length, device::kSignaled)
             .ok()) {
      ASSERT_EQ(next(*a_).opcode, m::CqeOpcode::requester);
      --posted;
    }
    a_->ring();
    ++posted;
  }
  for (; posted != 0; --posted) ASSERT_EQ(next(*a_).opcode, m::CqeOpcode::requester);
  for (std::uint32_t turn = 0; turn < 300; ++turn)
    ASSERT_EQ(std::memcmp(target_.data() + turn * 200, source_.data() + turn, 1 + turn % 150), 0) << turn;
}

TEST_F(VerbsRings, AnErrorFlushesTheRest) {
  open();
  receive(*a_, into(0, 100));
  receive(*a_, into(100, 100));
  const device::Remote nowhere{to(0).addr, to(0).rkey ^ 0x100};
  ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(0), from(0, 64), device::kNoFlags).ok());
  const device::Pending bad = device::post_write<kOwner>(a_->send(), nowhere, from(0, 64), device::kNoFlags);
  ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(0), from(0, 64), device::kNoFlags).ok());
  ASSERT_TRUE(device::post_nop<kOwner>(a_->send(), device::kSignaled).ok());
  a_->ring();
  const Completion first = next(*a_);
  EXPECT_EQ(first.syndrome, Syndrome::remote_access);
  EXPECT_EQ(first.wqe_counter, bad.start);
  int sends = 0;
  int receives = 0;
  for (int i = 0; i < 4; ++i) {
    const Completion flushed = next(*a_);
    EXPECT_EQ(flushed.syndrome, Syndrome::flushed);
    ++(flushed.is_requester() ? sends : receives);
  }
  EXPECT_EQ(sends, 2);
  EXPECT_EQ(receives, 2);
  // What comes later too, of either kind.
  ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(0), from(0, 64), device::kNoFlags).ok());
  a_->ring();
  EXPECT_EQ(next(*a_).syndrome, Syndrome::flushed);
  receive(*a_, into(0, 100));
  EXPECT_EQ(next(*a_).syndrome, Syndrome::flushed);
  expect_silence(*a_);
}

TEST_F(VerbsRings, FailGivesEverythingBackAtOnce) {
  open();
  for (std::uint32_t i = 0; i < 5; ++i) receive(*b_, into(i * 100, 100));
  b_->fail();
  Completion completion{};
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(device::poll(b_->completions(), completion), device::Polled::error) << "without driving";
    EXPECT_EQ(completion.syndrome, Syndrome::flushed);
    EXPECT_EQ(completion.wqe_counter, i);
    (void)device::take_receive<kOwner>(b_->receive(), completion.wqe_counter);
  }
  EXPECT_EQ(device::poll(b_->completions(), completion), device::Polled::empty);
}

TEST_F(VerbsRings, GarbageIsAnErrorCompletion) {
  open();
  ASSERT_TRUE(device::post_write<kOwner>(a_->send(), to(0), from(0, 64), device::kNoFlags).ok());
  const device::Pending bad = device::post_nop<kOwner>(a_->send(), device::kNoFlags);
  a_->send().blocks[bad.start * m::kBlockBytes + 3] = 0x25;  // UMR
  a_->ring();
  const Completion failed = next(*a_);
  EXPECT_EQ(failed.opcode, m::CqeOpcode::requester_error);
  EXPECT_EQ(failed.syndrome, Syndrome::local_qp_operation);
  EXPECT_EQ(failed.wqe_counter, bad.start);
  EXPECT_EQ(std::memcmp(target_.data(), source_.data(), 64), 0) << "what lies before it is done";
}

TEST_F(VerbsRings, AMaskedAtomicIsNotForVerbs) {
  open();
  ASSERT_TRUE(device::post_masked_fetch_add8<kOwner>(a_->send(), to(0), 1, 0, into(64, 8), device::kSignaled).ok());
  a_->ring();
  EXPECT_EQ(next(*a_).syndrome, Syndrome::local_qp_operation);
}

TEST_F(VerbsRings, ASenderWithoutAReceiveGivesUp) {
  open("", {64, 16}, 0);
  ASSERT_TRUE(device::post_send<kOwner>(a_->send(), from(0, 64), device::kNoFlags).ok());
  a_->ring();
  EXPECT_EQ(next(*a_).syndrome, Syndrome::rnr_retry_exceeded);
}

TEST_F(VerbsRings, ArmsAndWakes) {
  open();
  receive(*b_, into(0, 100));
  while (!nic_->arm()) nic_->drive(0);
  EXPECT_FALSE(sys::wait_ready(nic_->event_fd(), false, sys::Deadline::after_ns(50'000'000)));
  ASSERT_TRUE(device::post_send<kOwner>(a_->send(), from(0, 64), device::kSignaled).ok());
  a_->ring();
  EXPECT_TRUE(sys::wait_ready(nic_->event_fd(), false, sys::Deadline::after_ns(60'000'000'000)));
  EXPECT_EQ(next(*a_).opcode, m::CqeOpcode::requester);
  EXPECT_EQ(next(*b_).opcode, m::CqeOpcode::responder_send);
  while (!nic_->arm()) nic_->drive(0);
  EXPECT_GE(counter("events"), 1u);
  EXPECT_FALSE(sys::wait_ready(nic_->event_fd(), false, sys::Deadline::after_ns(0))) << "taken by who arms again";
}

TEST_F(VerbsRings, RefusesBadRequests) {
  open();
  strait_plugin_error error{};
  strait_nic_qp made{};
  strait_nic_qp_request wrong{};
  wrong.struct_size = sizeof wrong;
  wrong.sq_blocks = 3;
  EXPECT_EQ(nic_->ops()->create_qp(nic_->handle(), &wrong, &made, &error), static_cast<std::int32_t>(Code::invalid));
  EXPECT_NE(std::string(error.text).find("a send queue of 3 blocks"), std::string::npos) << error.text;
  strait_nic_connect_request stranger{};
  stranger.struct_size = sizeof stranger;
  const Status again = a_->connect(stranger);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().explain().find("was connected before"), std::string::npos) << again.error().explain();
  EXPECT_EQ(nic_->ops()->destroy_qp(nic_->handle(), 0x777777, &error), static_cast<std::int32_t>(Code::invalid));
  EXPECT_EQ(nic_->ops()->destroy_cq(nic_->handle(), 1, &error), static_cast<std::int32_t>(Code::again));
  MemoryRequest unmapped;
  unmapped.address = 4096;
  unmapped.length_bytes = 4096;
  EXPECT_FALSE(nic_->register_memory(unmapped));
}

}  // namespace
}  // namespace strait::rail
