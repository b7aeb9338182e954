// SPDX-License-Identifier: Apache-2.0
// The pattern finds every kind of wrong byte.
#include "tool/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace strait::tool {
namespace {

TEST(Pattern, FindsAnySingleWrongByte) {
  for (const std::size_t length : {1u, 7u, 8u, 9u, 4096u, 4099u}) {
    std::vector<std::byte> bytes(length);
    fill_pattern(bytes, 7);
    EXPECT_FALSE(find_mismatch(bytes, 7));
    for (std::size_t at = 0; at < length; at += std::max<std::size_t>(1, length / 13)) {
      bytes[at] ^= std::byte{0x40};
      const auto wrong = find_mismatch(bytes, 7);
      ASSERT_TRUE(wrong) << "byte " << at << " of " << length;
      EXPECT_EQ(wrong->offset, at);
      EXPECT_EQ(wrong->expected, wrong->found ^ std::byte{0x40});
      bytes[at] ^= std::byte{0x40};
    }
  }
}

TEST(Pattern, OtherSeedsShiftsAndZeroesAreWrong) {
  std::vector<std::byte> bytes(1 << 16);
  fill_pattern(bytes, 7);
  EXPECT_TRUE(find_mismatch(bytes, 8));
  std::vector<std::byte> zeroes(64);
  EXPECT_TRUE(find_mismatch(zeroes, 7));
  EXPECT_TRUE(find_mismatch(zeroes, 0)) << "seed 0 must not be all zeroes beyond its first word";
  std::rotate(bytes.begin(), bytes.begin() + 4096, bytes.end());  // pages that changed places
  EXPECT_EQ(find_mismatch(bytes, 7)->offset, 0u);
}

TEST(Pattern, SaysWhatItFound) {
  EXPECT_EQ((Mismatch{4096, std::byte{0x5a}, std::byte{0}}).text(), "byte 4096 is 0x00 instead of 0x5a");
}

}  // namespace
}  // namespace strait::tool
