// SPDX-License-Identifier: Apache-2.0
// A request has found its entry: rights, bytes, events, counts.
#include <algorithm>
#include <utility>

#include "soft/cassini/atomics.hpp"
#include "soft/cassini/strict.hpp"
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

namespace {

constexpr std::uint64_t kLocalAlignment = 64;  // en_align_lm: messages of a locally managed entry begin on a cache line
constexpr std::uint32_t kMaxShortLength = 0xfffff;

bool is_atomic(wire::DmaOp op) {
  return op == wire::DmaOp::atomic || op == wire::DmaOp::fetching_atomic;
}

wire::ReturnCode may_land(const Pte& pte, const ListEntry& entry, const Landing& landing, const Request& request) {
  const bool writes = request.op != wire::DmaOp::get;
  const bool reads = request.op == wire::DmaOp::get || request.op == wire::DmaOp::fetching_atomic;
  if ((writes && !has(entry, wire::kLeOpPut)) || (reads && !has(entry, wire::kLeOpGet))) {
    return wire::ReturnCode::op_violation;
  }
  // Packets of a restricted request come in any order: an entry that fills itself in order of arrival is no place for
  // them, unless the owner says that they are single packets.
  if (request.restricted && has(entry, wire::kLeManageLocal) && !has(pte, wire::kPteEnRestrictedUnicastLm)) {
    return wire::ReturnCode::restricted_unicast;
  }
  if (is_atomic(request.op) && request.length != wire::bytes_of(request.atomic_type)) {
    return wire::ReturnCode::amo_length_error;
  }
  if (landing.fits) return wire::ReturnCode::ok;
  if (has(pte, wire::kPteDoSpaceCheck)) return wire::ReturnCode::no_space;
  // Buffers for messages take what fits; memory that is addressed by an offset is all or nothing.
  const bool for_messages = has(entry, wire::kLeManageLocal) || has(entry, wire::kLeUseOnce);
  return for_messages && !is_atomic(request.op) ? wire::ReturnCode::ok : wire::ReturnCode::addr_out_of_range;
}

std::uint32_t floating_refused(const Pte& pte) {
  std::uint32_t refused = 0;
  if (has(pte, wire::kPteSignalInvalid)) refused |= kFpInvalid;
  if (has(pte, wire::kPteSignalUnderflow)) refused |= kFpUnderflow;
  if (has(pte, wire::kPteSignalOverflow)) refused |= kFpOverflow;
  if (has(pte, wire::kPteSignalInexact)) refused |= kFpInexact;
  return refused;
}

// Where the first byte of a request lies.
Moved beginning_of(const Pte& pte, const ListEntry& entry, const Landing& landing) {
  return {.iova = entry.start + landing.offset, .pte = pte.id};
}

wire::ReturnCode move_bytes(const Card& card, const Pte& pte, const ListEntry& entry, const Landing& landing,
                            const Request& request, Answer& answer) {
  const std::uint64_t bytes = std::uint64_t{landing.prefix} + landing.payload;
  if (bytes == 0) return wire::ReturnCode::ok;
  if (pte.lni == nullptr) return wire::ReturnCode::invalid_ac;
  Extents there;
  const bool writes = request.op != wire::DmaOp::get;
  wire::ReturnCode code = translate(*pte.lni, entry.lac, entry.start + landing.offset, bytes, writes, there);
  if (code == wire::ReturnCode::no_translation && pte.lni->strict != nullptr) {
    pte.lni->strict->not_translated(*pte.lni, entry.lac, entry.start + landing.offset, bytes, Thing::portal, pte.id);
  }
  if (code != wire::ReturnCode::ok) return code;
  if (is_atomic(request.op)) {
    AtomicCommand command{.op = request.atomic_op, .type = request.atomic_type, .cswap = request.cswap_op};
    std::copy(std::begin(request.operand1), std::end(request.operand1), command.operand1);
    std::copy(std::begin(request.operand2), std::end(request.operand2), command.operand2);
    const Landed landed = land(command, there, floating_refused(pte));
    std::copy(std::begin(landed.fetched), std::end(landed.fetched), answer.fetched);
    return landed.code;
  }
  if (landing.prefix == 0) {
    const bool get = request.op == wire::DmaOp::get;
    const Extents& from = get ? there : request.local;
    const Extents& to = get ? request.local : there;
    const std::uint64_t there_already =
        !request.piece && request.moved.begins_at(beginning_of(pte, entry, landing)) ? request.moved.bytes : 0;
    if (there_already == 0) return move(from, to, bytes);
    const std::uint64_t left = bytes - std::min(bytes, there_already);
    return move(part(from, there_already, left), part(to, there_already, left), left);
  }
  std::uint8_t packet[kMaxPacketHeader];
  write_packet_header(card, request, packet);
  code = write(there, packet, landing.prefix);
  if (code != wire::ReturnCode::ok || landing.payload == 0) return code;
  return move(request.local, part(there, landing.prefix, landing.payload), landing.payload);
}

Answer refuse(Card& card, Pte& pte, wire::PtlList list, const ListEntry& entry, const Request& request,
              wire::ReturnCode code) {
  // It did match, and who counts matches against accesses must find as many of both.
  const bool matches = has(pte, wire::kPteEnEventMatch) && !has(entry, wire::kLeEventSuccessDisable);
  if (!request.restricted && !has(entry, wire::kLeEventCommDisable) && room(card, pte, matches ? 2 : 1)) {
    const Unexpected header = header_of(request);
    Report report{.type = wire::EventType::match, .list = list, .buffer_id = entry.buffer_id};
    if (matches) post_long(card, pte, report, header);
    report.type = header.type;
    report.code = code;
    post_long(card, pte, report, header);
  }
  count_entry(card, pte, entry, list == wire::PtlList::overflow ? wire::kLeEventCtOverflow : wire::kLeEventCtComm, 0,
              code);
  return {.code = code, .list = list};
}

// Whether the owner hears of what went well. Not of restricted requests: their packets come in any order, and nobody
// knows the last one. Single packets that a locally managed entry takes (en_restricted_unicast_lm) are told:
// libfabric's collectives learn of theirs in no other way.
bool reports_success(const ListEntry& entry, const Request& request) {
  return !has(entry, wire::kLeEventSuccessDisable | wire::kLeEventCommDisable) &&
         (!request.restricted || has(entry, wire::kLeManageLocal));
}

// Memory that is put to and read at offsets: its entry stays as it is, and who has it hears of nothing but failures.
bool lands_quietly(const ListEntry& entry, wire::PtlList list, const Request& request) {
  return list == wire::PtlList::priority && !has(entry, wire::kLeUseOnce | wire::kLeManageLocal) &&
         !reports_success(entry, request) && request.op != wire::DmaOp::rendezvous_put;
}

// What is left of land_in() for such an entry. It is the last to be counted: the list may change then.
Answer land_quietly(Card& card, Pte& pte, const ListEntry& entry, const Landing& landing, const Request& request) {
  Answer answer;
  answer.code = move_bytes(card, pte, entry, landing, request, answer);
  std::uint32_t mlength = 0;
  if (answer.code == wire::ReturnCode::ok) {
    mlength = landing.prefix + landing.payload;
    answer.mlength = landing.payload;
  } else if (!request.restricted && !has(entry, wire::kLeEventCommDisable)) {
    Unexpected header = header_of(request);
    header.start = entry.start + landing.offset;
    const Report report{.type = header.type, .buffer_id = entry.buffer_id, .code = answer.code};
    post_long(card, pte, report, header);
  }
  count_entry(card, pte, entry, wire::kLeEventCtComm, mlength, answer.code);
  return answer;
}

// The queue cannot take the events: nothing may happen that nobody hears of.
Answer queue_full(Card& card, Pte& pte) {
  if (has(pte, wire::kPteLossless)) return {.code = wire::ReturnCode::resource_busy};
  if (has(pte, wire::kPteEnFlowctrl)) return disable(card, pte, wire::StateChangeReason::flow_eq_full);
  return {.code = wire::ReturnCode::entry_not_found};
}

// No list entry is left for the header.
Answer header_lost(Card& card, Pte& pte, const Request& request) {
  if (has(pte, wire::kPteEnSwHwStChng)) {
    pte.state = wire::PteState::software_managed;
    post_state(card, pte, wire::ReturnCode::ok, true, wire::StateChangeReason::managed_unexpected_fail);
    return card.receive(request);  // once: a managed portal keeps no headers
  }
  if (has(pte, wire::kPteEnFlowctrl)) return disable(card, pte, wire::StateChangeReason::flow_unexpected_fail);
  return {.code = wire::ReturnCode::entry_not_found};
}

}  // namespace

