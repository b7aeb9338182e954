// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a CXI command ring: gaps, the wrap to slot 8, the empty block, the write pointer, 48-bit counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cxi_rig.hpp"

namespace {

using namespace paper;
using strait::device::Sharing;
using Own = ki::OwnCommands<ki::RingKind::transmit>;
using OwnTriggered = ki::OwnCommands<ki::RingKind::triggered>;
using Many = ki::SharedCommands<Sharing::many_threads, ki::RingKind::transmit>;

// A ring that nobody serves; the test plays the device by storing the read pointer.
struct BareRing {
  explicit BareRing(std::uint32_t blocks, ki::RingKind kind = ki::RingKind::transmit)
      : memory(std::size_t{blocks} * 64), page(4096), marks(blocks) {
    std::memset(memory.data(), 0xa5, memory.size());
    read_to(4);
    EXPECT_TRUE(ki::open_command_ring(
        ring, {memory.data(), blocks, page.data(), marks.data(), kind, strait::device::Reach::system}));
  }
  void read_to(std::uint64_t block) { *memory.words() = std::uint64_t{1} << 48 | block; }
  std::uint32_t slot_of(const std::uint8_t* at) const { return static_cast<std::uint32_t>(at - memory.data()) / 32; }
  std::uint64_t word(std::uint32_t slot) const { return memory.words()[slot * 4]; }
  std::uint64_t shown() const { return *page.words(); }

  Aligned memory, page;
  std::vector<std::uint64_t> marks;
  ki::CommandRing ring{};
};

constexpr std::uint64_t kUntouched = 0xa5a5a5a5a5a5a5a5u;

TEST(CxiRing, RefusesMemoryThatIsNoRing) {
  Aligned memory(65536 * 64), page(4096);
  ki::CommandRing ring{};
  const auto opens = [&](void* blocks, std::uint32_t count, void* launch) {
    return ki::open_command_ring(
        ring, {blocks, count, launch, nullptr, ki::RingKind::transmit, strait::device::Reach::system});
  };
  EXPECT_TRUE(opens(memory.data(), 64, page.data()));
  EXPECT_TRUE(opens(memory.data(), 65536, page.data()));
  EXPECT_FALSE(opens(memory.data(), 65536 + 64, page.data()));
  EXPECT_FALSE(opens(memory.data(), 60, page.data()));
  EXPECT_FALSE(opens(memory.data(), 96, page.data()));
  EXPECT_FALSE(opens(nullptr, 64, page.data()));
  EXPECT_FALSE(opens(memory.data(), 64, nullptr));
  EXPECT_FALSE(opens(memory.data() + 32, 64, page.data()));
}

TEST(CxiRing, StartsAtSlotEightAndFillsGapsWithNoops) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  EXPECT_EQ(bare.slot_of(own.claim<1>()), 8u);
  EXPECT_EQ(bare.slot_of(own.claim<2>()), 10u);  // one slot skipped
  EXPECT_EQ(bare.word(9), 0u);
  EXPECT_EQ(bare.slot_of(own.claim<1>()), 12u);
  EXPECT_EQ(bare.slot_of(own.claim<4>()), 16u);  // three skipped
  for (std::uint32_t slot = 13; slot < 16; ++slot) EXPECT_EQ(bare.word(slot), 0u);
  EXPECT_EQ(bare.slot_of(own.claim<1>()), 20u);
  EXPECT_EQ(bare.slot_of(own.claim<8>()), 24u);  // three skipped: 24 is a multiple of 8
  EXPECT_EQ(bare.word(8), kUntouched);           // commands are the caller's to write
}

TEST(CxiRing, AnOddEndIsFilledAndTheWritePointerCountsBlocks) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  own.ring();
  EXPECT_EQ(bare.shown(), 0u);  // nothing new: nothing is written
  (void)own.claim<1>();
  own.ring();
  EXPECT_EQ(bare.shown(), 5u);
  EXPECT_EQ(bare.word(9), 0u);
  EXPECT_EQ(own.next(), 10u);
  (void)own.claim<2>();
  own.ring();
  EXPECT_EQ(bare.shown(), 6u);
  *bare.page.words() = 99;
  own.ring();
  EXPECT_EQ(bare.shown(), 99u);
}

