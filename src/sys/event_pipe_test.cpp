// SPDX-License-Identifier: Apache-2.0
#include "sys/event_pipe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

namespace strait::sys {
namespace {

std::span<const std::byte> bytes_of(const std::uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::uint64_t value_of(std::span<const std::byte> event) {
  std::uint64_t value = 0;
  std::memcpy(&value, event.data(), sizeof value);
  return value;
}

TEST(EventPipe, EachReadGivesOneEvent) {
  auto made = EventPipe::make();
  ASSERT_TRUE(made);
  for (const std::uint64_t value : {7u, 8u}) made->pipe.send(bytes_of(value));
  std::uint64_t read_back[4] = {};
  EXPECT_EQ(::read(made->reader.get(), read_back, sizeof read_back), 8);
  EXPECT_EQ(read_back[0], 7u);
  EXPECT_EQ(::read(made->reader.get(), read_back, sizeof read_back), 8);
  EXPECT_EQ(read_back[0], 8u);
}

TEST(EventPipe, MoreThanTheSocketHoldsWaitsAndStaysInOrder) {
  auto made = EventPipe::make();
  ASSERT_TRUE(made);
  constexpr std::uint64_t kMany = 5000;
  for (std::uint64_t i = 0; i < kMany; ++i) made->pipe.send(bytes_of(i));
  for (std::uint64_t i = 0; i < kMany; ++i) {
    std::uint64_t value = 0;
    made->pipe.flush();
    ASSERT_EQ(::read(made->reader.get(), &value, sizeof value), 8);
    ASSERT_EQ(value, i);
  }
}

TEST(EventPipe, TakesBackWhatNobodyRead) {
  auto made = EventPipe::make();
  ASSERT_TRUE(made);
  for (const std::uint64_t value : {1u, 2u, 1u, 3u}) made->pipe.send(bytes_of(value));
  EXPECT_EQ(made->pipe.take_back([](auto event) { return value_of(event) == 1; }), 2u);
  std::uint64_t value = 0;
  EXPECT_EQ(::read(made->reader.get(), &value, sizeof value), 8);
  EXPECT_EQ(value, 2u);
  EXPECT_EQ(::read(made->reader.get(), &value, sizeof value), 8);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(made->pipe.take_back([](auto) { return true; }), 0u);
}

TEST(EventPipe, KnowsItsReader) {
  auto made = EventPipe::make();
  auto other = EventPipe::make();
  ASSERT_TRUE(made && other);
  EXPECT_TRUE(made->pipe.is_reader(made->reader.get()));
  EXPECT_FALSE(made->pipe.is_reader(other->reader.get()));
  EXPECT_FALSE(made->pipe.is_reader(-1));
  EXPECT_FALSE(made->pipe.is_reader(0x7fffffff));
  EXPECT_FALSE(made->pipe.abandoned());
  made->reader.reset();
  EXPECT_TRUE(made->pipe.abandoned());
  std::uint64_t value = 1;
  made->pipe.send(bytes_of(value));  // to nobody: no signal, no error
}

}  // namespace
}  // namespace strait::sys
