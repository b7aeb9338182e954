// SPDX-License-Identifier: Apache-2.0
#include "soft/roce/neighbour.hpp"

#include <cstring>

#include "soft/roce/ip_udp.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::uint8_t kIcmp6 = 58;
constexpr std::uint8_t kSolicitation = 135;
constexpr std::uint8_t kAdvertisement = 136;
constexpr std::size_t kArpBytes = 28;
constexpr std::size_t kNdBytes = 24;         // type, code, checksum, flags, target
constexpr std::size_t kNdWithMacBytes = 32;  // and one option of 8 bytes
constexpr Mac kEverybody = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}
Mac mac_at(std::span<const std::byte> bytes, std::size_t at) {
  Mac out;
  std::memcpy(out.data(), bytes.data() + at, out.size());
  return out;
}
IpAddress v4_at(std::span<const std::byte> bytes, std::size_t at) {
  return IpAddress::v4(byte_at(bytes, at), byte_at(bytes, at + 1), byte_at(bytes, at + 2), byte_at(bytes, at + 3));
}
IpAddress v6_at(std::span<const std::byte> bytes, std::size_t at) {
  IpAddress out;
  std::memcpy(out.gid.data(), bytes.data() + at, 16);
  return out;
}

std::vector<std::byte> arp(const Mac& frame_to, std::uint8_t operation, const Mac& my_mac, const IpAddress& me,
                           const Mac& target_mac, const IpAddress& target) {
  std::vector<std::byte> frame(kEthernetBytes + kArpBytes);
  write_ethernet(frame_to, my_mac, kEtherArp, frame.data());
  static constexpr std::uint8_t kFixed[7] = {0, 1, 0x08, 0, 6, 4, 0};  // Ethernet, IPv4, lengths, operation's high byte
  std::byte* const body = frame.data() + kEthernetBytes;
  std::memcpy(body, kFixed, sizeof kFixed);
  body[7] = std::byte{operation};
  std::memcpy(body + 8, my_mac.data(), 6);
  std::memcpy(body + 14, me.gid.data() + 12, 4);
  std::memcpy(body + 18, target_mac.data(), 6);
  std::memcpy(body + 24, target.gid.data() + 12, 4);
  return frame;
}

std::vector<std::byte> discovery(const Mac& frame_to, const Mac& my_mac, const IpAddress& me, const IpAddress& to,
                                 std::uint8_t type, std::uint8_t flags, const IpAddress& target) {
  std::vector<std::byte> frame(kEthernetBytes + kV6Bytes + kNdWithMacBytes);
  write_ethernet(frame_to, my_mac, kEtherIpv6, frame.data());
  std::byte* const ip = frame.data() + kEthernetBytes;
  ip[0] = std::byte{0x60};
  ip[5] = std::byte{kNdWithMacBytes};
  ip[6] = std::byte{kIcmp6};
  ip[7] = std::byte{255};  // proves that it was not routed
  std::memcpy(ip + 8, me.gid.data(), 16);
  std::memcpy(ip + 24, to.gid.data(), 16);
  std::byte* const body = ip + kV6Bytes;
  body[0] = std::byte{type};
  body[4] = std::byte{flags};
  std::memcpy(body + 8, target.gid.data(), 16);
  body[24] = std::byte{static_cast<unsigned char>(type == kSolicitation ? 1 : 2)};  // source or target MAC
  body[25] = std::byte{1};                                                          // 8 bytes
  std::memcpy(body + 26, my_mac.data(), 6);
  const std::uint16_t sum = pseudo_checksum(me, to, kIcmp6, {body, kNdWithMacBytes}, {});
  body[2] = static_cast<std::byte>(sum >> 8);
  body[3] = static_cast<std::byte>(sum);
  return frame;
}

std::optional<NeighbourMessage> read_arp(std::span<const std::byte> frame, const IpAddress& me) {
  static constexpr std::uint8_t kFixed[7] = {0, 1, 0x08, 0, 6, 4, 0};
  if (frame.size() < kEthernetBytes + kArpBytes) return {};
  const auto body = frame.subspan(kEthernetBytes, kArpBytes);
  const std::uint8_t operation = byte_at(body, 7);
  if (std::memcmp(body.data(), kFixed, sizeof kFixed) != 0 || (operation != 1 && operation != 2)) return {};
  NeighbourMessage out;
  out.sender = v4_at(body, 14);
  out.asks_for_me = operation == 1 && v4_at(body, 24) == me;
  if (!out.sender.is_any()) out.sender_mac = mac_at(body, 8);
  return out;
}