TEST(CxiRing, GapsOfATriggeredRingAreCounterNoops) {
  BareRing bare(64, ki::RingKind::triggered);
  OwnTriggered own;
  own.open(bare.ring);
  EXPECT_EQ(bare.slot_of(own.claim<2>()), 8u);
  EXPECT_EQ(bare.slot_of(own.claim<4>()), 12u);
  EXPECT_EQ(bare.word(10), 0x06u);  // counter type, 64 bytes, NOOP
  EXPECT_EQ(bare.word(11), kUntouched);
}

TEST(CxiRing, WrapsToSlotEightAndKeepsOneBlockEmpty) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  for (std::uint32_t i = 0; i < 59; ++i) ASSERT_EQ(bare.slot_of(own.claim<2>()), 8 + 2 * i);
  EXPECT_EQ(own.claim<2>(), nullptr);  // 60 blocks take commands, one stays empty
  EXPECT_EQ(own.claim<1>(), nullptr);
  bare.read_to(6);
  EXPECT_EQ(bare.slot_of(own.claim<2>()), 126u);  // the last block
  EXPECT_EQ(bare.slot_of(own.claim<2>()), 8u);
  EXPECT_EQ(own.claim<2>(), nullptr);
  own.ring();
  EXPECT_EQ(bare.shown(), 5u);
  EXPECT_EQ(bare.memory.words()[0] & 0xffff, 6u);  // the status area was not written
}

TEST(CxiRing, AGapMayReachTheEnd) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  for (std::uint32_t i = 0; i < 59; ++i) (void)own.claim<2>();
  own.ring();
  bare.read_to(60);
  EXPECT_EQ(bare.slot_of(own.claim<4>()), 8u);  // slots 126 and 127 are the gap
  EXPECT_EQ(bare.word(126), 0u);
  EXPECT_EQ(bare.word(127), 0u);
}

TEST(CxiRing, TheLastOddSlotHasRoomForItsFiller) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  std::uint32_t claimed = 0;
  while (own.claim<1>() != nullptr) ++claimed;
  EXPECT_EQ(claimed, 118u);
  bare.read_to(5);
  ASSERT_NE(own.claim<1>(), nullptr);
  own.ring();  // its filler takes the other half of the block that was freed
  EXPECT_EQ(own.claim<1>(), nullptr);
  EXPECT_EQ(bare.shown(), 4u);
}

TEST(CxiRing, ALaneBehindAnotherGoesOnWhereThatStopped) {
  BareRing bare(64);
  Own first;
  first.open(bare.ring);
  (void)first.claim<1>();
  first.give_back();
  Own second;
  second.open(bare.ring);
  second.ring();
  EXPECT_EQ(bare.shown(), 5u);
  EXPECT_EQ(bare.slot_of(second.claim<2>()), 10u);
}

TEST(CxiRing, NonsenseFromTheDeviceFreesNothing) {
  for (const std::uint64_t block : {0u, 3u, 64u, 65535u}) {
    BareRing bare(64);
    Own own;
    own.open(bare.ring);
    bare.read_to(block);
    EXPECT_EQ(own.claim<2>(), nullptr) << block;
    BareRing other(64);
    Many many;
    many.open(other.ring);
    Many::Claim claim{};
    for (unsigned i = 0; i < 59; ++i) ASSERT_TRUE(many.claim(1, 1, claim));
    other.read_to(block);
    EXPECT_FALSE(many.claim(1, 1, claim)) << block;
  }
}

TEST(CxiRing, ManyBlocksAtOnceLieOnBothSidesOfTheWrap) {
  BareRing bare(64);
  Own own;
  own.open(bare.ring);
  std::uint32_t first = 0;
  ASSERT_TRUE(own.claim_blocks(50, first));
  EXPECT_EQ(first, 4u);
  EXPECT_FALSE(own.claim_blocks(10, first));
  own.ring();
  bare.read_to(54);
  ASSERT_TRUE(own.claim_blocks(20, first));
  EXPECT_EQ(first, 54u);
  EXPECT_EQ(own.block_after(first, 9), 63u);
  EXPECT_EQ(own.block_after(first, 10), 4u);
  own.ring();
  EXPECT_EQ(bare.shown(), 14u);
}

