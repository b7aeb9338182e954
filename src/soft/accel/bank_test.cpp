// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/bank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "soft/accel/window.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"

namespace strait::soft::accel {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

sys::Fd hand_out(const sys::Fd& window) {
  sys::Fd given = sys::open_again(window.get()).value();
  EXPECT_TRUE(sys::hold_file(given.get()));
  return given;
}

TEST(BankTest, CountsWholePagesAndGivesThemBack) {
  const auto bank = Bank::make("strait test memory", 4 * kMega);
  EXPECT_EQ(bank->free_bytes(), 4 * kMega);
  auto one = bank->take(1).value();
  EXPECT_EQ(one->length_bytes(), sys::page_bytes());
  EXPECT_EQ(bank->free_bytes(), 4 * kMega - sys::page_bytes());
  EXPECT_EQ(bank->take(4 * kMega).error().code, Code::limit);
  EXPECT_EQ(bank->take(UINT64_MAX).error().code, Code::limit);
  EXPECT_EQ(bank->take(0).error().code, Code::invalid);
  const std::uint64_t first_id = one->id();
  one.reset();
  EXPECT_EQ(bank->free_bytes(), 4 * kMega);
  EXPECT_NE(bank->take(1).value()->id(), first_id) << "ids are never used again";
}

TEST(BankTest, AnOpenDescriptorKeepsTheMemory) {
  const auto bank = Bank::make("strait test memory", 4 * kMega);
  auto block = bank->take(3 * kMega).value();
  sys::Fd first = block->open_file().value();
  sys::Fd second = block->open_file().value();
  block.reset();
  EXPECT_EQ(bank->free_bytes(), kMega);
  EXPECT_EQ(bank->leaks().blocks, 1u);
  EXPECT_EQ(bank->leaks().bytes, 3 * kMega);
  first.reset();
  EXPECT_EQ(bank->free_bytes(), kMega);
  EXPECT_EQ(bank->take(2 * kMega).error().code, Code::limit);
  second.reset();
  EXPECT_TRUE(bank->take(4 * kMega)) << "a closed descriptor is noticed when memory runs out, too";
  EXPECT_EQ(bank->leaks().blocks, 0u);
}

TEST(BankTest, AdoptsTheMemoryOfAnother) {
  const auto bank = Bank::make("strait test memory", 4 * kMega);
  const auto block = bank->take(kMega).value();
  std::memcpy(block->bytes(), "hello", 5);
  const auto seen = Bank::adopt(block->open_file().value()).value();
  EXPECT_EQ(std::memcmp(seen->bytes(), "hello", 5), 0);
  EXPECT_EQ(bank->free_bytes(), 3 * kMega);
  EXPECT_FALSE(Bank::adopt(sys::Fd{}));
}

TEST(WindowTest, StandsForPartsOfSeveralBlocksAndKeepsThem) {
  const auto bank = Bank::make("strait test memory", 4 * kMega);
  auto a = bank->take(kMega).value();
  auto b = bank->take(kMega).value();
  const std::array pieces{WindowPiece{a->file(), kMega - 4096, 4096}, WindowPiece{b->file(), 0, 8192}};
  auto mine = std::make_shared<sys::Fd>(make_window(pieces).value());
  a->hold_while_open(mine);
  b->hold_while_open(mine);
  sys::Fd given = hand_out(*mine);
  EXPECT_EQ(sys::file_bytes(given.get()), 4096 + 8192);
  EXPECT_FALSE(sys::map_file(given.get(), 0, 4096, sys::Protect::read_write)) << "it has no bytes of its own";

  {
    const auto opened = open_window(given.get()).value();
    ASSERT_TRUE(opened);
    ASSERT_EQ(opened->size(), 2u);
    EXPECT_EQ(sys::file_id((*opened)[0].file.get()), sys::file_id(a->file()));
    EXPECT_EQ((*opened)[0].offset, kMega - 4096);
    EXPECT_EQ((*opened)[1].length_bytes, 8192u);
    EXPECT_FALSE(open_window(a->file()).value()) << "an ordinary file is no window";

    mine.reset();
    a.reset();
    EXPECT_EQ(bank->free_bytes(), 2 * kMega) << "the window is open";
    given.reset();
    EXPECT_EQ(bank->free_bytes(), 2 * kMega) << "who opened its pieces holds them";
  }
  EXPECT_EQ(bank->free_bytes(), 3 * kMega);
}

TEST(WindowTest, IsClosedLikeAnyDescriptor) {
  const auto bank = Bank::make("strait test memory", 4 * kMega);
  auto a = bank->take(kMega).value();
  auto mine = std::make_shared<sys::Fd>(make_window(std::array{WindowPiece{a->file(), 4096, 4096}}).value());
  a->hold_while_open(mine);
  sys::Fd given = hand_out(*mine);
  a.reset();
  EXPECT_EQ(bank->free_bytes(), 3 * kMega);
  given.reset();
  EXPECT_EQ(bank->free_bytes(), 4 * kMega);
}

TEST(WindowTest, RefusesWhatItCannotMake) {
  const auto bank = Bank::make("strait test memory", kMega);
  const auto a = bank->take(kMega).value();
  EXPECT_FALSE(make_window({}));
  EXPECT_FALSE(make_window(std::array{WindowPiece{-1, 0, 4096}}));
  EXPECT_FALSE(make_window(std::array{WindowPiece{a->file(), 0, 100}}));
  EXPECT_FALSE(make_window(std::vector<WindowPiece>(kMostPieces + 1, WindowPiece{a->file(), 0, 4096})));
  const sys::Fd past = make_window(std::array{WindowPiece{a->file(), kMega, 4096}}).value();
  EXPECT_FALSE(open_window(past.get())) << "past the end of the memory";
  const sys::Fd fake = sys::make_sealed_memfd("strait dma-buf", 8192).value();
  EXPECT_FALSE(open_window(fake.get())) << "a name alone says nothing";
}

}  // namespace
}  // namespace strait::soft::accel
