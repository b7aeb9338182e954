// SPDX-License-Identifier: Apache-2.0
// What processes that share an address say to each other: the names of the ranges, and packets passed on.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "soft/roce/address.hpp"
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

// Who holds the abstract local socket of this name receives the packets of the range.
[[nodiscard]] inline sys::LocalName range_name(const IpAddress& address, std::uint8_t range) {
  std::string text = "strait-roce-1-";
  for (const std::uint8_t byte : address.gid) text += fmt::format("{:02x}", byte);
  return {text + fmt::format("-{}", range), true};
}

}  // namespace strait::soft::roce
