// SPDX-License-Identifier: Apache-2.0
// What a post writes: the same everywhere, what was asked, inside its blocks, at every index and length.
#include <gtest/gtest.h>

#include <algorithm>

#include "requests.hpp"

namespace {

using namespace paper;
using namespace strait::device;

// ---- 1: the same bytes from every compiler -------------------------------------------------------------------------

template <Sharing S>
std::uint64_t digest_of_a_thousand_requests() {
  SendRig rig(6, kThousandFirst, kThousandQpn);
  Digest digest;
  for (const Request& r : a_thousand_requests()) {
    const Pending p = post<S>(rig.ring, r);
    if (!p.ok()) return 0;
    ring_doorbell<S>(rig.ring);
    for (std::uint32_t b = 0; b < rig.at(p.start).ds * 16; ++b)  // what lies behind is undefined
      digest.add(rig.memory.data() + (p.start % 64 * 64 + b) % rig.memory.size(), 1);
    rig.drain();
  }
  return digest.value;
}

// The number is the same under g++ and clang, on x86-64 and arm64, at every optimisation level, and on a GPU
// (near_suite.hpp).
TEST(Invariant01_SameBytesFromEveryCompiler, DigestOfAThousandRequests) {
  EXPECT_EQ(digest_of_a_thousand_requests<kOne>(), kDigestOfAThousand);
  EXPECT_EQ(digest_of_a_thousand_requests<kMany>(), kDigestOfAThousand);
}

// ---- 2: decode(encode(request)) == request, and nothing outside its blocks -----------------------------------------

template <Sharing S>
void round_trip(std::uint32_t log_blocks, std::uint64_t index, const Request& r) {
  SendRig rig(log_blocks, index);
  ASSERT_TRUE(rig.opened);
  const Pending p = post<S>(rig.ring, r);
  if (!p.ok()) {
    ASSERT_EQ(p.posted, Posted::too_long);
    std::uint32_t ds = has_remote(r.kind) ? 2 : 1;
    for (const auto& piece : r.pieces) ds += piece.length != 0;
    if (is_inline(r.kind)) ds += r.payload.empty() ? 0 : static_cast<std::uint32_t>((4 + r.payload.size() + 15) / 16);
    if (is_atomic(r.kind)) ds += r.kind == Kind::masked_swap8 ? 2 : 1;
    ASSERT_TRUE(ds > 63 || (ds + 3) / 4 > rig.blocks()) << "refused, although it fits";
    ASSERT_EQ(rig.ring.slots.reserved, index);
    return;
  }
  ASSERT_EQ(p.start, index);
  const Wqe w = rig.at(index);
  expect_same(r, w, index, 0xa1b2);
  ASSERT_EQ(rig.ring.slots.reserved, index + w.blocks());
  for (std::uint64_t b = w.blocks(); b < rig.blocks(); ++b) {
    const std::uint8_t* block = rig.memory.data() + (index + b) % rig.blocks() * 64;
    ASSERT_TRUE(std::all_of(block, block + 64, [](std::uint8_t x) { return x == kGuard; })) << "block " << b;
  }
  ASSERT_TRUE(rig.memory.intact());
}

TEST(Invariant02_DecodeGivesTheRequestBack, EveryOperationAndPieceCount) {
  Random random{1};
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(Kind::count); ++k)
    for (std::uint32_t pieces = 0; pieces <= 64; ++pieces) {
      const Request r = make_request(random, static_cast<Kind>(k), pieces, pieces);
      round_trip<kOne>(5, random.below(1u << 20), r);
      round_trip<kMany>(5, random.below(1u << 20), r);
      if (HasFatalFailure()) FAIL() << "kind " << k << ", pieces " << pieces;
    }
}

TEST(Invariant02_DecodeGivesTheRequestBack, EveryInlineLength) {
  Random random{2};
  for (Kind k : {Kind::send_inline, Kind::send_imm_inline, Kind::write_inline, Kind::write_imm_inline})
    for (std::uint32_t length = 0; length <= kMaxInlineSend + 1; ++length) {
      round_trip<kOne>(4, random.below(1u << 20), make_request(random, k, 0, length));
      if (HasFatalFailure()) FAIL() << "length " << length;
    }
}

TEST(Invariant02_DecodeGivesTheRequestBack, EveryRingSize) {
  Random random{3};
  for (std::uint32_t log_blocks = 0; log_blocks <= mlx5::kMaxLogBlocks; ++log_blocks)
    for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(Kind::count); ++k) {
      const std::uint32_t last = (1u << log_blocks) - 1;  // one block before the end, where a long WQE wraps
      round_trip<kOne>(log_blocks, last, make_request(random, static_cast<Kind>(k), 9, 200));
      if (HasFatalFailure()) FAIL() << "log_blocks " << log_blocks << ", kind " << k;
    }
}

