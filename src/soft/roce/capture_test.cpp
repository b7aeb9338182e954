// SPDX-License-Identifier: Apache-2.0
// Capture files, read back by a reader that knows only the format. (tests/interop has tshark read them.)
#include "soft/roce/capture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "soft/roce/icrc.hpp"
#include "soft/roce/ip_udp.hpp"
#include "soft/roce/testing.hpp"

namespace strait::soft::roce {
namespace {

using testing::bth_of;
using testing::Bytes;
using testing::flow_of;
using testing::from_hex;
using testing::kGoldenPackets;

std::string path_of(const char* name) {
  return ::testing::TempDir() + "strait-capture-" + name + "-" + std::to_string(::getpid()) + ".pcapng";
}

struct Block {
  std::uint32_t type;
  Bytes body;  // between the two lengths
};

// Whole blocks only; anything else fails the test.
std::vector<Block> read_blocks(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(all[at + i])} << 8 * i;
    return value;
  };
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < all.size();) {
    if (all.size() - at < 12) {
      ADD_FAILURE() << "a piece of a block at " << at;
      break;
    }
    const std::uint32_t length = u32(at + 4);
    if (length % 4 != 0 || length < 12 || length > all.size() - at || u32(at + length - 4) != length) {
      ADD_FAILURE() << "bad block length " << length << " at " << at;
      break;
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
    blocks.push_back({u32(at), Bytes(bytes + at + 8, bytes + at + length - 4)});
    at += length;
  }
  return blocks;
}

TEST(IpUdp, MakesTheHeadersOfPublishedPackets) {
  for (const auto& golden : kGoldenPackets) {
    const Bytes ip = from_hex(golden.hex);
    const bool v4 = (ip[0] >> 4) == std::byte{4};
    const Flow flow = flow_of(ip);
    IpOptions options;
    options.traffic_class = v4 ? std::to_integer<std::uint8_t>(ip[1]) : std::uint8_t{0};
    options.ip_id = golden.ip_id;
    Bytes made(ip_udp_bytes(flow));
    ASSERT_EQ(write_ip_udp(flow, bth_of(ip), options, made.data()), made.size());
    // All of IP; of UDP all but the checksum, which is ours to choose.
    EXPECT_TRUE(std::equal(made.begin(), made.end() - 2, ip.begin())) << golden.name;
    made.insert(made.end(), bth_of(ip).begin(), bth_of(ip).end());
    IpUdp read;
    ASSERT_TRUE(parse_ip_udp(made, read)) << golden.name;
    EXPECT_EQ(read.flow, flow);
    EXPECT_EQ(read.ip_id, golden.ip_id);
    EXPECT_TRUE(check_with_id(read.flow, read.ip_id, read.bytes));
  }
  IpUdp read;
  EXPECT_TRUE(parse_ip_udp(from_hex(kGoldenPackets[1].hex), read)) << "IPv6 without a checksum";
  Bytes summed = from_hex(kGoldenPackets[3].hex);
  EXPECT_TRUE(parse_ip_udp(summed, read)) << "a published UDP checksum";
  summed[26] ^= std::byte{1};
  EXPECT_FALSE(parse_ip_udp(summed, read));
}

TEST(IpUdp, RefusesWhatIsNoWholeDatagramForThePort) {
  for (const char* address : {"10.0.0.1", "fd00::1"}) {
    Flow flow;
    flow.source = flow.destination = IpAddress::parse(address).value();
    flow.source_port = 1;
    const Bytes body(21, std::byte{0x5a});
    Bytes good(ip_udp_bytes(flow));
    write_ip_udp(flow, body, {}, good.data());
    good.insert(good.end(), body.begin(), body.end());
    IpUdp read;
    ASSERT_TRUE(parse_ip_udp(good, read));
    for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse_ip_udp(std::span(good).first(n), read)) << n;
    Bytes longer = good;
    longer.resize(longer.size() + 9);
    ASSERT_TRUE(parse_ip_udp(longer, read)) << "padding of the link";
    EXPECT_EQ(read.bytes.size(), body.size());
    const std::size_t udp = good.size() - body.size() - 8;
    for (const std::size_t at : {std::size_t{0}, udp + 2, udp + 4, std::size_t{flow.source.is_v4() ? 9U : 6U}}) {
      Bytes bad = good;
      bad[at] ^= std::byte{0x81};
      EXPECT_FALSE(parse_ip_udp(bad, read)) << at;
    }
  }
}

TEST(Capture, HoldsWholeBlocksWithCommentsAndTimes) {
  const std::string path = path_of("blocks");
  const Bytes ip = from_hex(kGoldenPackets[0].hex);
  {
    Capture capture = Capture::open(path).value();
    ASSERT_EQ(read_blocks(path).size(), 2U) << "readable before the first packet";
    ASSERT_TRUE(capture.write(flow_of(ip), 0x123456789abcdef0, bth_of(ip), "qp 0x11 wqe 7", true));
    ASSERT_TRUE(capture.write(flow_of(ip), 5, bth_of(ip), "", false));
    ASSERT_TRUE(capture.flush());
    EXPECT_EQ(read_blocks(path).size(), 4U);
    ASSERT_TRUE(capture.write(flow_of(ip), 6, bth_of(ip), "at the end", false));
    EXPECT_EQ(capture.packets(), 3U);
  }
  const auto blocks = read_blocks(path);
  ASSERT_EQ(blocks.size(), 5U);
  EXPECT_EQ(blocks[0].type, 0x0a0d0d0aU);
  EXPECT_EQ(blocks[1].type, 1U);
  EXPECT_EQ(blocks[1].body[0], std::byte{101});
  const Bytes& packet = blocks[2].body;
  EXPECT_EQ(blocks[2].type, 6U);
  EXPECT_EQ(Bytes(packet.begin() + 4, packet.begin() + 12), from_hex("78563412f0debc9a"));
  EXPECT_EQ(packet[12], static_cast<std::byte>(ip.size()));
  EXPECT_EQ(Bytes(packet.begin() + 20, packet.begin() + 20 + static_cast<std::ptrdiff_t>(ip.size())), ip);
  const std::string text(reinterpret_cast<const char*>(packet.data()), packet.size());
  EXPECT_NE(text.find("qp 0x11 wqe 7"), std::string::npos);
  (void)::unlink(path.c_str());
}

TEST(Capture, SaysWhenItCannotWrite) {
  EXPECT_FALSE(Capture::open("/no/such/folder/x.pcapng"));
  const auto full = Capture::open("/dev/full");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().sys_errno, ENOSPC);
}

}  // namespace
}  // namespace strait::soft::roce
