// SPDX-License-Identifier: Apache-2.0
// What processes that share an address say to each other: the names of the ranges, and packets passed on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "soft/roce/address.hpp"
#include "soft/roce/packet.hpp"
#include "strait/wire/roce.hpp"
#include "sys/local_datagram.hpp"

namespace strait::soft::roce {

inline constexpr std::size_t kRunStride = 65536;  // no datagram is larger

// Precedes a run of packets of one flow. Both ends are on one host: plain memory, and the version is in the name.
struct ForwardHeader {
  std::array<std::uint8_t, 16> source{};
  std::array<std::uint8_t, 16> destination{};
  std::uint16_t source_port = 0;
  std::uint16_t ecn_ce = 0;
  std::uint32_t segment_bytes = 0;
};
static_assert(sizeof(ForwardHeader) == 40);

// A process that shares addresses also has a port of its own on each of them, by its range: outside of what the kernel
// hands out, so that only another such process can have it.
inline constexpr std::uint16_t kOwnPorts = 64000;
[[nodiscard]] constexpr std::uint16_t own_port(std::uint8_t range) {
  return static_cast<std::uint16_t>(kOwnPorts + range);
}

[[nodiscard]] inline std::uint8_t range_of(std::span<const std::byte> packet) {
  return packet.size() >= 8 ? std::to_integer<std::uint8_t>(packet[5]) : std::uint8_t{0};
}

// A datagram for queue pair 1, as far as it can be told without looking closer.
[[nodiscard]] inline bool is_management(std::span<const std::byte> packet) {
  constexpr std::uint32_t kQpn = 1;
  return packet.size() >= 8 && peek_dest_qpn(packet) == kQpn &&
         packet[0] == static_cast<std::byte>(wire::roce::Opcode::ud_send_only);
}

// Who holds the abstract local socket of this name receives the packets of the range.
[[nodiscard]] inline sys::LocalName range_name(const IpAddress& address, std::uint8_t range) {
  std::string text = "strait-roce-1-";
  for (const std::uint8_t byte : address.gid) text += fmt::format("{:02x}", byte);
  return {text + fmt::format("-{}", range), true};
}

}  // namespace strait::soft::roce
