// SPDX-License-Identifier: Apache-2.0
// IP and UDP headers around a packet, for carriers and captures that have no IP stack below them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "soft/roce/address.hpp"

namespace strait::soft::roce {

inline constexpr std::size_t kV4Bytes = 20;  // RoCEv2 has no options
inline constexpr std::size_t kV6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kMaxIpUdpBytes = kV6Bytes + kUdpBytes;
[[nodiscard]] inline std::size_t ip_udp_bytes(const Flow& flow) {
  return (flow.destination.is_v4() ? kV4Bytes : kV6Bytes) + kUdpBytes;
}

// The Internet checksum: the inverted ones' complement sum of big-endian 16-bit words, begun with `sum`.
[[nodiscard]] std::uint32_t add_words(std::uint32_t sum, std::span<const std::byte> bytes);
[[nodiscard]] std::uint16_t finish_checksum(std::uint32_t sum);
// Of UDP (17) and ICMPv6 (58), which also cover addresses, length and protocol; the field itself counted as 0.
[[nodiscard]] std::uint16_t pseudo_checksum(const IpAddress& source, const IpAddress& destination,
                                            std::uint8_t protocol, std::span<const std::byte> first,
                                            std::span<const std::byte> rest);

struct IpOptions {
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint16_t ip_id = 0;
};
// Writes the headers that precede `bth_to_icrc`; returns ip_udp_bytes(flow). IPv4: DF set, UDP without a checksum;
// IPv6: with one, since a packet without is against its rules.
std::size_t write_ip_udp(const Flow& flow, std::span<const std::byte> bth_to_icrc, const IpOptions& options,
                         std::byte* out);

struct IpUdp {
  Flow flow;
  bool ecn_ce = false;
  std::uint16_t ip_id = 0;
  std::span<const std::byte> bytes;  // BTH to iCRC
};
// False for anything but a whole UDP datagram to port 4791 with right checksums; bytes after the IP packet are ignored.
[[nodiscard]] bool parse_ip_udp(std::span<const std::byte> ip_packet, IpUdp& out);

}  // namespace strait::soft::roce
