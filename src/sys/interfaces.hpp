// SPDX-License-Identifier: Apache-2.0
// This host's IP addresses, as its network namespace has them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace strait::sys {

// IPv6, or IPv4 as ::ffff:a.b.c.d; in network order.
using IpBytes = std::array<std::uint8_t, 16>;
[[nodiscard]] bool is_mapped_v4(const IpBytes& address);

// Is it an address of this host, so that packets to it never leave the machine? All of 127.0.0.0/8 is.
[[nodiscard]] bool is_own_address(const IpBytes& address);

// An address by which other hosts may reach this one: the first of an interface that is up and not loopback, IPv4
// before IPv6, as text. Empty when there is none.
[[nodiscard]] std::string first_address();

// Every address of an interface that is up, in the system's order.
struct HostAddress {
  IpBytes address{};
  std::string interface;
  unsigned interface_index = 0;
  std::uint32_t mtu_bytes = 0;  // of whole IP packets
  bool loopback = false;
};
[[nodiscard]] Result<std::vector<HostAddress>> host_addresses();

struct Interface {
  std::string name;
  unsigned index = 0;
  std::uint32_t mtu_bytes = 0;  // of whole IP packets
};
// The interface that has the address; of several the first. Code::invalid when none has.
[[nodiscard]] Result<Interface> interface_of(const IpBytes& address);

}  // namespace strait::sys