// ---- 3: the index field, across 65536 and 2^32 ---------------------------------------------------------------------

TEST(Invariant03_IndexFieldIsSixteenBits, AcrossTheTurns) {
  for (std::uint64_t around :
       {std::uint64_t{65536}, std::uint64_t{1} << 20, std::uint64_t{1} << 32, std::uint64_t{1} << 48}) {
    SendRig rig(4, around - 40);
    Random random{around};
    for (int i = 0; i < 80; ++i) {
      const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
      const Request r = make_request(random, kind, 3, random.below(60));
      const std::uint64_t expected = rig.ring.slots.reserved;
      const Pending p = post<kOne>(rig.ring, r);
      ASSERT_TRUE(p.ok());
      ASSERT_EQ(p.start, expected);
      ring_doorbell<kOne>(rig.ring);
      const Wqe w = rig.at(p.start);
      expect_same(r, w, p.start, 0xa1b2);
      if (HasFatalFailure()) FAIL() << "index " << p.start;
      ASSERT_EQ(rig.sent(), (p.start + w.blocks()) & 0xffff);
      ASSERT_EQ(complete_up_to<kOne>(rig.ring, static_cast<std::uint16_t>(p.start)).end, p.start + w.blocks());
    }
    EXPECT_GT(rig.ring.slots.completed, around);
  }
}

TEST(Invariant03_IndexFieldIsSixteenBits, EveryIndexOfOneTurn) {
  SendRig rig(3);
  for (std::uint64_t i = 0; i < 70000; ++i) {
    const Pending p = post_nop<kOne>(rig.ring, kSignaled);
    ASSERT_TRUE(p.ok());
    ASSERT_EQ(p.start, i);
    const Wqe w = rig.at(i);
    ASSERT_EQ(w.index, i & 0xffff);
    ASSERT_EQ(w.opmod, 0u);
    rig.drain();
  }
}

// ---- 11: lengths
// -----------------------------------------------------------------------------------------------------

TEST(Invariant11_NothingIsTruncated, MessageLengths) {
  SendRig rig(4);
  const Remote remote{0x1000, 1};
  const auto one = [&](std::uint32_t length) {
    return post_write<kOne>(rig.ring, remote, Piece{0, length, 1}, 0).posted;
  };
  EXPECT_EQ(one(1u << 30), Posted::ok);
  EXPECT_EQ(rig.at(0).pointers.at(0).length, 1u << 30);
  EXPECT_EQ(one((1u << 30) + 1), Posted::too_long);
  EXPECT_EQ(one(0x7fffffff), Posted::too_long);
  EXPECT_EQ(one(0x80000000u), Posted::too_long);
  EXPECT_EQ(one(0xffffffffu), Posted::too_long);
  const std::vector<Piece> many(5, Piece{0, 0xffffffffu, 1});  // a 32-bit sum would come out small
  EXPECT_EQ(post_send<kOne>(rig.ring, many.data(), 5, 0).posted, Posted::too_long);
  const Piece halves[2] = {{0, 1u << 29, 1}, {0, (1u << 29) + 1, 1}};
  EXPECT_EQ(post_read<kOne>(rig.ring, remote, halves, 2, 0).posted, Posted::too_long);
  EXPECT_EQ(rig.ring.slots.reserved, 1u) << "refusals leave the counters alone";
}

TEST(Invariant11_NothingIsTruncated, ZeroLengthHasNoDataSegment) {
  SendRig rig(4);
  ASSERT_TRUE(post_write<kOne>(rig.ring, Remote{8, 1}, Piece{0x1000, 0, 1}, kSignaled).ok());
  EXPECT_EQ(rig.at(0).ds, 2u);
  ASSERT_TRUE(post_send<kOne>(rig.ring, nullptr, 0, kSignaled).ok());
  EXPECT_EQ(rig.at(1).ds, 1u);
  ASSERT_TRUE(post_write_inline<kOne>(rig.ring, Remote{8, 1}, nullptr, 0, kSignaled).ok());
  EXPECT_EQ(rig.at(2).ds, 2u);
}

