// SPDX-License-Identifier: Apache-2.0
// The invariant CRC: what no router may change between the two ends, IP and UDP headers included.
//
// A packet's IP and UDP headers are not in its buffer: they follow from the flow and the length (IPv4: 20 bytes, DF
// set, not a fragment; destination port 4791), and what routers change counts as ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "soft/roce/address.hpp"
#include "soft/roce/crc32.hpp"

namespace strait::soft::roce {

// `bth_to_pad`: the packet without its iCRC, 12 bytes or more. `ip_id`: IPv4's identification; IPv6 has none. The
// number's least significant byte goes first on the wire.
[[nodiscard]] std::uint32_t icrc(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_pad);
[[nodiscard]] std::uint32_t icrc(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_pad,
                                 CrcPath path);

// Writes the last four bytes, for a packet that is sent with identification 0. 16 bytes or more.
void seal(const Flow& flow, std::span<std::byte> bth_to_icrc);

// Is the iCRC right? False for fewer than 16 bytes. With `id_unknown` an IPv4 packet passes if it is right for some
// identification: a UDP socket does not show that field, and other stacks fill it. That leaves a check of 16 bits.
[[nodiscard]] bool check(const Flow& flow, std::span<const std::byte> bth_to_icrc, bool id_unknown);
// The same for a carrier that sees the identification.
[[nodiscard]] bool check_with_id(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte> bth_to_icrc);

}  // namespace strait::soft::roce
