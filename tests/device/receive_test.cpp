// SPDX-License-Identifier: Apache-2.0
// The receive ring: rotation, terminator, what consumes a receive.
#include <gtest/gtest.h>

#include <algorithm>

#include "rig.hpp"

namespace {

using namespace paper;
using namespace strait::device;

struct ReceiveRig {
  ReceiveRig(std::uint32_t log_entries, std::uint32_t log_stride, std::uint64_t first = 0)
      : memory(std::size_t{1} << (log_entries + log_stride), kGuard), marks(std::size_t{1} << log_entries, 0) {
    opened = open_receive_ring(ring, {memory.data(), log_entries, log_stride, &record, marks.data(), first});
  }
  const std::uint8_t* slot(std::uint64_t index) const {
    return memory.data() + ((index & (ring.slots.capacity - 1)) << ring.log_stride);
  }
  Guarded memory;
  std::vector<std::uint64_t> marks;
  mlx5::QueueRecord record{};
  ReceiveRing ring{};
  bool opened = false;
};

template <Sharing S>
void rotate(std::uint64_t first) {
  ReceiveRig rig(3, 6, first);
  ASSERT_TRUE(rig.opened);
  Random random{first + 12};
  for (std::uint64_t i = first; i < first + 100; ++i) {
    std::vector<Piece> pieces;
    for (std::uint32_t n = random.below(5); n > 0; --n)
      pieces.push_back({random.next(), random.below(4) == 0 ? 0 : 1 + random.below(1000), 7});
    const Pending p = post_receive<S>(rig.ring, pieces.data(), static_cast<std::uint32_t>(pieces.size()));
    ASSERT_TRUE(p.ok());
    ASSERT_EQ(p.start, i);
    publish_receives<S>(rig.ring);
    ASSERT_EQ(rig.record.receive.value(), (i + 1) & 0xffff);
    ASSERT_EQ(rig.record.send.value(), 0u) << "the send word is another queue's";
    const std::uint8_t* at = rig.slot(i);
    std::uint32_t used = 0;
    for (const Piece& piece : pieces) {
      if (piece.length == 0) continue;
      ASSERT_EQ(big(at, 4), piece.length);
      ASSERT_EQ(big(at + 4, 4), piece.lkey);
      ASSERT_EQ(big(at + 8, 8), piece.addr);
      at += 16;
      ++used;
    }
    if (used < 4) {
      const std::uint8_t terminator[16] = {0, 0, 0, 0, 0, 0, 1, 0};
      ASSERT_EQ(std::memcmp(at, terminator, 16), 0);
    }
    const Taken t = take_receive<S>(rig.ring, static_cast<std::uint16_t>(i));
    ASSERT_TRUE(t.known);
    ASSERT_EQ(t.index, i);
  }
  ASSERT_TRUE(rig.memory.intact());
}

TEST(Invariant12_Receives, SlotsRotateAndShortListsAreTerminated) {
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{65500}, (std::uint64_t{1} << 32) - 50}) {
    rotate<kOne>(first);
    rotate<kMany>(first);
  }
}

template <Sharing S>
void fill_up() {
  ReceiveRig rig(2, 4);
  const Piece piece{0x1000, 64, 3};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post_receive<S>(rig.ring, piece).ok());
  EXPECT_EQ(post_receive<S>(rig.ring, piece).posted, Posted::full);
  EXPECT_EQ(rig.ring.slots.reserved, 4u);
  EXPECT_EQ(rig.record.receive.value(), 0u) << "posting does not publish";
  EXPECT_FALSE(take_receive<S>(rig.ring, 0).known) << "the device cannot have taken what it was not shown";
  publish_receives<S>(rig.ring);
  EXPECT_EQ(rig.record.receive.value(), 4u);
  EXPECT_TRUE(take_receive<S>(rig.ring, 0).known);
  EXPECT_FALSE(take_receive<S>(rig.ring, 0).known);
  EXPECT_EQ(free_receives<S>(rig.ring), 1u);
  EXPECT_TRUE(post_receive<S>(rig.ring, piece).ok());
}