bool used_up(const ListEntry& entry) {
  return has(entry, wire::kLeUseOnce) ||
         (has(entry, wire::kLeManageLocal) && entry.length - std::min(entry.length, entry.offset) < entry.min_free);
}

Landing place(const Pte& pte, const ListEntry& entry, wire::PtlList list, const Request& request) {
  const bool rendezvous = request.op == wire::DmaOp::rendezvous_put;
  Landing landing;
  if (has(entry, wire::kLeManageLocal)) {
    landing.offset = entry.offset;
    if (has(pte, wire::kPteEnAlignLm)) {
      // What matters is where the message begins in memory.
      const std::uint64_t at = entry.start + entry.offset;
      landing.offset += (kLocalAlignment - at % kLocalAlignment) % kLocalAlignment;
    }
  } else if (!has(pte, wire::kPteClrRemoteOffset) && !(rendezvous && request.use_offset_for_get)) {
    landing.offset = request.remote_offset;
  }
  const std::uint64_t space = landing.offset < entry.length ? entry.length - landing.offset : 0;
  if (list == wire::PtlList::request) landing.prefix = packet_header_bytes(request);
  std::uint32_t wanted = rendezvous ? std::min(request.eager_length, request.length) : request.length;
  if (is_atomic(request.op)) wanted = wire::bytes_of(request.atomic_type);
  landing.fits = std::uint64_t{landing.prefix} + wanted <= space || (wanted == 0 && landing.prefix == 0);
  if (landing.prefix > space) landing.prefix = static_cast<std::uint32_t>(space);
  landing.payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, space - landing.prefix));
  landing.takes = std::uint64_t{landing.prefix} + landing.payload;
  // The rest of a rendezvous is fetched into the same entry, behind what came along.
  if (rendezvous && list == wire::PtlList::priority) landing.takes = std::min<std::uint64_t>(request.length, space);
  return landing;
}