// ---- Shared

TEST(CxiSharedRing, AClaimCoversItsGapAndIsShownInOrder) {
  BareRing bare(64);
  Many many;
  many.open(bare.ring);
  Many::Claim one{}, two{}, three{};
  ASSERT_TRUE(many.claim(1, 1, one));
  ASSERT_TRUE(many.claim(2, 2, two));
  ASSERT_TRUE(many.claim(1, 1, three));
  EXPECT_EQ(one.block, 4u);
  EXPECT_EQ(two.block, 6u);
  EXPECT_EQ(ki::block_of(two.from), 5u);
  EXPECT_EQ(bare.word(10), 0u);  // the gap: both slots of block 5
  EXPECT_EQ(bare.word(11), 0u);
  EXPECT_EQ(three.block, 8u);
  many.commit(three);
  many.ring();
  EXPECT_EQ(bare.shown(), 0u);  // it waits for those before it
  many.commit(one);
  many.ring();
  EXPECT_EQ(bare.shown(), 5u);
  many.commit(two);
  many.ring();
  EXPECT_EQ(bare.shown(), 9u);
}

TEST(CxiSharedRing, GoesRoundForManyLapsAtEverySize) {
  for (const std::uint32_t blocks : {64u, 128u, 65536u}) {
    BareRing bare(blocks);
    Many many;
    many.open(bare.ring);
    std::mt19937 random(blocks);
    std::uint32_t expected = 4;
    for (unsigned i = 0; i < 20000; ++i) {
      const std::uint32_t align = 1u << random() % 3;
      const std::uint32_t size = align == 1 ? 1 + static_cast<std::uint32_t>(random() % 32) : align;
      Many::Claim claim{};
      ASSERT_TRUE(many.claim(size, align, claim)) << i;
      EXPECT_EQ(ki::block_of(claim.from), expected);
      const std::uint32_t gap = (align - expected % align) % align;
      std::uint32_t start = expected + gap;
      if (start >= blocks) start = start - blocks + 4;
      EXPECT_EQ(claim.block, start);
      EXPECT_EQ(claim.block % align, 0u);
      EXPECT_TRUE(align == 1 || claim.block + size <= blocks);  // never across the wrap
      expected = start + size;
      if (expected >= blocks) expected = expected - blocks + 4;
      many.commit(claim);
      many.ring();
      ASSERT_EQ(bare.shown(), expected);
      bare.read_to(expected);
    }
  }
}

TEST(CxiSharedRing, FullIsAnAnswerAndChangesNothing) {
  BareRing bare(64);
  Many many;
  many.open(bare.ring);
  Many::Claim claim{};
  for (unsigned i = 0; i < 59; ++i) {
    ASSERT_TRUE(many.claim(1, 1, claim));
    many.commit(claim);
  }
  const ki::Cursor before = bare.ring.reserved;
  EXPECT_FALSE(many.claim(1, 1, claim));
  EXPECT_FALSE(many.claim(60, 1, claim));
  EXPECT_EQ(bare.ring.reserved, before);
  many.ring();
  EXPECT_EQ(bare.shown(), 63u);
  bare.read_to(63);
  EXPECT_FALSE(many.claim(60, 1, claim));  // more than the ring ever has
  ASSERT_TRUE(many.claim(2, 2, claim));    // block 63 is its gap
  EXPECT_EQ(claim.block, 4u);
}

