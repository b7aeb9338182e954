// SPDX-License-Identifier: Apache-2.0
// List entries are counted here, and portals change state here.
#include <algorithm>
#include <cerrno>

#include "soft/cassini/target.hpp"

namespace strait::soft::cassini::target {

namespace {

constexpr std::size_t kLeResource = static_cast<std::size_t>(Resource::le);

// What a service may have of one processing element's entries.
wire::Limits entry_limits(const Service* service) {
  // Who says nothing of them has no pool, and takes from the common one.
  if (service != nullptr && (service->desc.flags & wire::kSvcResourceLimits) != 0 &&
      service->desc.limits[kLeResource].max != 0)
    return service->desc.limits[kLeResource];
  return {.max = static_cast<std::uint16_t>(wire::kLesPerProcessingElement), .res = 0};
}

// Entries that other services have reserved and not used yet.
std::uint32_t kept_for_others(const Card& card, const Service* mine, std::uint32_t pe) {
  if (card.services.taken() < 2) return 0;
  std::uint32_t kept = 0;
  card.services.each([&](const Service& other) {
    if (&other == mine) return;
    const std::uint32_t reserved = entry_limits(&other).res;
    if (reserved > other.les_in_pe[pe]) kept += reserved - other.les_in_pe[pe];
  });
  return kept;
}

Service* service_of(const Pte& pte) {
  return pte.lni == nullptr ? nullptr : pte.lni->service;
}

}  // namespace

std::uint32_t processing_element(const Pte& pte) {
  return pte.pe;
}

bool take_entry(Card& card, Pte& pte) {
  const std::uint32_t pe = processing_element(pte);
  Service* service = service_of(pte);
  if (service != nullptr && service->les_in_pe[pe] >= entry_limits(service).max) return false;
  if (card.les_in_pe[pe] + kept_for_others(card, service, pe) >= wire::kLesPerProcessingElement) return false;
  ++card.les_in_pe[pe];
  ++card.les_in_use;
  if (service != nullptr) {
    ++service->les_in_pe[pe];
    ++service->in_use[kLeResource];
  }
  return true;
}

void give_entry(Card& card, Pte& pte) {
  const std::uint32_t pe = processing_element(pte);
  --card.les_in_pe[pe];
  --card.les_in_use;
  if (Service* service = service_of(pte)) {
    --service->les_in_pe[pe];
    --service->in_use[kLeResource];
  }
}

Answer disable(Card& card, Pte& pte, wire::StateChangeReason reason) {
  pte.state = wire::PteState::disabled;
  // The request that shows the shortage is dropped too. The first chips do not count it, and clients know.
  pte.drop_count = card.settings().version >= wire::CassiniVersion::v2_0 ? 1 : 0;
  post_state(card, pte, wire::ReturnCode::ok, true, reason);
  return {.code = wire::ReturnCode::pt_disabled};
}

bool room(Card& card, const Pte& pte, std::uint32_t events) {
  return pte.eq == nullptr || card.has_room(*pte.eq, events);
}

void count_entry(Card& card, const Pte& pte, const ListEntry& entry, std::uint32_t flag, std::uint64_t bytes,
                 wire::ReturnCode code) {
  if (!has(entry, flag)) return;
  Ct* ct = card.counters.find(entry.ct);
  if (ct == nullptr || ct->lni != pte.lni) return;  // the command named no counter of its owner
  if (code != wire::ReturnCode::ok) {
    card.count(*ct, 0, 1);
  } else {
    card.count(*ct, has(entry, wire::kLeEventCtBytes) ? bytes : 1, 0);
  }
}

}  // namespace strait::soft::cassini::target

namespace strait::soft::cassini {

void Card::stopping(Pte& pte) {
  for (auto& list : pte.lists) {
    for (std::size_t i = list.size(); i != 0; --i) target::give_entry(*this, pte);
    list.clear();
  }
  for (std::size_t i = pte.unexpected.size(); i != 0; --i) target::give_entry(*this, pte);
  pte.unexpected.clear();
  std::erase_if(addresses, [&](const auto& mapped) { return mapped.second == &pte; });
  pte.state = wire::PteState::reset;
}

PteStatus Card::status(const Pte& pte) const {
  const std::uint32_t pe = target::processing_element(pte);
  const Service* service = pte.lni == nullptr ? nullptr : pte.lni->service;
  const wire::Limits limits = target::entry_limits(service);
  return {.state = pte.state,
          .drop_count = pte.drop_count,
          .les_reserved = limits.res,
          .les_allocated = service == nullptr ? les_in_pe[pe] : service->les_in_pe[pe],
          .les_max = limits.max};
}

std::vector<std::uint64_t> Card::unexpected_offsets(const Pte& pte) const {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(pte.unexpected.size());
  pte.unexpected.each(
      [&](const Unexpected& header) { offsets.push_back(header.rendezvous ? header.remote_offset : header.start); });
  return offsets;
}

int Card::manage_by_software(Pte& pte, std::uint32_t drop_count) {
  if (pte.state == wire::PteState::software_managed) return 0;
  if (pte.state != wire::PteState::disabled) return EINVAL;
  if (pte.drop_count != drop_count) return EAGAIN;
  pte.state = wire::PteState::software_managed;
  pte.drop_count = 0;
  return 0;
}

}  // namespace strait::soft::cassini
