// SPDX-License-Identifier: Apache-2.0
// A request comes in: which portal, which list, which entry.
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini {

namespace target {
namespace {

bool is_request_op(wire::DmaOp op) {
  switch (op) {
    case wire::DmaOp::put:
    case wire::DmaOp::get:
    case wire::DmaOp::rendezvous_put:
    case wire::DmaOp::atomic:
    case wire::DmaOp::fetching_atomic:
    case wire::DmaOp::small_message: return true;
    default: return false;
  }
}

bool brings_message(wire::DmaOp op) {
  return op == wire::DmaOp::put || op == wire::DmaOp::rendezvous_put || op == wire::DmaOp::small_message;
}

// Nothing agreed. Without flow control the initiator learns of it and may try again; with it the portal closes, so that
// later messages cannot overtake.
Answer unmatched(Card& card, Pte& pte, const Request& request) {
  const bool managed = pte.state == wire::PteState::software_managed;
  if (managed && (request.restricted || !brings_message(request.op)))
    return {.code = wire::ReturnCode::ptlte_sw_managed};
  if (has(pte, wire::kPteEnFlowctrl)) {
    return disable(card, pte,
                   managed ? wire::StateChangeReason::flow_request_full : wire::StateChangeReason::flow_no_match);
  }
  const Unexpected header = header_of(request);
  if (!request.restricted && room(card, pte, 1)) {
    post_long(card, pte, {.type = header.type, .code = wire::ReturnCode::entry_not_found}, header);
  }
  return {.code = wire::ReturnCode::entry_not_found};
}

}  // namespace
}  // namespace target

Answer Card::receive(const Request& request) {
  Pte* const found = at(request.vni, request.endpoint, request.index_ext);
  if (found == nullptr) {
    const bool network = profile_of(request.vni) != nullptr;
    return {.code = network ? wire::ReturnCode::ptlte_not_found : wire::ReturnCode::vni_not_found};
  }
  Pte& pte = *found;
  switch (pte.state) {
    case wire::PteState::enabled:
    case wire::PteState::software_managed: break;
    case wire::PteState::disabled:
      if (!request.piece) pte.drop_count = (pte.drop_count + 1) & 0xffffff;
      return {.code = wire::ReturnCode::pt_disabled};
    case wire::PteState::ethernet: return {.code = wire::ReturnCode::illegal_op};
    default: return {.code = wire::ReturnCode::ptlte_not_found};
  }
  if (!target::is_request_op(request.op)) return {.code = wire::ReturnCode::illegal_op};

  // While the card matches, what no buffer expects goes to the overflow list; once software does, to the request list.
  const bool managed = pte.state == wire::PteState::software_managed;
  const MatchKey key = target::key_of(pte, request);
  for (const wire::PtlList list :
       {wire::PtlList::priority, managed ? wire::PtlList::request : wire::PtlList::overflow}) {
    if (request.piece && list != wire::PtlList::priority) break;
    if (list == wire::PtlList::request && (request.restricted || !target::brings_message(request.op))) break;
    const MatchList<ListEntry>& entries = target::list_of(pte, list);
    for (std::size_t at = entries.find(key); at != MatchList<ListEntry>::kNone; at = entries.find(key, at + 1)) {
      const ListEntry& entry = entries.at(at);
      const target::Landing landing = target::place(pte, entry, list, request);
      if (request.piece) return target::land_piece(*this, pte, entry, landing, request);
      // An entry that does not take parts of messages lets this one pass.
      if (!landing.fits && target::has(entry, wire::kLeNoTruncate)) continue;
      return target::land_in(*this, pte, list, at, landing, request);
    }
  }
  if (request.piece) return {.code = wire::ReturnCode::entry_not_found};
  return target::unmatched(*this, pte, request);
}

}  // namespace strait::soft::cassini
