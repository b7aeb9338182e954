// SPDX-License-Identifier: Apache-2.0
// Which command it is, whether its length is right and whether the caller may; and the end of a client.
#include "soft/cassini/client.hpp"

#include <cerrno>
#include <cstring>

namespace strait::soft::cassini {

Client::Client(Card& card, std::uint32_t id, Who who, UserMemory& memory, sys::Fd pages, ClientHost& host)
    : card_(card),
      id_(id),
      who_(who),
      memory_(memory),
      pages_(std::move(pages)),
      host_(host),
      next_offset_(sys::page_bytes()) {}

void Client::use(const ClientOptions& options) {
  if (options.strict) strict_ = std::make_unique<Strict>(options.strict_seed, card_.numbers.get("strict_findings"));
  if (options.faults) faults_ = std::make_unique<Faults>(*options.faults, card_.numbers.get("faults_injected"));
}

std::vector<Finding> Client::take_findings(std::size_t most) {
  return strict_ ? strict_->take(most) : std::vector<Finding>();
}

namespace {

// Everything of `table` that belongs to the client. Freeing changes the table, so the list comes first.
template <class T>
std::vector<T*> all_of(const Table<T>& table, const Client* client) {
  std::vector<T*> mine;
  table.each([&](T& object) {
    if (object.lni->client == client) mine.push_back(&object);
  });
  return mine;
}

}  // namespace

Client::~Client() {
  card_.registers.hide(registers_);
  for (std::uint32_t i = 0; i < card_.mapping_table.size(); ++i) {
    if (card_.mapping_table[i] && card_.mapping_table[i]->pte->lni->client == this) drop_mapping(i);
  }
  for (Pte* pte : all_of(card_.ptes, this)) drop(*pte);
  for (Cq* cq : all_of(card_.transmit_queues, this)) drop(*cq);
  for (Cq* cq : all_of(card_.target_queues, this)) drop(*cq);
  for (Eq* eq : all_of(card_.event_queues, this)) drop(*eq);
  for (Md* md : all_of(card_.mds, this)) drop(*md);
  for (const auto& [wait, lni] : wait_lnis_) --lni->refs;
  waits_.clear();
  for (Domain* domain : all_of(card_.domains, this)) drop(*domain);
  for (Ct* ct : all_of(card_.counters, this)) drop(*ct);
  while (!cps_.empty()) drop_cp(cps_.begin()->first);
  std::vector<Lni*> lnis;
  card_.lnis.each([&](Lni& lni) {
    if (lni.client == this) lnis.push_back(&lni);
  });
  for (Lni* lni : lnis) drop(*lni);
}

template <class Command>
long Client::run(Span command, int (Client::*handler)(const Command&), bool admin_only) {
  if (command.size() != sizeof(Command)) return -EINVAL;
  if (admin_only && !who_.admin) return -EPERM;
  Command copy;
  std::memcpy(&copy, command.data(), sizeof copy);
  const int answer = (this->*handler)(copy);
  return answer < 0 ? answer : static_cast<long>(command.size());
}

long Client::write(Span command, CommandFiles& files) {
  std::uint32_t number = 0;
  if (command.size() < sizeof number) return -EINVAL;
  std::memcpy(&number, command.data(), sizeof number);
  if (number == 0 || number >= wire::kOpMax) return -EINVAL;
  files_ = &files;
  using enum wire::Op;
  switch (const auto op = static_cast<wire::Op>(number)) {
    case lni_alloc: return run(command, &Client::lni_alloc);
    case lni_free: return run(command, &Client::lni_free);
    case domain_reserve: return run(command, &Client::domain_reserve);
    case domain_alloc: return run(command, &Client::domain_alloc);
    case domain_free: return run(command, &Client::domain_free);
    case cp_alloc: return run(command, &Client::cp_alloc);
    case trig_cp_alloc: return run(command, &Client::trig_cp_alloc);
    case cp_free: return run(command, &Client::cp_free);
    case cp_modify: return run(command, &Client::cp_modify);
    case cq_alloc: return run(command, &Client::cq_alloc);
    case cq_alloc_buf: return run(command, &Client::cq_alloc_buf);
    case cq_free: return run(command, &Client::cq_free);
    case cq_ack_counter: return run(command, &Client::cq_ack_counter);
    case eq_alloc: return run(command, &Client::eq_alloc);
    case eq_free: return run(command, &Client::eq_free);
    case eq_resize: return run(command, &Client::eq_resize);
    case eq_resize_complete: return run(command, &Client::eq_resize_complete);
    case eq_adjust_reserved_fc: return run(command, &Client::eq_adjust_reserved_fc);
    case ct_alloc: return run(command, &Client::ct_alloc);
    case ct_free: return run(command, &Client::ct_free);
    case ct_wb_update: return run(command, &Client::ct_wb_update);
    case atu_map: return run(command, &Client::atu_map);
    case atu_unmap: return run(command, &Client::atu_unmap);
    case atu_update_md: return run(command, &Client::atu_update_md);
    case pte_alloc: return run(command, &Client::pte_alloc);
    case pte_free: return run(command, &Client::pte_free);
    case pte_map: return run(command, &Client::pte_map);
    case pte_unmap: return run(command, &Client::pte_unmap);
    case pte_le_invalidate: return run(command, &Client::pte_le_invalidate);
    case pte_status: return run(command, &Client::pte_status);
    case pte_transition_sm: return run(command, &Client::pte_transition_sm);
    case wait_alloc: return run(command, &Client::wait_alloc);
    case wait_free: return run(command, &Client::wait_free);
    case inbound_wait: return run(command, &Client::inbound_wait);
    case dev_info_get: return run(command, &Client::dev_info_get);
    case get_dev_properties: return run(command, &Client::get_dev_properties);
    case map_csrs: return run(command, &Client::map_csrs, true);
    // A physical link's own engines: there is no such link, but the right to ask comes first.
    case sbus_op_reset:
    case sbus_op:
    case serdes_op: return who_.admin ? -EOPNOTSUPP : -EPERM;
    default: return run_service(op, command);
  }
}

long Client::run_service(wire::Op op, Span command) {
  using enum wire::Op;
  switch (op) {
    case svc_alloc: return run(command, &Client::svc_alloc, true);
    case svc_update: return run(command, &Client::svc_update, true);
    case svc_destroy: return run(command, &Client::svc_destroy, true);
    case svc_get: return run(command, &Client::svc_get);
    case svc_list_get: return run(command, &Client::svc_list_get);
    case svc_rsrc_get: return run(command, &Client::svc_rsrc_get);
    case svc_rsrc_list_get: return run(command, &Client::svc_rsrc_list_get);
    case svc_enable: return run(command, &Client::svc_enable, true);
    case svc_set_lpr: return run(command, &Client::svc_set_lpr, true);
    case svc_get_lpr: return run(command, &Client::svc_get_lpr);
    case svc_set_exclusive_cp: return run(command, &Client::svc_set_exclusive_cp, true);
    case svc_get_exclusive_cp: return run(command, &Client::svc_get_exclusive_cp);
    case svc_set_vni_range: return run(command, &Client::svc_set_vni_range, true);
    case svc_get_vni_range: return run(command, &Client::svc_get_vni_range);
    case svc_set_netns: return run(command, &Client::svc_set_netns, true);
    case svc_get_netns: return run(command, &Client::svc_get_netns);
    // Obsolete numbers, profiles (which are no client's), and what only a virtual function or an Ethernet device asks.
    default: return -EOPNOTSUPP;
  }
}

Lni* Client::lni(std::uint32_t handle) const {
  Lni* found = card_.lnis.find(handle);
  return found != nullptr && found->client == this ? found : nullptr;
}

Cq* Client::cq(std::uint32_t handle) const {
  Cq* found = own(card_.transmit_queues, handle);
  return found != nullptr ? found : own(card_.target_queues, handle);
}

}  // namespace strait::soft::cassini
