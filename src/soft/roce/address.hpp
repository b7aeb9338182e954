// SPDX-License-Identifier: Apache-2.0
// Who talks to whom: IP addresses in the form of GIDs, and the flow that the iCRC of a packet covers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace strait::soft::roce {

// An IPv6 address as it is, an IPv4 address as ::ffff:a.b.c.d: the GID of a RoCEv2 port is its address.
struct IpAddress {
  std::array<std::uint8_t, 16> gid{};

  [[nodiscard]] bool is_v4() const {
    static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.data(), kMapped.data(), kMapped.size()) == 0;
  }
  // 0.0.0.0 or ::
  [[nodiscard]] bool is_any() const;
  [[nodiscard]] bool is_multicast() const { return is_v4() ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff; }
  [[nodiscard]] bool is_link_local() const { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

  [[nodiscard]] static IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
  }
  // "10.0.0.1", "fd00::7"; IPv4 also in its mapped form. The shortest text, as RFC 5952 has it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static Result<IpAddress> parse(std::string_view text);

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

struct Flow {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  friend bool operator==(const Flow&, const Flow&) = default;
};

}  // namespace strait::soft::roce