TEST(Invariant12_Receives, FullIsAnAnswer) {
  fill_up<kOne>();
  fill_up<kMany>();
}

TEST(Invariant12_Receives, TooManyPiecesAndLongOnesAreRefused) {
  ReceiveRig rig(2, 5);
  const Piece three[3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
  EXPECT_EQ(post_receive<kOne>(rig.ring, three, 3).posted, Posted::too_long);
  const Piece holes[4] = {{1, 1, 1}, {2, 0, 2}, {3, 3, 3}, {4, 0, 4}};
  EXPECT_TRUE(post_receive<kOne>(rig.ring, holes, 4).ok()) << "empty pieces take no room";
  EXPECT_EQ(post_receive<kOne>(rig.ring, Piece{1, 0x80000000u, 1}).posted, Posted::too_long);
  EXPECT_TRUE(post_receive<kOne>(rig.ring, Piece{1, 0x7fffffffu, 1}).ok());
  EXPECT_EQ(post_receive<kOne>(rig.ring, nullptr, 1).posted, Posted::invalid);
  ReceiveRing ring{};
  mlx5::QueueRecord record{};
  EXPECT_FALSE(open_receive_ring(ring, {rig.memory.data(), 2, 3, &record, nullptr, 0}));
  EXPECT_FALSE(open_receive_ring(ring, {rig.memory.data(), 16, 4, &record, nullptr, 0}));
  EXPECT_FALSE(open_receive_ring(ring, {rig.memory.data() + 8, 2, 4, &record, nullptr, 0}));
}

// A small responder: messages in, CQEs out, by the format's rules.
TEST(Invariant12_Receives, WriteImmConsumesExactlyOneAndPlainWriteNone) {
  SendRig send(5);
  ReceiveRig receive(4, 4);
  CqRig cq(5, 64);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(post_receive<kOne>(receive.ring, Piece{0x1000, 64, 3}).ok());
  publish_receives<kOne>(receive.ring);
  const Piece data{0x5000, 16, 1};
  const Remote to{0x9000, 2};
  ASSERT_TRUE(post_write<kOne>(send.ring, to, data, 0).ok());
  ASSERT_TRUE(post_write_imm<kOne>(send.ring, to, data, sw::be32{0xaa}, 0).ok());
  ASSERT_TRUE(post_send<kOne>(send.ring, data, 0).ok());
  ASSERT_TRUE(post_write<kOne>(send.ring, to, data, 0).ok());
  ASSERT_TRUE(post_write_imm<kOne>(send.ring, to, data, sw::be32{0xbb}, 0).ok());
  ring_doorbell<kOne>(send.ring);

  std::uint16_t counter = 0;
  for (std::uint64_t at = 0; at < send.sent(); at += send.at(at).blocks()) {
    const Wqe w = send.at(at);
    if (w.opcode == 0x08) continue;
    mlx5::Cqe cqe{};
    cqe.byte_cnt = sw::be32{16};
    cqe.wqe_counter = sw::be16{counter++};
    std::memcpy(&cqe.imm_inval_pkey, w.imm, 4);
    cqe.op_own =
        mlx5::make_op_own(w.opcode == 0x09 ? mlx5::CqeOpcode::responder_write_imm : mlx5::CqeOpcode::responder_send, 0);
    cq.write(cqe);
  }
  std::vector<std::uint32_t> immediates;
  Completion c{};
  while (poll(cq.ring, c) == Polled::done) {
    EXPECT_FALSE(c.is_requester());
    EXPECT_EQ(c.byte_count, 16u);
    ASSERT_TRUE(take_receive<kOne>(receive.ring, c.wqe_counter).known);
    immediates.push_back(c.imm.value());
  }
  EXPECT_EQ(immediates, (std::vector<std::uint32_t>{0xaa, 0, 0xbb}));
  EXPECT_EQ(receive.ring.slots.completed, 3u);
}

}  // namespace
