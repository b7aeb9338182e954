// SPDX-License-Identifier: Apache-2.0
// Text for people: width, units.
#include "tool/text.hpp"

#include <gtest/gtest.h>

namespace strait::tool {
namespace {

TEST(Wrap, BreaksAtBlanksAndHangs) {
  EXPECT_EQ(wrap("one two three", 0, 2, 8), "one two\n  three\n");
  EXPECT_EQ(wrap("", 0, 2), "\n");
  EXPECT_EQ(wrap("a\nb", 1, 3), " a\n   b\n");
}

TEST(Wrap, KeepsAWordThatFitsNowhere) {
  EXPECT_EQ(wrap("ab abcdefghijkl c", 0, 0, 5), "ab\nabcdefghijkl\nc\n");
}

TEST(Wrap, BreaksAListThatFitsNowhereBehindItsCommas) {
  EXPECT_EQ(wrap("a bb,cc,dd,ee f", 0, 2, 8), "a bb,cc,\n  dd,ee\n  f\n");
  EXPECT_EQ(wrap("bb,cc,dd,ee", 0, 0, 6), "bb,cc,\ndd,ee\n");
  EXPECT_EQ(wrap("a bb,cc", 0, 2, 8), "a bb,cc\n") << "one that fits stays whole";
}

TEST(Wrap, NeverPassesTheLastColumn) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += std::string(static_cast<std::size_t>(i % 17 + 1), 'x') + " ";
  const std::string text = wrap(words, 4, 6);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    EXPECT_LE(end - start, kColumns);
    start = end + 1;
  }
}

TEST(Units, Sizes) {
  EXPECT_EQ(size_text(8), "8 B");
  EXPECT_EQ(size_text(1000), "1000 B");
  EXPECT_EQ(size_text(64 << 10), "64 KiB");
  EXPECT_EQ(size_text(std::uint64_t{16} << 20), "16 MiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 40), "3 TiB");
  EXPECT_EQ(size_text(300'001), "293.0 KiB");
  EXPECT_EQ(size_text(std::uint64_t{146'591'680} << 10), "139.8 GiB");
}

TEST(Units, TimesAndRates) {
  EXPECT_EQ(time_text(84e-9), "84 ns");
  EXPECT_EQ(time_text(0.31e-6), "0.31 us");
  EXPECT_EQ(time_text(12.5e-3), "12.5 ms");
  EXPECT_EQ(time_text(3.9), "3.9 s");
  EXPECT_EQ(rate_text(13.2e9), "13.2 GB/s");
  EXPECT_EQ(rate_text(2.5e6), "2.5 MB/s");
  EXPECT_EQ(address_text(0x7e0000000000), "0x7e00_0000_0000");
  EXPECT_EQ(address_text(0x12), "0x12");
}

}  // namespace
}  // namespace strait::tool
