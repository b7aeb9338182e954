// SPDX-License-Identifier: Apache-2.0
// Tickets: 128 bytes that name a part of a region, what may be done with it and until when; only the issuing Node can
// check them.
//
// The layout is in docs/keys.md. A ticket is opaque to everybody but its issuer, and worthless once the region's epoch
// moved on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"

namespace strait::keys {

inline constexpr std::size_t kTicketBytes = 128;
inline constexpr std::uint16_t kTicketVersion = 1;

using NodeId = std::array<std::byte, 16>;
using TicketKey = std::array<std::byte, 32>;  // one per Node, never leaves the process
using TicketBytes = std::array<std::byte, kTicketBytes>;

struct TicketFields {
  NodeId node{};  // who issued it
  std::uint64_t region_id = 0;
  std::uint64_t offset = 0;  // of the first byte within the region
  std::uint64_t length_bytes = 0;
  std::uint64_t epoch = 0;            // the region's when it was issued
  std::int64_t expires_wall_ns = 0;   // sys::wall_ns(); refused from that instant on
  std::uint32_t access = 0;           // STRAIT_REMOTE_*
  std::array<std::byte, 24> nonce{};  // so that no two tickets are alike; issue() draws it
};

// These fail only where the kernel hands out no random bytes.
[[nodiscard]] Result<NodeId> new_node_id();
[[nodiscard]] Result<TicketKey> new_ticket_key();

// Draws a nonce, then encodes. The caller has checked range and rights against the region.
[[nodiscard]] Result<TicketBytes> issue(TicketFields fields, const TicketKey& key);
// The same without drawing: equal fields give equal bytes.
[[nodiscard]] TicketBytes encode(const TicketFields& fields, const TicketKey& key);

// Checks length, magic, version, issuer, MAC and expiry, in that order; a sentence for each. Whether the region still
// stands is check_current's to say.
[[nodiscard]] Result<TicketFields> verify(std::span<const std::byte> bytes, const TicketKey& key, const NodeId& node,
                                          std::int64_t now_wall_ns);
// Code::gone when the region was dropped or its epoch moved on since the ticket was issued.
[[nodiscard]] Status check_current(const TicketFields& fields, std::uint64_t current_epoch, bool region_alive);

}  // namespace strait::keys
