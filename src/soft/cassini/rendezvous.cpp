// SPDX-License-Identifier: Apache-2.0
// The part of a rendezvous that did not come along: the target's card fetches it from the initiator's rendezvous
// portal, which is the last index of the initiator's PID.
#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

namespace {

// Of a reply to a get that no software asked for.
std::uint64_t rendezvous_user_ptr(const Pte& pte, const ListEntry& entry, std::uint32_t pid, const Unexpected& header) {
  std::uint64_t word = 0;
  word = wire::with_bits<0, 20>(word, header.source_nid);
  word = wire::with_bits<20, 9>(word, pid);
  word = wire::with_bits<29, 11>(word, pte.id);
  word = wire::with_bits<40, 8>(word, header.rendezvous_id);
  return wire::with_bits<48, 16>(word, entry.buffer_id);
}

template <class Event>
void post_reply(Card& card, Eq& eq, wire::EventSize size, std::uint64_t user_ptr, const Answer& answer) {
  Event event{};
  event.set_event_type(wire::EventType::reply);
  event.set_event_size(size);
  event.set_user_ptr(user_ptr);
  event.set_mlength(answer.mlength);
  event.set_ptl_list(answer.list);
  event.set_rendezvous(true);
  event.set_return_code(answer.code);
  card.post(eq, &event, sizeof event);
}

}  // namespace

void fetch_rest(Card& card, Pte& pte, const ListEntry& entry, std::uint64_t start, std::uint32_t eager,
                std::uint64_t total, const Unexpected& header) {
  const std::uint32_t pid = wire::pid_of_match_id(kPidBits, header.initiator);
  Request get;
  get.op = wire::DmaOp::get;
  get.source_nid = card.settings().nid;
  get.vni = header.vni;
  get.endpoint = wire::endpoint_of(pid, kPidBits, kRendezvousIndex);
  get.index_ext = wire::index_ext_of(kRendezvousIndex);
  get.initiator = wire::match_id(kPidBits, header.target_pid, card.settings().nid);
  // The id takes the place of the lowest eight bits: so the initiator knows which of its messages is fetched.
  get.match_bits = (header.match_bits & ~std::uint64_t{0xff}) | header.rendezvous_id;
  get.remote_offset = (header.use_offset_for_get ? header.remote_offset : 0) + eager;
  // Also when nothing is left to fetch: the initiator waits for a get.
  get.length = static_cast<std::uint32_t>(total > eager ? total - eager : 0);

  const bool issued = card.settings().rendezvous_get;
  if (!has(entry, wire::kLeEventCommDisable)) {
    Unexpected event = header;
    event.initiator = wire::unicast_dfa(header.source_nid, get.endpoint);
    event.match_bits = get.match_bits;
    event.remote_offset = get.remote_offset;
    event.start = start + eager;
    event.mlength = eager;
    post_long(card, pte,
              {.type = wire::EventType::rendezvous,
               .list = wire::PtlList::priority,
               .buffer_id = entry.buffer_id,
               .get_issued = issued},
              event);
  }
  if (!issued) return;

  Answer answer;
  if (get.length != 0) {
    answer.code = pte.lni == nullptr ? wire::ReturnCode::invalid_ac
                                     : translate(*pte.lni, entry.lac, start + eager, get.length, true, get.local);
  }
  if (answer.code == wire::ReturnCode::ok) {
    Card* source = card.fabric().by_nid(header.source_nid);
    if (source == nullptr) {
      answer.code = wire::ReturnCode::undeliverable;
    } else {
      answer = source->receive(get);
    }
  }
  if (pte.eq == nullptr) return;
  const std::uint64_t user_ptr = rendezvous_user_ptr(pte, entry, pid, header);
  if ((pte.eq->flags & wire::kEqInitLong) != 0) {
    post_reply<wire::InitiatorLong>(card, *pte.eq, wire::EventSize::b32, user_ptr, answer);
  } else {
    post_reply<wire::InitiatorShort>(card, *pte.eq, wire::EventSize::b16, user_ptr, answer);
  }
}

}  // namespace strait::soft::cassini::target
