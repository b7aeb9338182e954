// SPDX-License-Identifier: Apache-2.0
// iCRC against published packets and a second implementation, on every path the CPU has, at every length and alignment.
#include "soft/roce/icrc.hpp"

#include <gtest/gtest.h>

#include <random>

#include "soft/roce/crc32_math.hpp"
#include "soft/roce/testing.hpp"

namespace strait::soft::roce {
namespace {

using testing::bth_of;
using testing::Bytes;
using testing::flow_of;
using testing::from_hex;
using testing::kGoldenPackets;
using testing::slow_crc32;
using testing::slow_icrc;

constexpr CrcPath kPaths[] = {CrcPath::table, CrcPath::instruction, CrcPath::wide};

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

// As a sender's IP layer would put it on the wire.
Bytes with_ip(const Flow& flow, std::uint16_t id, std::span<const std::byte> bth_to_pad) {
  Bytes out;
  const auto put = [&](std::initializer_list<unsigned> bytes) {
    for (const unsigned byte : bytes) out.push_back(static_cast<std::byte>(byte));
  };
  const auto n = static_cast<unsigned>(bth_to_pad.size() + 12);  // UDP header and iCRC
  if (flow.source.is_v4()) {
    put({0x45, 2, (n + 20) >> 8, (n + 20) & 0xff, id / 256U, id % 256U, 0x40, 0, 63, 17, 0xab, 0xcd});
    for (std::size_t i = 12; i < 16; ++i) put({flow.source.gid[i]});
    for (std::size_t i = 12; i < 16; ++i) put({flow.destination.gid[i]});
  } else {
    put({0x61, 0x23, 0x45, 0x67, n >> 8, n & 0xff, 17, 63});
    for (const unsigned byte : flow.source.gid) put({byte});
    for (const unsigned byte : flow.destination.gid) put({byte});
  }
  put({flow.source_port / 256U, flow.source_port % 256U, 4791 / 256, 4791 % 256, n >> 8, n & 0xff, 0x12, 0x34});
  out.insert(out.end(), bth_to_pad.begin(), bth_to_pad.end());
  return out;
}

const Flow kV4{IpAddress::v4(10, 1, 2, 3), IpAddress::v4(192, 168, 7, 9), 0xc123};
const Flow kV6{IpAddress::parse("fd00::1:2").value(), IpAddress::parse("2001:db8::77").value(), 4791};

TEST(Crc32, BestPathIsOneThatWorks) {
  EXPECT_TRUE(crc_path_works(CrcPath::table));
  EXPECT_TRUE(crc_path_works(best_crc_path()));
#if defined(__x86_64__)
  // Folding is the point of the exercise; every x86-64 that runs these tests has had it since 2010.
  EXPECT_TRUE(crc_path_works(CrcPath::instruction));
#endif
}

TEST(Crc32, CheckValue) {
  const Bytes digits = from_hex("313233343536373839");
  EXPECT_EQ(slow_crc32(digits), 0xcbf43926U);
  EXPECT_EQ(~crc32_update(0xffffffff, digits), 0xcbf43926U);
  EXPECT_EQ(crc32_update(0xffffffff, from_hex("ffffffffffffffff")), 0xdebb20e3U);
}

TEST(Crc32, AgreesWithTheSecondImplementationAtEveryLengthAndAlignment) {
  for (const CrcPath path : kPaths) {
    if (!crc_path_works(path)) continue;
    SCOPED_TRACE(crc_path_name(path));
    const Bytes memory = random_bytes(400, 1);
    for (std::size_t length = 0; length <= 300; ++length) {
      for (const unsigned from :
           {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U, 31U, 33U, 63U}) {
        const auto bytes = std::span(memory).subspan(from, length);
        ASSERT_EQ(~crc32_update(0xffffffff, bytes, path), slow_crc32(bytes)) << length << " bytes from " << from;
      }
    }
    for (const std::size_t length : {447U, 448U, 511U, 512U, 513U, 767U, 1023U, 1024U, 4096U, 9000U, 65507U}) {
      const Bytes bytes = random_bytes(length, static_cast<unsigned>(length));
      ASSERT_EQ(~crc32_update(0xffffffff, bytes, path), slow_crc32(bytes)) << length;
    }
  }
}

TEST(Crc32, ContinuesAnywhere) {
  const Bytes bytes = random_bytes(300, 2);
  const std::uint32_t whole = slow_crc32(bytes);
  for (const CrcPath path : kPaths) {
    if (!crc_path_works(path)) continue;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      const std::uint32_t first = crc32_update(0xffffffff, std::span(bytes).first(cut), path);
      ASSERT_EQ(~crc32_update(first, std::span(bytes).subspan(cut), path), whole) << crc_path_name(path) << cut;
    }
  }
}

TEST(Crc32, HeadAndBodyIsOneMessage) {
  const Bytes head = random_bytes(kCrcHeadBytes, 3);
  const Bytes body = random_bytes(1200, 4);
  for (const CrcPath path : kPaths) {
    if (!crc_path_works(path)) continue;
    for (std::size_t length = 0; length <= body.size(); length += length < 300 ? 1 : 37) {
      const auto part = std::span(body).first(length);
      ASSERT_EQ(crc32_head_and_body(head.data(), part, path),
                crc32_update(crc32_update(0, head, CrcPath::table), part, CrcPath::table))
          << crc_path_name(path) << length;
    }
  }
}

TEST(CrcMath, PowersAndInverses) {
  EXPECT_EQ(crc_math::times(crc_math::power_of_x(77), crc_math::power_of_x(crc_math::kOrder - 77)), crc_math::kOne);
  EXPECT_EQ(crc_math::times(0x12345678, 0x9abcdef0), crc_math::times(0x9abcdef0, 0x12345678));
}

TEST(Icrc, OfPublishedPackets) {
  for (const auto& golden : kGoldenPackets) {
    SCOPED_TRACE(golden.name);
    const Bytes ip = from_hex(golden.hex);
    const auto bytes = bth_of(ip);
    const Flow flow = flow_of(ip);
    const Bytes without(ip.begin(), ip.end() - 4);
    const std::uint32_t stored = std::to_integer<std::uint32_t>(ip[ip.size() - 4]) |
                                 std::to_integer<std::uint32_t>(ip[ip.size() - 3]) << 8 |
                                 std::to_integer<std::uint32_t>(ip[ip.size() - 2]) << 16 |
                                 std::to_integer<std::uint32_t>(ip[ip.size() - 1]) << 24;
    EXPECT_EQ(slow_icrc(without), stored) << "the second implementation";
    for (const CrcPath path : kPaths) {
      if (!crc_path_works(path)) continue;
      EXPECT_EQ(icrc(flow, golden.ip_id, bytes.first(bytes.size() - 4), path), stored) << crc_path_name(path);
    }
    EXPECT_TRUE(check_with_id(flow, golden.ip_id, bytes));
    EXPECT_TRUE(check(flow, bytes, true));
    EXPECT_EQ(check(flow, bytes, false), golden.ip_id == 0);
    EXPECT_FALSE(check_with_id(flow, static_cast<std::uint16_t>(golden.ip_id ^ 0x100), bytes) &&
                 flow.destination.is_v4());
  }
}

TEST(Icrc, AgreesWithTheSecondImplementationAtEveryLengthAndAlignment) {
  const Bytes memory = random_bytes(400, 5);
  for (const Flow& flow : {kV4, kV6}) {
    for (std::size_t length = 12; length <= 300; ++length) {
      for (std::size_t from = 0; from < 16; from += 3) {
        const auto bytes = std::span(memory).subspan(from, length);
        const auto id = static_cast<std::uint16_t>(length * 977);
        const std::uint32_t expected = slow_icrc(with_ip(flow, id, bytes));
        for (const CrcPath path : kPaths) {
          if (!crc_path_works(path)) continue;
          ASSERT_EQ(icrc(flow, id, bytes, path), expected) << length << " from " << from << crc_path_name(path);
        }
      }
    }
  }
}

TEST(Icrc, SealedIsRightAndEveryFlippedBitWrong) {
  for (const Flow& flow : {kV4, kV6}) {
    Bytes packet = random_bytes(12 + 16 + 40 + 4, 6);
    seal(flow, packet);
    ASSERT_TRUE(check(flow, packet, false));
    ASSERT_TRUE(check(flow, packet, true));
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      packet[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      ASSERT_EQ(check(flow, packet, false), bit / 8 == 4) << bit;  // only the congestion byte may change
      ASSERT_EQ(check(flow, packet, true), bit / 8 == 4) << bit;
      packet[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  }
}

TEST(Icrc, CoversTheFlow) {
  Bytes packet = random_bytes(64, 7);
  seal(kV4, packet);
  Flow other = kV4;
  other.source_port ^= 1;
  EXPECT_FALSE(check(other, packet, true));
  other = kV4;
  other.source.gid[15] ^= 1;
  EXPECT_FALSE(check(other, packet, true));
  other = kV4;
  other.destination.gid[12] ^= 1;
  EXPECT_FALSE(check(other, packet, true));
  for (std::size_t n = 0; n < 16; ++n) EXPECT_FALSE(check(kV4, std::span(packet).first(n), true));
}

// Every identification is accepted at any length, and nearly nothing else is.
TEST(Icrc, UnknownIdentificationLeavesACheckOfSixteenBits) {
  for (const std::size_t length : {16U, 20U, 60U, 1072U, 4168U}) {
    Bytes packet = random_bytes(length, static_cast<unsigned>(length));
    const auto body = std::span<const std::byte>(packet).first(length - 4);
    for (unsigned id = 0; id < 65536; id += length < 100 ? 1 : 251) {
      const std::uint32_t value = icrc(kV4, static_cast<std::uint16_t>(id), body);
      for (unsigned i = 0; i < 4; ++i) packet[length - 4 + i] = static_cast<std::byte>(value >> 8 * i);
      ASSERT_TRUE(check(kV4, packet, true)) << id;
      ASSERT_EQ(check(kV4, packet, false), id == 0) << id;
    }
    std::mt19937 random(9);
    int passed = 0;
    for (int i = 0; i < 20000; ++i) {
      const auto value = static_cast<std::uint32_t>(random());
      for (unsigned k = 0; k < 4; ++k) packet[length - 4 + k] = static_cast<std::byte>(value >> 8 * k);
      passed += check(kV4, packet, true) ? 1 : 0;
    }
    EXPECT_LE(passed, 5) << "0.3 expected of 20000 at random";
  }
}

TEST(Icrc, Ipv6HasNoIdentificationToExplainAnything) {
  Bytes packet = random_bytes(64, 11);
  const auto body = std::span<const std::byte>(packet).first(60);
  const std::uint32_t value = icrc(kV6, 0, body) ^ icrc(kV4, 0, body) ^ icrc(kV4, 77, body);
  for (unsigned i = 0; i < 4; ++i) packet[60 + i] = static_cast<std::byte>(value >> 8 * i);
  EXPECT_FALSE(check(kV6, packet, true));
}

}  // namespace
}  // namespace strait::soft::roce
