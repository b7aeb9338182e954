// SPDX-License-Identifier: Apache-2.0
// What a list entry asks of a message, and what a message brings along.
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

MatchKey key_of(const Pte& pte, const wire::TargetCmd& command) {
  if (!has(pte, wire::kPteIsMatching)) return {.bits = 0, .care = 0, .who = 0, .who_care = 0};
  MatchKey key{.bits = command.match_bits(), .care = ~command.ignore_bits(), .who = command.match_id()};
  if (has(pte, wire::kPteEnMatchOnVni)) {
    // The sources name the option and no field for it; the place of the initiator is the one that is left.
    key.who &= 0xffff;
    key.who_care = key.who == 0xffff ? 0 : 0xffff;
    return key;
  }
  constexpr std::uint32_t kPidMask = ((1u << kPidBits) - 1) << (32 - kPidBits);
  // Logical ids are ranks of 23 bits; physical ones network ids of 20, and what is above those is nobody's.
  const std::uint32_t place = has(pte, wire::kPteUseLogical) ? ~kPidMask : (1u << wire::kNidBits) - 1;
  key.who_care = 0;
  if ((key.who & kPidMask) != kPidMask) key.who_care |= kPidMask;
  if ((key.who & place) != place) key.who_care |= place;
  return key;
}

MatchKey key_of(const Pte& pte, const Request& request) {
  MatchKey key;
  key.bits = request.restricted ? 0 : request.match_bits;  // a restricted packet has no room for them
  key.who = has(pte, wire::kPteEnMatchOnVni) ? request.vni : request.initiator;
  return key;
}

Unexpected header_of(const Request& request) {
  Unexpected header;
  switch (request.op) {
    case wire::DmaOp::get: header.type = wire::EventType::get; break;
    case wire::DmaOp::atomic: header.type = wire::EventType::atomic; break;
    case wire::DmaOp::fetching_atomic: header.type = wire::EventType::fetch_atomic; break;
    default: header.type = wire::EventType::put; break;
  }
  header.initiator = request.initiator;
  header.match_bits = request.match_bits;
  header.header_data = request.header_data;
  header.remote_offset = request.remote_offset;
  header.rlength = request.length;
  header.vni = request.vni;
  header.source_nid = request.source_nid;
  header.target_pid = wire::pid_of_dfa(request.endpoint, kPidBits);
  header.rendezvous = request.op == wire::DmaOp::rendezvous_put;
  if (header.rendezvous) {
    header.rendezvous_id = request.rendezvous_id;
    header.use_offset_for_get = request.use_offset_for_get;
  }
  if (header.type == wire::EventType::atomic || header.type == wire::EventType::fetch_atomic) {
    header.atomic_op = static_cast<std::uint8_t>(request.atomic_op);
    header.atomic_type = static_cast<std::uint8_t>(request.atomic_type);
    header.cswap_op = static_cast<std::uint8_t>(request.cswap_op);
  }
  return header;
}

}  // namespace strait::soft::cassini::target
