// SPDX-License-Identifier: Apache-2.0
// Fuzz target: tickets. Foreign bytes are never accepted; what we issued is, until it expires or one bit changes.
//
// The first byte chooses: even, the rest is presented as a ticket; odd, the rest become the fields of one.
#include <algorithm>
#include <cstring>
#include <span>

#include "keys/ticket.hpp"
#include "require.hpp"

namespace {

namespace keys = strait::keys;
using strait::fuzz::require;

constexpr keys::TicketKey kKey = {std::byte{0x4b}, std::byte{0x65}, std::byte{0x79}};
constexpr keys::NodeId kNode = {std::byte{'s'}, std::byte{'e'}, std::byte{'e'}, std::byte{'d'}};
constexpr std::int64_t kNow = 1'700'000'000'000'000'000;

void present(std::span<const std::byte> bytes) {
  const auto fields = keys::verify(bytes, kKey, kNode, kNow);
  if (fields) {
    // Possible only for a ticket that this key made: its own encoding must be these very bytes.
    const keys::TicketBytes same = keys::encode(*fields, kKey);
    require(std::ranges::equal(same, bytes), "an accepted ticket is one we would issue");
    require(fields->expires_wall_ns > kNow, "an accepted ticket has not expired");
  } else {
    require(!fields.error().text.empty(), "a refusal says why");
  }
}

template <class Value>
void take(std::span<const std::byte>& from, Value& into) {
  const std::size_t count = std::min(from.size(), sizeof into);
  if (count != 0) std::memcpy(&into, from.data(), count);
  from = from.subspan(count);
}

void issue_and_damage(std::span<const std::byte> from) {
  keys::TicketFields fields;
  std::uint16_t bit = 0;
  take(from, bit);
  take(from, fields.region_id);
  take(from, fields.offset);
  take(from, fields.length_bytes);
  take(from, fields.epoch);
  take(from, fields.expires_wall_ns);
  take(from, fields.access);
  take(from, fields.nonce);
  fields.node = kNode;
  keys::TicketBytes bytes = keys::encode(fields, kKey);
  const auto read = keys::verify(bytes, kKey, kNode, kNow);
  require(read.has_value() == (fields.expires_wall_ns > kNow), "a ticket of ours is good exactly until it expires");
  if (read) {
    require(read->region_id == fields.region_id && read->offset == fields.offset &&
                read->length_bytes == fields.length_bytes && read->epoch == fields.epoch &&
                read->access == fields.access && read->nonce == fields.nonce,
            "the fields come back");
  }
  const std::size_t at = bit % (bytes.size() * 8);
  bytes[at / 8] ^= std::byte{1} << at % 8;
  require(!keys::verify(bytes, kKey, kNode, kNow), "a ticket with one bit changed is refused");
  require(!keys::verify(keys::encode(fields, {}), kKey, kNode, kNow), "a ticket made with another key is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  if ((data[0] & 1) == 0) {
    present(bytes.subspan(1));
  } else {
    issue_and_damage(bytes.subspan(1));
  }
  return 0;
}