std::optional<NeighbourMessage> read_discovery(std::span<const std::byte> frame, const IpAddress& me) {
  if (frame.size() < kEthernetBytes + kV6Bytes + kNdBytes) return {};
  const auto ip = frame.subspan(kEthernetBytes);
  const std::size_t length = std::size_t{byte_at(ip, 4)} << 8 | byte_at(ip, 5);
  if (byte_at(ip, 6) != kIcmp6 || byte_at(ip, 7) != 255 || length < kNdBytes || kV6Bytes + length > ip.size())
    return {};
  const auto body = ip.subspan(kV6Bytes, length);
  const std::uint8_t type = byte_at(body, 0);
  const IpAddress source = v6_at(ip, 8);
  if ((type != kSolicitation && type != kAdvertisement) || byte_at(body, 1) != 0) return {};
  if (pseudo_checksum(source, v6_at(ip, 24), kIcmp6, body, {}) != 0) return {};
  const IpAddress target = v6_at(body, 8);
  if (source.is_v4() || target.is_v4()) return {};  // IPv4 has ARP
  NeighbourMessage out;
  out.sender = type == kSolicitation ? source : target;
  out.asks_for_me = type == kSolicitation && target == me;
  if (out.sender.is_any()) return out;
  out.sender_mac = mac_at(frame, 6);
  const std::uint8_t wanted = type == kSolicitation ? 1 : 2;
  for (std::size_t at = kNdBytes; at + 8 <= body.size();) {
    const std::size_t option_bytes = std::size_t{byte_at(body, at + 1)} * 8;
    if (option_bytes == 0) return {};
    if (byte_at(body, at) == wanted) out.sender_mac = mac_at(body, at + 2);
    at += option_bytes;
  }
  return out;
}

}  // namespace

void write_ethernet(const Mac& to, const Mac& from, std::uint16_t type, std::byte* out) {
  std::memcpy(out, to.data(), 6);
  std::memcpy(out + 6, from.data(), 6);
  out[12] = static_cast<std::byte>(type >> 8);
  out[13] = static_cast<std::byte>(type);
}

std::uint16_t ethernet_type(std::span<const std::byte> frame) {
  if (frame.size() < kEthernetBytes) return 0;
  return static_cast<std::uint16_t>(byte_at(frame, 12) << 8 | byte_at(frame, 13));
}

std::vector<std::byte> ask_neighbour(const Mac& my_mac, const IpAddress& me, const IpAddress& wanted) {
  if (wanted.is_v4()) return arp(kEverybody, 1, my_mac, me, Mac{}, wanted);
  IpAddress group{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, wanted.gid[13], wanted.gid[14], wanted.gid[15]}};
  const Mac group_mac = {0x33, 0x33, 0xff, wanted.gid[13], wanted.gid[14], wanted.gid[15]};
  return discovery(group_mac, my_mac, me, group, kSolicitation, 0, wanted);
}

std::optional<NeighbourMessage> read_neighbour(std::span<const std::byte> frame, const IpAddress& me) {
  switch (ethernet_type(frame)) {
    case kEtherArp: return read_arp(frame, me);
    case kEtherIpv6: return read_discovery(frame, me);
    default: return {};
  }
}

std::vector<std::byte> answer_neighbour(const Mac& my_mac, const IpAddress& me, const NeighbourMessage& question,
                                        const Mac& to) {
  if (me.is_v4()) return arp(to, 2, my_mac, me, to, question.sender);
  constexpr std::uint8_t kSolicited = 0x40;
  constexpr std::uint8_t kOverride = 0x20;
  if (!question.sender.is_any()) {
    return discovery(to, my_mac, me, question.sender, kAdvertisement, kSolicited | kOverride, me);
  }
  // Somebody wants our address and has none yet to answer to: tell all nodes that it is taken.
  const IpAddress all_nodes{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return discovery({0x33, 0x33, 0, 0, 0, 1}, my_mac, me, all_nodes, kAdvertisement, kOverride, me);
}

}  // namespace strait::soft::roce
