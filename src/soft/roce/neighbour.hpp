// SPDX-License-Identifier: Apache-2.0
// Who has this address? ARP and IPv6 neighbour discovery, as whole Ethernet frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "soft/roce/address.hpp"

namespace strait::soft::roce {

using Mac = std::array<std::uint8_t, 6>;
inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::uint16_t kEtherIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherArp = 0x0806;
inline constexpr std::uint16_t kEtherIpv6 = 0x86dd;

void write_ethernet(const Mac& to, const Mac& from, std::uint16_t type, std::byte* out);
[[nodiscard]] std::uint16_t ethernet_type(std::span<const std::byte> frame);  // 0 when too short

// "Who has `wanted`?", asked of everybody (ARP) or of its solicited-node group.
[[nodiscard]] std::vector<std::byte> ask_neighbour(const Mac& my_mac, const IpAddress& me, const IpAddress& wanted);

struct NeighbourMessage {
  bool asks_for_me = false;       // answer it
  IpAddress sender;               // who says it; any (::) when it only looks for a duplicate of its address
  std::optional<Mac> sender_mac;  // what there is to learn about `sender`
};
// Of a frame that is ARP or neighbour discovery; nothing for all others, malformed ones and those with a wrong
// checksum.
[[nodiscard]] std::optional<NeighbourMessage> read_neighbour(std::span<const std::byte> frame, const IpAddress& me);
[[nodiscard]] std::vector<std::byte> answer_neighbour(const Mac& my_mac, const IpAddress& me,
                                                      const NeighbourMessage& question, const Mac& to);

}  // namespace strait::soft::roce
