// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: bytes from hex, published packets, and a CRC written in another way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "soft/roce/address.hpp"

namespace strait::soft::roce::testing {

using Bytes = std::vector<std::byte>;

// Blanks are skipped.
inline Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    out.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
    i += 2;
  }
  return out;
}

// The definition of a CRC, bit by bit and not reflected: bits enter least significant first, the register moves left,
// and the result is mirrored. Shares no line with the product's code.
inline std::uint32_t slow_crc32(std::span<const std::byte> bytes) {
  std::uint32_t reg = 0xffffffff;
  for (const std::byte byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool in = (std::to_integer<unsigned>(byte) >> bit & 1) != 0;
      const bool out = (reg & 0x80000000u) != 0;
      reg <<= 1;
      if (in != out) reg ^= 0x04c11db7;
    }
  }
  std::uint32_t mirrored = 0;
  for (unsigned bit = 0; bit < 32; ++bit) mirrored |= (reg >> bit & 1) << (31 - bit);
  return ~mirrored;
}

// The iCRC of a whole packet as it is on the wire, IP header to pad, by masking its bytes where they lie.
inline std::uint32_t slow_icrc(Bytes ip_to_pad) {
  const auto ones = [&](std::size_t at) { ip_to_pad[at] = std::byte{0xff}; };
  const bool v4 = (ip_to_pad[0] >> 4) == std::byte{4};
  if (v4) {
    for (const std::size_t at : {1U, 8U, 10U, 11U}) ones(at);
  } else {
    ip_to_pad[0] |= std::byte{0x0f};
    for (const std::size_t at : {1U, 2U, 3U, 7U}) ones(at);
  }
  const std::size_t udp = v4 ? 20 : 40;
  for (const std::size_t at : {udp + 6, udp + 7, udp + 8 + 4}) ones(at);
  ip_to_pad.insert(ip_to_pad.begin(), 8, std::byte{0xff});
  return slow_crc32(ip_to_pad);
}

// Packets from the IP header to the iCRC, as others computed or captured them.
struct GoldenPacket {
  const char* name;
  const char* hex;
  std::uint16_t ip_id;
};
inline constexpr GoldenPacket kGoldenPackets[] = {
    {"WRITE only of 3 bytes over IPv4",
     "4500004000004000401126ab0a0000010a000002 c0de12b7002c0000 0a50ffff0000001180000003 "
     "00000000000010000000123400000003 78797a00 fdd958cf",
     0},
    {"the same over IPv6",
     "60000000002c1140fe800000000000000000000000000001fe800000000000000000000000000002 c0de12b7002c0000 "
     "0a50ffff0000001180000003 00000000000010000000123400000003 78797a00 be36e1ed",
     0},
    {"CNP captured on a ConnectX-4 Lx",
     "45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000 "
     "00000000000000000000000000000000 82fd002a",
     0x718c},
    {"UC SEND only from a capture of a ConnectX on one host",
     "4501004004784000 4011b4d5 c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710 "
     "4630818be28935d90e9a95505401be885e500000 78f353f3",
     1144},
};

inline Flow flow_of(std::span<const std::byte> ip_packet) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(ip_packet[i]); };
  Flow flow;
  std::size_t udp = 20;
  if (at(0) >> 4 == 4) {
    flow.source = IpAddress::v4(at(12), at(13), at(14), at(15));
    flow.destination = IpAddress::v4(at(16), at(17), at(18), at(19));
  } else {
    udp = 40;
    for (std::size_t i = 0; i < 16; ++i) {
      flow.source.gid[i] = at(8 + i);
      flow.destination.gid[i] = at(24 + i);
    }
  }
  flow.source_port = static_cast<std::uint16_t>(at(udp) << 8 | at(udp + 1));
  return flow;
}

inline std::span<const std::byte> bth_of(std::span<const std::byte> ip_packet) {
  return ip_packet.subspan(((ip_packet[0] >> 4) == std::byte{4} ? 20U : 40U) + 8);
}

}  // namespace strait::soft::roce::testing