TEST(Invariant11_NothingIsTruncated, InlineLengths) {
  SendRig rig(5);
  const std::vector<std::uint8_t> payload(2000, 0x5a);
  const Remote to{8, 1};
  const auto inl = [&](std::uint64_t n) { return post_write_inline<kOne>(rig.ring, to, payload.data(), n, 0).posted; };
  EXPECT_EQ(inl(kMaxInlineWrite), Posted::ok);
  EXPECT_EQ(rig.at(0).ds, 63u);
  EXPECT_EQ(inl(kMaxInlineWrite + 1), Posted::too_long);
  EXPECT_EQ(inl(std::uint64_t{1} << 32), Posted::too_long) << "8 low zero nibbles are not a length of 0";
  EXPECT_EQ(inl((std::uint64_t{1} << 32) + 8), Posted::too_long);
}

TEST(Refusals, AnswerInvalidAndChangeNothing) {
  SendRig rig(4);
  const Remote odd{0x1004, 1}, even{0x1008, 1};
  const Piece eight{0x2000, 8, 1}, four{0x2000, 4, 1};
  EXPECT_EQ(post_fetch_add<kOne>(rig.ring, odd, 1, eight, 0).posted, Posted::invalid);
  EXPECT_EQ(post_compare_swap<kOne>(rig.ring, even, 1, 2, four, 0).posted, Posted::invalid);
  EXPECT_EQ(post_masked_fetch_add4<kOne>(rig.ring, {0x1002, 1}, 1, 0, four, 0).posted, Posted::invalid);
  EXPECT_EQ(post_masked_fetch_add4<kOne>(rig.ring, odd, 1, 0, eight, 0).posted, Posted::invalid);
  EXPECT_EQ(post_masked_compare_swap8<kOne>(rig.ring, odd, {}, eight, 0).posted, Posted::invalid);
  EXPECT_EQ(post_send<kOne>(rig.ring, nullptr, 2, 0).posted, Posted::invalid);
  EXPECT_EQ(post_send_inline<kOne>(rig.ring, nullptr, 4, 0).posted, Posted::invalid);
  EXPECT_EQ(post_nop<kOne>(rig.ring, 0x01).posted, Posted::invalid);
  EXPECT_EQ(rig.ring.slots.reserved, 0u);
  EXPECT_TRUE(post_masked_fetch_add4<kOne>(rig.ring, odd, 1, 0, four, 0).ok());
}

TEST(Refusals, RingsThatCannotBe) {
  alignas(64) static std::uint8_t memory[256];
  mlx5::QueueRecord record{};
  std::uint64_t bell = 0;
  SendRing ring{};
  const auto open = [&](void* blocks, std::uint32_t log, std::uint32_t qpn, mlx5::QueueRecord* r, void* d) {
    return open_send_ring(ring, {blocks, log, qpn, r, d, nullptr, 0});
  };
  EXPECT_TRUE(open(memory, 2, 0xffffff, &record, &bell));
  EXPECT_EQ(ring.abi_version, kDeviceAbiVersion);
  EXPECT_EQ(ring.struct_size, sizeof(SendRing));
  EXPECT_FALSE(open(memory, 16, 1, &record, &bell)) << "65536 blocks: full and empty would look alike";
  EXPECT_FALSE(open(memory + 16, 1, 1, &record, &bell));
  EXPECT_FALSE(open(memory, 2, 0x1000000, &record, &bell));
  EXPECT_FALSE(open(nullptr, 2, 1, &record, &bell));
  EXPECT_FALSE(open(memory, 2, 1, nullptr, &bell));
  EXPECT_FALSE(open(memory, 2, 1, &record, nullptr));
  EXPECT_FALSE(open(memory, 2, 1, &record, reinterpret_cast<std::uint8_t*>(&bell) + 4));
}

// ---- 15: an inline payload that wraps
// --------------------------------------------------------------------------------

TEST(Invariant15_InlineWrapEqualsNoWrap, EveryLengthAtEverySlot) {
  Random random{15};
  for (std::uint32_t length : {13u, 28u, 29u, 44u, 45u, 60u, 100u, 172u, 400u, 956u}) {
    const Request r = make_request(random, Kind::write_inline, 0, length);
    SendRig straight(5);
    ASSERT_TRUE(post<kOne>(straight.ring, r).ok());
    const Wqe plain = straight.at(0);
    ASSERT_EQ(plain.payload, r.payload);
    for (std::uint64_t slot = 0; slot < 32; ++slot) {
      SendRig rig(5, slot);
      ASSERT_TRUE(post<kOne>(rig.ring, r).ok());
      const Wqe w = rig.at(slot);
      ASSERT_EQ(w.payload, plain.payload) << "length " << length << " at slot " << slot;
      ASSERT_EQ(w.ds, plain.ds);
      ASSERT_TRUE(rig.memory.intact());
    }
  }
}

}  // namespace
