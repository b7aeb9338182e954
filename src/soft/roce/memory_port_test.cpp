// SPDX-License-Identifier: Apache-2.0
// The wire in memory carries sealed packets, in order, and lets a test interfere.
#include "soft/roce/memory_port.hpp"

#include <gtest/gtest.h>

#include "soft/roce/icrc.hpp"
#include "soft/roce/port_testing.hpp"

namespace strait::soft::roce {
namespace {

using testing::Collector;
using testing::send_one;

const IpAddress kA = IpAddress::v4(10, 0, 0, 1);
const IpAddress kB = IpAddress::v4(10, 0, 0, 2);

TEST(MemoryPort, CarriesSealedPacketsInOrder) {
  const auto [a, b] = MemoryPort::make_pair(kA, kB);
  for (std::uint32_t psn = 0; psn < 10; ++psn) ASSERT_TRUE(send_one(*a, kB, 7, psn, 3 * psn));
  Collector got;
  EXPECT_EQ(b->receive(got, 100), 0) << "nothing leaves before flush()";
  ASSERT_TRUE(a->flush());
  EXPECT_EQ(b->receive(got, 4), 4);
  EXPECT_EQ(b->receive(got, 100), 6);
  ASSERT_EQ(got.packets.size(), 10U);
  for (std::uint32_t psn = 0; psn < 10; ++psn) {
    EXPECT_TRUE(got.packets[psn].icrc_right);
    EXPECT_EQ(got.packets[psn].psn, psn);
    EXPECT_EQ(got.packets[psn].flow, (Flow{kA, kB, testing::kSourcePort}));
  }
  EXPECT_EQ(a->counters().sent, 10U);
  EXPECT_EQ(b->counters().received, 10U);
}

TEST(MemoryPort, RefusesWhatDoesNotFit) {
  const auto [a, b] = MemoryPort::make_pair(kA, kB, {.mtu_bytes = 100, .queue_packets = 2});
  EXPECT_EQ(a->begin(kB, 1, 101), nullptr);
  ASSERT_TRUE(send_one(*a, kB, 7, 0, 0));
  ASSERT_TRUE(send_one(*a, kB, 7, 1, 0));
  EXPECT_EQ(a->begin(kB, 1, 16), nullptr);
  ASSERT_TRUE(a->flush());
  EXPECT_EQ(a->begin(kB, 1, 16), nullptr) << "nobody has received them yet";
  Collector got;
  EXPECT_EQ(b->receive(got, 10), 2);
  EXPECT_NE(a->begin(kB, 1, 16), nullptr);
}

TEST(MemoryPort, LetsATestInterfere) {
  const auto [a, b] = MemoryPort::make_pair(kA, kB);
  ASSERT_TRUE(send_one(*a, kB, 7, 0, 8));
  ASSERT_TRUE(send_one(*a, kB, 7, 1, 8));
  ASSERT_TRUE(a->flush());
  auto& frames = a->on_the_way();
  ASSERT_EQ(frames.size(), 2U);
  std::swap(frames[0], frames[1]);
  frames[1].bytes[20] ^= std::byte{1};
  b->inject(frames[0]);
  Collector got;
  EXPECT_EQ(b->receive(got, 10), 3);
  EXPECT_EQ(got.packets[0].psn, 1U);
  EXPECT_FALSE(got.packets[1].icrc_right);
  EXPECT_TRUE(got.packets[2].icrc_right);
}

}  // namespace
}  // namespace strait::soft::roce
