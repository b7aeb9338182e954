// SPDX-License-Identifier: Apache-2.0
// Copies past the cache: every byte, none beside, whatever the alignment.
#include "sys/copy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace strait::sys {
namespace {

std::byte byte_at(std::size_t i) {
  return static_cast<std::byte>(i * 31 + i / 251);
}

void check(std::size_t to_skip, std::size_t from_skip, std::size_t length) {
  SCOPED_TRACE(testing::Message() << length << " bytes from offset " << from_skip << " to " << to_skip);
  constexpr std::byte kUntouched{0xee};
  std::vector<std::byte> from(from_skip + length);
  for (std::size_t i = 0; i < length; ++i) from[from_skip + i] = byte_at(i);
  std::vector<std::byte> to(to_skip + length + 64, kUntouched);
  copy_past_cache(to.data() + to_skip, from.data() + from_skip, length);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool inside = i >= to_skip && i - to_skip < length;
    if (to[i] != (inside ? byte_at(i - to_skip) : kUntouched)) ++wrong;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(CopyPastCache, CopiesEveryByteAndNoOther) {
  for (const std::size_t to_skip : {0u, 1u, 15u, 16u, 63u}) {
    for (const std::size_t from_skip : {0u, 1u, 8u, 63u}) {
      for (const std::size_t length : {1u, 63u, 64u, 65u, 127u, 128u, 4096u, 100'003u})
        check(to_skip, from_skip, length);
    }
  }
}

// Long enough for both ways to have had their turn.
TEST(CopyBytes, GoesEitherWay) {
  for (const std::size_t length : {std::size_t{8}, kLargeCopyBytes - 1, kLargeCopyBytes + 3, 5 * kLargeCopyBytes}) {
    std::vector<std::byte> from(length);
    for (std::size_t i = 0; i < length; ++i) from[i] = byte_at(i);
    std::vector<std::byte> to(length);
    copy_bytes(to.data(), from.data(), length);
    EXPECT_TRUE(to == from) << length;
  }
}

// Stores past the cache may overtake others unless somebody sees to it.
TEST(CopyPastCache, IsSeenBeforeWhatIsStoredAfterIt) {
  constexpr std::size_t kLength = 1 << 16;
  std::vector<std::byte> from(kLength), to(kLength);
  std::atomic<int> round{0};
  std::atomic<int> seen{0};
  std::size_t early = 0;
  std::thread reader([&] {
    for (int i = 1; i <= 200; ++i) {
      while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
      if (to[0] != std::byte(i) || to[kLength - 1] != std::byte(i)) ++early;
      seen.store(i, std::memory_order_release);
    }
  });
  for (int i = 1; i <= 200; ++i) {
    std::memset(from.data(), i, kLength);
    copy_past_cache(to.data(), from.data(), kLength);
    round.store(i, std::memory_order_release);
    while (seen.load(std::memory_order_acquire) != i) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(early, 0u);
}

}  // namespace
}  // namespace strait::sys
