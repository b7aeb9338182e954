// SPDX-License-Identifier: Apache-2.0
// The target's events, as the queue's consumer reads them.
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

namespace {

template <class Event>
void fill_target_event(Event& event, const Pte& pte, const Report& report, const Unexpected& header) {
  event.set_event_type(report.type);
  event.set_header_data(header.header_data);
  event.set_initiator(header.initiator);
  event.set_ptlte_index(pte.id);
  event.set_ptl_list(report.list);
  event.set_auto_unlinked(report.auto_unlinked);
  event.set_match_bits(header.match_bits);
  event.set_buffer_id(report.buffer_id);
  event.set_vni(header.vni);
  event.set_return_code(report.code);
}

}  // namespace

void post_long(Card& card, Pte& pte, const Report& report, const Unexpected& header) {
  if (pte.eq == nullptr) return;
  wire::TargetLong event{};
  fill_target_event(event, pte, report, header);
  event.set_event_size(wire::EventSize::b64);
  event.set_rendezvous(header.rendezvous);
  event.set_get_issued(report.get_issued);
  event.set_mlength(header.mlength);
  event.set_rlength(header.rlength);
  event.set_remote_offset(header.remote_offset);
  event.set_start(header.start);
  event.set_rendezvous_id(header.rendezvous_id);
  event.set_atomic_op(static_cast<wire::AtomicOp>(header.atomic_op));
  event.set_atomic_type(static_cast<wire::AtomicType>(header.atomic_type));
  event.set_cswap_op(static_cast<wire::CswapOp>(header.cswap_op));
  if (report.type == wire::EventType::link) {
    // Clients watch these to leave the card's matching before its entries run out.
    const PteStatus pool = card.status(pte);
    event.set_lpe_stat_1(pool.les_allocated);
    event.set_lpe_stat_2(pool.les_max);
  }
  card.post(*pte.eq, &event, sizeof event);
}

void post_short(Card& card, Pte& pte, const Report& report, const Unexpected& header) {
  if (pte.eq == nullptr) return;
  wire::TargetShort event{};
  fill_target_event(event, pte, report, header);
  event.set_event_size(wire::EventSize::b32);
  event.set_length(header.mlength);
  card.post(*pte.eq, &event, sizeof event);
}

void post_state(Card& card, Pte& pte, wire::ReturnCode code, bool by_card, wire::StateChangeReason reason) {
  if (pte.eq == nullptr) return;
  wire::TargetLong event{};
  event.set_event_type(wire::EventType::state_change);
  event.set_event_size(wire::EventSize::b64);
  event.set_ptlte_index(pte.id);
  event.set_ptlte_state(pte.state);
  if (by_card) event.set_sc_reason(reason);
  event.set_sc_nic_auto(by_card);
  event.set_return_code(code);
  card.post(*pte.eq, &event, sizeof event);
}

}  // namespace strait::soft::cassini::target
