// SPDX-License-Identifier: Apache-2.0
// The GIDs of a device: one for every address of the host, RoCE v2. Written into the tree by `strait run`, and read
// from there by the devices, so that a program and its NIC speak of the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "soft/roce/address.hpp"

namespace strait::soft::uverbs {

struct GidEntry {
  roce::IpAddress address;
  std::string interface;
  unsigned interface_index = 0;
  std::uint32_t mtu_bytes = 0;  // of IP packets on that interface
};

// Addresses of interfaces that are up: those that others can reach first, IPv4 before IPv6, loopback last.
[[nodiscard]] Result<std::vector<GidEntry>> host_gids();

// "fe80:0000:0000:0000:5054:00ff:fe12:3456", as sysfs has it, and back.
[[nodiscard]] std::string gid_text(const roce::IpAddress& address);
[[nodiscard]] Result<roce::IpAddress> parse_gid(std::string_view text);

// Of the largest path MTU that fits packets on all of these interfaces: 1 is 256 bytes, 5 is 4096.
[[nodiscard]] std::uint8_t mtu_code(std::uint32_t interface_mtu_bytes);

}  // namespace strait::soft::uverbs