Answer land_piece(Card& card, Pte& pte, const ListEntry& entry, const Landing& landing, const Request& request) {
  Answer answer{.code = wire::ReturnCode::delayed};
  // An entry that a message uses up, or whose owner has offsets ignored, has a place for the whole message only.
  if (has(entry, wire::kLeUseOnce) || has(entry, wire::kLeManageLocal) || has(pte, wire::kPteClrRemoteOffset))
    return answer;
  // Where not all of it fits, none of it moves.
  if (!landing.fits || entry.length - landing.offset < request.left) return answer;
  answer.code = may_land(pte, entry, landing, request);
  if (answer.code == wire::ReturnCode::ok) answer.code = move_bytes(card, pte, entry, landing, request, answer);
  answer.moved = beginning_of(pte, entry, landing);
  answer.moved.iova -= request.moved.bytes;
  answer.moved.bytes = request.moved.bytes + request.length;
  return answer;
}

Answer land_in(Card& card, Pte& pte, wire::PtlList list, std::size_t position, const Landing& landing,
               const Request& request) {
  MatchList<ListEntry>& entries = list_of(pte, list);
  wire::ReturnCode code = may_land(pte, entries.at(position), landing, request);
  if (code == wire::ReturnCode::ok && lands_quietly(entries.at(position), list, request))
    return land_quietly(card, pte, entries.at(position), landing, request);
  const ListEntry entry = entries.at(position);
  if (code != wire::ReturnCode::ok) return refuse(card, pte, list, entry, request, code);

  const bool rendezvous = request.op == wire::DmaOp::rendezvous_put && list == wire::PtlList::priority;
  const bool reports = reports_success(entry, request);
  const bool keeps_header = list == wire::PtlList::overflow && !has(entry, wire::kLeUnexpectedHdrDisable);
  ListEntry after = entry;
  if (has(entry, wire::kLeManageLocal)) after.offset = landing.offset + landing.takes;
  const bool leaves = used_up(after);
  const bool matches = reports && has(pte, wire::kPteEnEventMatch);
  const bool unlinks = leaves && !has(entry, wire::kLeEventUnlinkDisable);
  const std::uint32_t events = (matches ? 1u : 0u) + (unlinks ? 1u : 0u) + (reports ? 1u : 0u) + (rendezvous ? 2u : 0u);
  if (events != 0 && !room(card, pte, events)) return queue_full(card, pte);
  if (keeps_header && !take_entry(card, pte)) return header_lost(card, pte, request);

  if (leaves) {
    entries.remove(position);
    give_entry(card, pte);
  } else {
    entries.at(position).offset = after.offset;
  }

  Answer answer{.code = wire::ReturnCode::ok, .list = list};
  Unexpected header = header_of(request);
  header.start = entry.start + landing.offset;
  Report report{.type = header.type, .list = list, .buffer_id = entry.buffer_id, .auto_unlinked = leaves};
  if (matches) {
    Report match = report;
    match.type = wire::EventType::match;
    post_long(card, pte, match, header);
  }
  code = move_bytes(card, pte, entry, landing, request, answer);
  answer.code = report.code = code;
  answer.rendezvous = request.op == wire::DmaOp::rendezvous_put && code == wire::ReturnCode::ok;
  if (code == wire::ReturnCode::ok) {
    header.mlength = landing.prefix + landing.payload;
    answer.mlength = landing.payload;
  }
  if (keeps_header) {
    if (code == wire::ReturnCode::ok) {
      MatchKey key = key_of(pte, request);
      if (!has(pte, wire::kPteIsMatching)) key.care = key.who_care = 0;
      pte.unexpected.append(key, header);
    } else {
      give_entry(card, pte);
    }
  }
  if (unlinks) {
    Report unlink = report;
    unlink.type = wire::EventType::unlink;
    unlink.code = wire::ReturnCode::ok;
    post_long(card, pte, unlink, {});
  }
  const bool failed = code != wire::ReturnCode::ok;
  if (failed ? !request.restricted && !has(entry, wire::kLeEventCommDisable) : reports) {
    const bool in_short = !failed && list == wire::PtlList::priority && !is_atomic(request.op) &&
                          request.op != wire::DmaOp::rendezvous_put && !has(pte, wire::kPteUseLongEvent) &&
                          (pte.eq == nullptr || (pte.eq->flags & wire::kEqTargetLong) == 0) &&
                          header.mlength == header.rlength && header.mlength <= kMaxShortLength;
    in_short ? post_short(card, pte, report, header) : post_long(card, pte, report, header);
  }
  count_entry(card, pte, entry, list == wire::PtlList::overflow ? wire::kLeEventCtOverflow : wire::kLeEventCtComm,
              header.mlength, code);
  if (rendezvous && !failed) fetch_rest(card, pte, entry, header.start, landing.payload, landing.takes, header);
  return answer;
}

}  // namespace strait::soft::cassini::target
