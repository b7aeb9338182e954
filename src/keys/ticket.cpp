// SPDX-License-Identifier: Apache-2.0
#include "keys/ticket.hpp"

#include <algorithm>
#include <concepts>

#include "base/mac.hpp"
#include "sys/process.hpp"

namespace strait::keys {
namespace {

// Offsets of docs/keys.md. Everything before kMac is covered by it.
constexpr std::size_t kMagic = 0;
constexpr std::size_t kVersion = 4;
constexpr std::size_t kNode = 8;  // bytes 6 and 7 are zero
constexpr std::size_t kRegion = 24;
constexpr std::size_t kOffset = 32;
constexpr std::size_t kLength = 40;
constexpr std::size_t kEpoch = 48;
constexpr std::size_t kExpiry = 56;
constexpr std::size_t kAccess = 64;
constexpr std::size_t kNonce = 72;  // bytes 68 to 71 are zero
constexpr std::size_t kMac = 96;
constexpr std::uint32_t kMagicValue = 0x53545254;  // "STRT"

static_assert(kNonce + sizeof(TicketFields::nonce) == kMac && kMac + sizeof(Digest) == kTicketBytes);

template <std::unsigned_integral T>
void put(TicketBytes& bytes, std::size_t at, T value) {
  for (std::size_t i = sizeof value; i-- > 0; value = static_cast<T>(std::uint64_t{value} >> 8)) {
    bytes[at + i] = static_cast<std::byte>(value & 0xff);
  }
}

template <std::unsigned_integral T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return static_cast<T>(value);
}

template <std::size_t N>
void get_bytes(std::span<const std::byte> bytes, std::size_t at, std::array<std::byte, N>& out) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), N, out.begin());
}

TicketFields read_fields(std::span<const std::byte> bytes) {
  TicketFields fields;
  get_bytes(bytes, kNode, fields.node);
  fields.region_id = get<std::uint64_t>(bytes, kRegion);
  fields.offset = get<std::uint64_t>(bytes, kOffset);
  fields.length_bytes = get<std::uint64_t>(bytes, kLength);
  fields.epoch = get<std::uint64_t>(bytes, kEpoch);
  fields.expires_wall_ns = static_cast<std::int64_t>(get<std::uint64_t>(bytes, kExpiry));
  fields.access = get<std::uint32_t>(bytes, kAccess);
  get_bytes(bytes, kNonce, fields.nonce);
  return fields;
}

std::string duration_text(std::uint64_t ns) {
  if (ns < 1'000'000) return fmt::format("{} us", ns / 1000);
  if (ns < 1'000'000'000) return fmt::format("{} ms", ns / 1'000'000);
  if (ns < 120'000'000'000) return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
  return fmt::format("{} min", ns / 60'000'000'000);
}

}  // namespace

Result<NodeId> new_node_id() {
  NodeId id;
  STRAIT_CHECK(sys::fill_random(id));
  return id;
}

Result<TicketKey> new_ticket_key() {
  TicketKey key;
  STRAIT_CHECK(sys::fill_random(key));
  return key;
}

Result<TicketBytes> issue(TicketFields fields, const TicketKey& key) {
  STRAIT_CHECK(sys::fill_random(fields.nonce));
  return encode(fields, key);
}

TicketBytes encode(const TicketFields& fields, const TicketKey& key) {
  TicketBytes bytes{};
  put(bytes, kMagic, kMagicValue);
  put(bytes, kVersion, kTicketVersion);
  std::ranges::copy(fields.node, bytes.begin() + kNode);
  put(bytes, kRegion, fields.region_id);
  put(bytes, kOffset, fields.offset);
  put(bytes, kLength, fields.length_bytes);
  put(bytes, kEpoch, fields.epoch);
  put(bytes, kExpiry, static_cast<std::uint64_t>(fields.expires_wall_ns));
  put(bytes, kAccess, fields.access);
  std::ranges::copy(fields.nonce, bytes.begin() + kNonce);
  const Digest mac = hmac_sha256(key, std::span(bytes).first<kMac>());
  std::ranges::copy(mac, bytes.begin() + kMac);
  return bytes;
}

Result<TicketFields> verify(std::span<const std::byte> bytes, const TicketKey& key, const NodeId& node,
                            std::int64_t now_wall_ns) {
  if (bytes.size() != kTicketBytes) {
    return fail(Code::invalid, "a ticket is {} bytes long, this has {}", kTicketBytes, bytes.size());
  }
  if (get<std::uint32_t>(bytes, kMagic) != kMagicValue) {
    return fail(Code::invalid, "this is not a ticket: it does not begin like one");
  }
  if (const auto version = get<std::uint16_t>(bytes, kVersion); version != kTicketVersion) {
    return fail(Code::unsupported, "this ticket has version {}, this node reads version {}", version, kTicketVersion);
  }
  // The issuer comes before the MAC: without its key every foreign ticket would look forged, and the remedy differs.
  if (!std::equal(node.begin(), node.end(), bytes.begin() + kNode)) {
    return with_remedy(fail(Code::denied, "this ticket was issued by another node"),
                       "Present it to the node that issued it; a node that was restarted is another node.");
  }
  if (!same_digest(hmac_sha256(key, bytes.first(kMac)), bytes.subspan(kMac))) {
    return fail(Code::denied, "this ticket is forged or damaged: its MAC does not match");
  }
  const TicketFields fields = read_fields(bytes);
  if (now_wall_ns >= fields.expires_wall_ns) {
    const auto late = static_cast<std::uint64_t>(now_wall_ns) - static_cast<std::uint64_t>(fields.expires_wall_ns);
    return with_remedy(fail(Code::denied, "this ticket expired {} ago", duration_text(late)),
                       "Ask the owner for a new one; the option `ticket_lifetime` says how long they live.");
  }
  return fields;
}

Status check_current(const TicketFields& fields, std::uint64_t current_epoch, bool region_alive) {
  if (!region_alive)
    return fail(Code::gone, "the region of this ticket (region {}) no longer exists", fields.region_id);
  if (fields.epoch != current_epoch) {
    return fail(Code::gone, "this ticket is stale: region {} was revoked since (epoch {}, the ticket has {})",
                fields.region_id, current_epoch, fields.epoch);
  }
  return {};
}

}  // namespace strait::keys
