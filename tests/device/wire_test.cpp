// SPDX-License-Identifier: Apache-2.0
// The formats themselves: byte order, field accessors, sentences.
#include "strait/wire/mlx5.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace {

using namespace strait::wire;
using namespace strait::wire::mlx5;

TEST(Endian, MemoryImageIsMostSignificantByteFirst) {
  const be32 v{0x01020304};
  const packed_be64 p{0x1122334455667788};
  std::uint8_t bytes[12];
  std::memcpy(bytes, &v, 4);
  std::memcpy(bytes + 4, &p, 8);
  const std::uint8_t want[12] = {1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  EXPECT_EQ(std::memcmp(bytes, want, 12), 0);
  EXPECT_EQ(be16{0xabcd}.value(), 0xabcd);
  EXPECT_EQ(be64{0x0123456789abcdef}.value(), 0x0123456789abcdefu);
  EXPECT_EQ(be32::from_raw(v.raw()), v);
  EXPECT_EQ(packed_be16{0x1234}.value(), 0x1234);
}

TEST(Endian, PackedWorksAtOddAddresses) {
  struct Odd {
    std::uint8_t first;
    packed_be32 value;
  } odd{0, packed_be32{0xdeadbeef}};
  static_assert(sizeof(Odd) == 5);
  EXPECT_EQ(odd.value.value(), 0xdeadbeefu);
}

TEST(Mlx5Wire, ControlSegmentFields) {
  const std::uint8_t bytes[16] = {0x09, 0xfe, 0xdc, 0x14, 0x12, 0x34, 0x56, 0x05, 0, 0, 0, 0x8a, 1, 2, 3, 4};
  CtrlSeg c;
  std::memcpy(&c, bytes, 16);
  EXPECT_EQ(c.opmod(), kOpmodMasked8);
  EXPECT_EQ(c.index(), 0xfedc);
  EXPECT_EQ(c.opcode(), Opcode::atomic_masked_cs);
  EXPECT_EQ(c.qpn(), 0x123456u);
  EXPECT_EQ(c.ds(), 5u);
  EXPECT_EQ(c.fm_ce_se, kFenceAndInitiatorSmall | kCompletionAlways | kSolicited);
  EXPECT_EQ(c.imm.value(), 0x01020304u);
}

TEST(Mlx5Wire, ErrorFormAndPlainFormAgreeOnTheSyndrome) {
  ErrorCqe e{};
  e.hw_err_synd = 1;
  e.hw_synd_type = 2;
  e.vendor_err_synd = 0x88;
  e.syndrome = Syndrome::remote_access;
  e.op_own = make_op_own(CqeOpcode::requester_error, 1);
  Cqe c;
  std::memcpy(&c, &e, sizeof(c));
  EXPECT_TRUE(c.is_error());
  EXPECT_EQ(c.owner(), 1u);
  EXPECT_EQ(c.syndrome(), Syndrome::remote_access);
  EXPECT_EQ(c.vendor_syndrome(), 0x88);
  EXPECT_EQ(c.hw_syndrome(), 1);
  EXPECT_EQ(c.hw_syndrome_type(), 2);
}

TEST(Mlx5Wire, EverySyndromeHasItsOwnSentence) {
  const int known[] = {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x22};
  std::set<std::string> sentences;
  for (int s : known) sentences.insert(sentence(static_cast<Syndrome>(s)));
  EXPECT_EQ(sentences.size(), std::size(known));
  const std::string unknown = sentence(static_cast<Syndrome>(0x77));
  EXPECT_EQ(sentences.count(unknown), 0u);
  EXPECT_NE(unknown.find("not known"), std::string::npos);
}

TEST(Mlx5Wire, InlineLengthsRoundUpWithTheirHeader) {
  EXPECT_EQ(inline_segments(0), 0u);
  EXPECT_EQ(inline_segments(1), 1u);
  EXPECT_EQ(inline_segments(12), 1u);
  EXPECT_EQ(inline_segments(13), 2u);
  EXPECT_EQ(blocks_of(4), 1u);
  EXPECT_EQ(blocks_of(5), 2u);
}

TEST(Mlx5Wire, ArmWordAndDoorbell) {
  EXPECT_EQ(arm_word(5, ArmCommand::next_solicited, 0x12345678), 0x11345678u);
  EXPECT_EQ(arm_doorbell(0x11345678, 0x42), 0x1134567800000042u);
}

}  // namespace
