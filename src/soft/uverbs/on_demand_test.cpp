// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/on_demand.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

class OnDemandMemory : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kName = 0x1000;  // what requests call the first byte
  void unmap() { mapping_.reset(); }
  [[nodiscard]] std::uint64_t there() const { return reinterpret_cast<std::uintptr_t>(mapping_.data()); }

  sys::Mapping mapping_ = sys::map_anonymous(sys::page_bytes(), sys::Protect::read_write).value();
  OwnMemory memory_;
  OnDemand on_demand_{memory_, there() - kName};
  const strait_memory_port& port_ = *on_demand_.port();
};

TEST_F(OnDemandMemory, IsReachedWhileItIsThere) {
  EXPECT_EQ(port_.write(port_.context, kName + 8, "abcd", 4), 0);
  EXPECT_EQ(std::memcmp(mapping_.data() + 8, "abcd", 4), 0);
  char back[4];
  EXPECT_EQ(port_.read(port_.context, kName + 8, back, 4), 0);
  EXPECT_EQ(std::memcmp(back, "abcd", 4), 0);
  EXPECT_NE(port_.read(port_.context, 0, back, 4), 0);
  unmap();
  EXPECT_NE(port_.read(port_.context, kName + 8, back, 4), 0);
  EXPECT_NE(port_.write(port_.context, kName + 8, "abcd", 4), 0);
}

TEST_F(OnDemandMemory, HasAtomicsWhileItIsThere) {
  auto* const word = reinterpret_cast<std::uint64_t*>(mapping_.data());
  *word = 40;
  std::uint64_t old = 0;
  EXPECT_EQ(port_.fetch_add(port_.context, kName, 8, 2, 0, &old), 0);
  EXPECT_EQ(old, 40u);
  EXPECT_EQ(*word, 42u);
  EXPECT_EQ(port_.compare_swap(port_.context, kName, 8, 41, ~0ull, 7, ~0ull, &old), 0);
  EXPECT_EQ(old, 42u);
  EXPECT_EQ(*word, 42u);
  EXPECT_EQ(port_.compare_swap(port_.context, kName, 8, 42, ~0ull, 7, ~0ull, &old), 0);
  EXPECT_EQ(*word, 7u);
  EXPECT_EQ(port_.fetch_add(port_.context, kName + 4, 4, 0xffffffff, 0, &old), 0);
  EXPECT_EQ(*word, 0xffffffff00000007u);
  EXPECT_NE(port_.fetch_add(port_.context, kName + 1, 8, 1, 0, &old), 0) << "unaligned";
  unmap();
  EXPECT_NE(port_.fetch_add(port_.context, kName, 8, 1, 0, &old), 0);
  EXPECT_NE(port_.compare_swap(port_.context, kName, 8, 42, ~0ull, 7, ~0ull, &old), 0);
}

}  // namespace
}  // namespace strait::soft::uverbs
