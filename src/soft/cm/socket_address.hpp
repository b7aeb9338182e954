// SPDX-License-Identifier: Apache-2.0
// Socket addresses as programs write them: IPv4, IPv6, and InfiniBand's, which names a service directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "soft/roce/address.hpp"

namespace strait::soft::cm {

using roce::IpAddress;

// The kernel's numbers.
inline constexpr std::uint16_t kFamilyNone = 0;
inline constexpr std::uint16_t kFamilyIp4 = 2;
inline constexpr std::uint16_t kFamilyIp6 = 10;
inline constexpr std::uint16_t kFamilyIb = 27;
inline constexpr std::size_t kLargestSocketAddress = 48;

struct SocketAddress {
  std::uint16_t family = kFamilyNone;
  IpAddress address;
  std::uint16_t port = 0;
  std::uint32_t flow_info = 0;  // IPv6, InfiniBand: carried, not used
  std::uint64_t scope = 0;      // IPv6: the interface
  std::uint16_t pkey = 0;       // InfiniBand
  std::uint64_t service_id = 0;
  std::uint64_t service_mask = 0;
  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;

  [[nodiscard]] bool is_any() const { return address.is_any(); }
  [[nodiscard]] bool is_loopback() const;
};

// Bytes that an address of the family has; 0 for other families.
[[nodiscard]] std::size_t size_of_family(std::uint16_t family);
// Nothing for a family that is none of the three, or fewer bytes than it has.
[[nodiscard]] std::optional<SocketAddress> parse_socket_address(std::span<const std::byte> bytes);
// Returns how many bytes were written: 0 for no family. `out` has kLargestSocketAddress or more.
std::size_t write_socket_address(const SocketAddress& address, std::span<std::byte> out);

}  // namespace strait::soft::cm
