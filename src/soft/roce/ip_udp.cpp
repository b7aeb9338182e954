// SPDX-License-Identifier: Apache-2.0
#include "soft/roce/ip_udp.hpp"

#include <cstring>

#include "strait/wire/roce.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::uint8_t kUdp = 17;

void put16(std::byte* at, std::size_t value) {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}
std::uint16_t get16(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) << 8 |
                                    std::to_integer<unsigned>(bytes[at + 1]));
}
std::span<const std::byte> address_bytes(const IpAddress& address) {
  const auto all = std::as_bytes(std::span(address.gid));
  return address.is_v4() ? all.subspan(12) : all;
}
IpAddress mapped(std::span<const std::byte> four) {
  return IpAddress::v4(std::to_integer<std::uint8_t>(four[0]), std::to_integer<std::uint8_t>(four[1]),
                       std::to_integer<std::uint8_t>(four[2]), std::to_integer<std::uint8_t>(four[3]));
}

// The IP packet without what follows it, and where its UDP header is; 0: not for us.
std::size_t parse_v4(std::span<const std::byte>& packet, IpUdp& out) {
  if (packet.size() < kV4Bytes || packet[0] != std::byte{0x45}) return 0;  // RoCEv2 has no options
  const std::size_t total = get16(packet, 2);
  if (total < kV4Bytes || total > packet.size()) return 0;
  if ((get16(packet, 6) & 0x3fff) != 0 || packet[9] != std::byte{kUdp}) return 0;  // a fragment
  if (finish_checksum(add_words(0, packet.first(kV4Bytes))) != 0) return 0;
  packet = packet.first(total);
  out.ecn_ce = (packet[1] & std::byte{3}) == std::byte{3};
  out.ip_id = get16(packet, 4);
  out.flow.source = mapped(packet.subspan(12, 4));
  out.flow.destination = mapped(packet.subspan(16, 4));
  return kV4Bytes;
}

std::size_t parse_v6(std::span<const std::byte>& packet, IpUdp& out) {
  if (packet.size() < kV6Bytes || (packet[0] >> 4) != std::byte{6} || packet[6] != std::byte{kUdp}) return 0;
  const std::size_t total = kV6Bytes + get16(packet, 4);
  if (total > packet.size()) return 0;
  packet = packet.first(total);
  out.ecn_ce = (get16(packet, 0) >> 4 & 3) == 3;
  out.ip_id = 0;
  std::memcpy(out.flow.source.gid.data(), packet.data() + 8, 16);
  std::memcpy(out.flow.destination.gid.data(), packet.data() + 24, 16);
  // An IPv4 address in its mapped form has no business on the wire, and would pass here for the IPv4 host.
  return out.flow.source.is_v4() || out.flow.destination.is_v4() ? 0 : kV6Bytes;
}

}  // namespace

std::uint32_t add_words(std::uint32_t sum, std::span<const std::byte> bytes) {
  std::uint64_t wide = sum;
  std::size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) wide += get16(bytes, i);
  if (i < bytes.size()) wide += std::to_integer<unsigned>(bytes[i]) << 8;
  while (wide >> 32 != 0) wide = (wide & 0xffffffff) + (wide >> 32);
  return static_cast<std::uint32_t>(wide);
}

std::uint16_t finish_checksum(std::uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::uint16_t pseudo_checksum(const IpAddress& source, const IpAddress& destination, std::uint8_t protocol,
                              std::span<const std::byte> first, std::span<const std::byte> rest) {
  std::uint32_t sum = add_words(0, address_bytes(source));
  sum = add_words(sum, address_bytes(destination));
  sum += protocol + static_cast<std::uint32_t>(first.size() + rest.size());
  sum = add_words(sum, first);  // of even length, always
  return finish_checksum(add_words(sum, rest));
}

std::size_t write_ip_udp(const Flow& flow, std::span<const std::byte> bth_to_icrc, const IpOptions& options,
                         std::byte* out) {
  const bool v4 = flow.destination.is_v4();
  const std::size_t ip_bytes = v4 ? kV4Bytes : kV6Bytes;
  const std::size_t udp_bytes = kUdpBytes + bth_to_icrc.size();
  std::memset(out, 0, ip_bytes + kUdpBytes);
  std::byte* const udp = out + ip_bytes;
  put16(udp, flow.source_port);
  put16(udp + 2, wire::roce::kUdpPort);
  put16(udp + 4, udp_bytes);
  if (v4) {
    out[0] = std::byte{0x45};
    out[1] = std::byte{options.traffic_class};
    put16(out + 2, ip_bytes + udp_bytes);
    put16(out + 4, options.ip_id);
    out[6] = std::byte{0x40};
    out[8] = std::byte{options.hop_limit};
    out[9] = std::byte{kUdp};
    std::memcpy(out + 12, flow.source.gid.data() + 12, 4);
    std::memcpy(out + 16, flow.destination.gid.data() + 12, 4);
    put16(out + 10, finish_checksum(add_words(0, {out, kV4Bytes})));
    return ip_bytes + kUdpBytes;
  }
  out[0] = static_cast<std::byte>(0x60 | options.traffic_class >> 4);
  out[1] = static_cast<std::byte>(options.traffic_class << 4);
  put16(out + 4, udp_bytes);
  out[6] = std::byte{kUdp};
  out[7] = std::byte{options.hop_limit};
  std::memcpy(out + 8, flow.source.gid.data(), 16);
  std::memcpy(out + 24, flow.destination.gid.data(), 16);
  const std::uint16_t sum = pseudo_checksum(flow.source, flow.destination, kUdp, {udp, kUdpBytes}, bth_to_icrc);
  put16(udp + 6, sum == 0 ? 0xffff : sum);  // 0 would say "no checksum"
  return ip_bytes + kUdpBytes;
}

bool parse_ip_udp(std::span<const std::byte> packet, IpUdp& out) {
  if (packet.empty()) return false;
  const std::size_t ip_bytes = (packet[0] >> 4) == std::byte{4} ? parse_v4(packet, out) : parse_v6(packet, out);
  if (ip_bytes == 0 || packet.size() < ip_bytes + kUdpBytes) return false;
  const auto udp = packet.subspan(ip_bytes);
  const std::size_t length = get16(udp, 4);
  if (get16(udp, 2) != wire::roce::kUdpPort || length < kUdpBytes || length > udp.size()) return false;
  // Without a checksum is allowed here, also over IPv6: it is what rdma_rxe sends.
  if (get16(udp, 6) != 0 && pseudo_checksum(out.flow.source, out.flow.destination, kUdp, udp.first(length), {}) != 0) {
    return false;
  }
  out.flow.source_port = get16(udp, 0);
  out.bytes = udp.subspan(kUdpBytes, length - kUdpBytes);
  return true;
}

}  // namespace strait::soft::roce