TEST(CxiSharedRing, CursorsOfTwoLapsAreNeverEqual) {
  using namespace ki;
  const Cursor end = cursor_at(7, 63);
  EXPECT_EQ(advance(end, 1, 64), cursor_at(8, 4));
  EXPECT_EQ(advance(end, 3, 64), cursor_at(8, 6));
  EXPECT_EQ(advance(cursor_at(7, 65535), 1, 65536), cursor_at(8, 4));
  EXPECT_EQ(distance(cursor_at(7, 60), cursor_at(8, 6), 64), 6u);
  EXPECT_EQ(distance(cursor_at(7, 4), cursor_at(7, 63), 64), 59u);
  EXPECT_EQ(newest_at(cursor_at(7, 10), 10), cursor_at(7, 10));
  EXPECT_EQ(newest_at(cursor_at(7, 10), 11), cursor_at(6, 11));
}

// ---- Counts

TEST(CxiCounter, ComparesModuloTwoToTheFortyEight) {
  constexpr std::uint64_t top = (std::uint64_t{1} << 48) - 1;
  EXPECT_TRUE(ki::reached(0, 0));
  EXPECT_TRUE(ki::reached(5, 4));
  EXPECT_FALSE(ki::reached(4, 5));
  EXPECT_TRUE(ki::reached(1, top));  // it has wrapped
  EXPECT_FALSE(ki::reached(top, 1));
  EXPECT_TRUE(ki::reached(top, top));
  EXPECT_FALSE(ki::reached(0, std::uint64_t{1} << 46));
}

TEST(CxiCounter, DoorbellsOfHardwareAreStoresAndOfSoftwareAdditions) {
  Aligned page(4096);
  std::uint64_t word = 0;
  const ki::Counter hardware{strait::device::head_of<ki::Counter>(), &word, page.words(), 1, 0};
  ki::inc_success(hardware, 3);
  ki::inc_success(hardware, 3);
  ki::inc_failure(hardware, 0x85);
  EXPECT_EQ(page.words()[0], 3u);  // the register counts both; memory would show one
  EXPECT_EQ(page.words()[8], 5u);  // seven bits
  ki::inc_success(hardware, ~std::uint64_t{0});
  EXPECT_EQ(page.words()[0], (std::uint64_t{1} << 48) - 1);
  page.words()[16] = page.words()[24] = ~std::uint64_t{0};
  ki::reset_success(hardware);
  ki::reset_failure(hardware);
  EXPECT_EQ(page.words()[16], 0u);
  EXPECT_EQ(page.words()[24], 0u);
  std::memset(page.data(), 0, 4096);
  const ki::Counter software{strait::device::head_of<ki::Counter>(), &word, page.words(), 1, ki::kMemoryDoorbell};
  ki::inc_success(software, 3);
  ki::inc_success(software, 3);
  ki::inc_failure(software, 1);
  ki::inc_failure(software, 1);
  EXPECT_EQ(page.words()[0], 6u);
  EXPECT_EQ(page.words()[8], 2u);
}

TEST(CxiCounter, TheMarkIsTakenAwayAlone) {
  std::uint64_t word = std::uint64_t{0x8055} << 48 | 0x123456789abc;
  const ki::Counter c{strait::device::head_of<ki::Counter>(), &word, nullptr, 1, 0};
  ki::forget_written(c);
  EXPECT_EQ(word, std::uint64_t{0x0055} << 48 | 0x123456789abc);
}

TEST(CxiEvents, TheFirstFailureIsFoundBehindFillers) {
  Aligned queue(4096);
  std::uint64_t* const words = queue.words();
  const auto cause = [&] { return ki::first_cause(words, 4096); };
  EXPECT_EQ(cause().code, strait::wire::cxi::ReturnCode::ok);
  words[9] = std::uint64_t{1 | 9u << 2} << 48 | std::uint64_t{1} << 56;    // an ACK that went well, 16 bytes
  words[11] = std::uint64_t{1 | 31u << 2} << 48 | std::uint64_t{1} << 56;  // a filler
  words[13] = std::uint64_t{2 | 9u << 2} << 48;                            // 32 bytes, not all there yet
  words[12] = 77;
  EXPECT_EQ(cause().code, strait::wire::cxi::ReturnCode::ok);
  words[15] = std::uint64_t{26} << 56;
  EXPECT_EQ(cause().code, strait::wire::cxi::ReturnCode::ptlte_not_found);
  EXPECT_EQ(cause().user_ptr, 77u);
}

}  // namespace
