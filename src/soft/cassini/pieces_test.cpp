// SPDX-License-Identifier: Apache-2.0
// A long put or get moves in pieces: others are served in between, and events and counts are those of one operation.
#include <gtest/gtest.h>

#include <cstring>

#include "soft/cassini/engine.hpp"
#include "soft/cassini/neighbour_testing.hpp"

namespace strait::soft::cassini {
namespace {

using testing::Neighbour;
using testing::Pages;

constexpr std::uint32_t kPieces = 6;
constexpr std::uint32_t kLong = kPieces * kBytesPerPiece - 100;
constexpr std::uint32_t kIndex = 3;

// One who sends much, one who sends little, and one to whom they do.
struct PiecesTest : ::testing::Test {
  PiecesTest() {
    for (std::size_t i = 0; i < source.size() / 8; ++i) {
      const std::uint64_t value = i * 0x9e3779b97f4a7c15u;
      std::memcpy(source.data() + i * 8, &value, sizeof value);
    }
    pte = to.portal(kIndex);
  }
  static constexpr std::size_t kPagesOfLong = kPieces * kBytesPerPiece / 4096;

  [[nodiscard]] wire::TargetCmd window(std::uint64_t offset, std::uint64_t bytes, std::uint32_t flags = 0) const {
    wire::TargetCmd c = to.entry(pte, wire::PtlList::priority, 0, bytes, flags);
    c.set_lac(to_md.lac);
    c.set_start(to_md.iova + offset);
    return c;
  }
  [[nodiscard]] wire::FullDmaCmd long_one(wire::DmaOp op, std::uint64_t remote_offset = 0) const {
    wire::FullDmaCmd c = from.put(to, kIndex, 0, kLong, remote_offset);
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, op);
    if (op == wire::DmaOp::get) c.set_flags(wire::kEventCtReply | wire::kEventSuccessDisable);
    c.set_lac(from_md.lac);
    c.set_local_addr(from_md.iova);
    return c;
  }
  // How many passes until the counter has it; 100: it never has.
  int passes_until(Neighbour& who, std::uint64_t successes) {
    int passes = 0;
    while (who.counter().success < successes && who.counter().failure == 0 && passes < 100) fabric.drive(), ++passes;
    return passes;
  }
  [[nodiscard]] bool arrived(std::uint64_t offset = 0) const {
    return std::memcmp(target.data() + offset, source.data(), kLong) == 0;
  }

  Fabric fabric{1};
  Card& card = *fabric.card(0);
  Pages source{kPagesOfLong}, target{2 * kPagesOfLong};
  Neighbour from{card, 1, 10}, small{card, 2, 11}, to{card, 3, 12};
  wire::Md from_md = from.client.map_memory(from.lni, source.data(), source.size());
  wire::Md to_md = to.client.map_memory(to.lni, target.data(), target.size());
  std::uint32_t pte = 0;
};

TEST_F(PiecesTest, AnotherClientsPutOvertakesALongOne) {
  to.append(window(0, target.size()));
  from.send(long_one(wire::DmaOp::put));
  fabric.drive();
  ASSERT_EQ(from.counter().success, 0u);
  std::memset(small.memory.data(), 7, 8);
  small.send(small.put(to, kIndex, 0, 8, kLong + 200));
  EXPECT_EQ(passes_until(small, 1), 1);
  EXPECT_EQ(target.data()[kLong + 200], std::byte{7});
  EXPECT_EQ(from.counter().success, 0u) << "the long one is under way";
  EXPECT_FALSE(arrived());
  EXPECT_EQ(passes_until(from, 1), static_cast<int>(kPieces) - 2);
  EXPECT_TRUE(arrived());
  EXPECT_EQ(from.counter().success, 1u);
  EXPECT_EQ(card.tally.puts.load(), 2u);
  EXPECT_EQ(card.tally.landed.load(), 2u);
  EXPECT_EQ(card.tally.bytes.load(), std::uint64_t{kLong} + 8);
}

TEST_F(PiecesTest, WhatIsBehindItInItsQueueWaits) {
  to.append(window(0, target.size()));
  from.transmit.emit(long_one(wire::DmaOp::put));
  std::memset(from.memory.data(), 7, 8);
  from.transmit.emit(from.put(to, kIndex, 0, 8, 0));  // onto its first bytes
  from.transmit.announce();
  EXPECT_EQ(passes_until(from, 1), static_cast<int>(kPieces));
  passes_until(from, 2);
  EXPECT_EQ(target.data()[0], std::byte{7}) << "the second came second";
  EXPECT_EQ(std::memcmp(target.data() + 8, source.data() + 8, kLong - 8), 0);
}

TEST_F(PiecesTest, AGet) {
  std::memset(target.data(), 9, target.size());
  to.append(window(0, target.size()));
  from.send(long_one(wire::DmaOp::get));
  fabric.drive();
  ASSERT_EQ(from.counter().success, 0u);
  EXPECT_EQ(passes_until(from, 1), static_cast<int>(kPieces) - 1);
  EXPECT_TRUE(arrived());
}

TEST_F(PiecesTest, WhatDoesNotFitMovesNothing) {
  to.append(window(0, kLong - 1));
  from.send(long_one(wire::DmaOp::put));
  EXPECT_EQ(passes_until(from, 1), 1);
  EXPECT_EQ(from.counter().failure, 1u);
  for (std::size_t i = 0; i < target.size(); i += 8) ASSERT_EQ(target.data()[i], std::byte{0}) << i;
}

TEST_F(PiecesTest, AnEntryForOneMessageTakesItInOne) {
  to.append(window(0, target.size(), wire::kLeUseOnce));
  from.send(long_one(wire::DmaOp::put));
  EXPECT_EQ(passes_until(from, 1), 1);
  EXPECT_TRUE(arrived());
}

TEST_F(PiecesTest, WhereTheListChangesItAllGoesToTheNewEntry) {
  to.append(window(0, target.size()));
  from.send(long_one(wire::DmaOp::put));
  fabric.drive();
  fabric.drive();
  wire::TargetCmd unlink = window(0, target.size());
  unlink.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::unlink);
  to.append(unlink);
  const std::uint64_t other = std::uint64_t{kPieces} * kBytesPerPiece;
  to.append(window(other, kLong));
  passes_until(from, 1);
  EXPECT_EQ(from.counter().success, 1u);
  EXPECT_TRUE(arrived(other));
}

}  // namespace
}  // namespace strait::soft::cassini
