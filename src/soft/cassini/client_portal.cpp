// SPDX-License-Identifier: Apache-2.0
// Portal table entries, and the addresses they answer at.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint32_t kPidBits = wire::kMaxPidBits;
constexpr std::uint64_t kKnownOptions = (wire::kPteEnMatchOnVni << 1) - 1;

}  // namespace

int Client::pte_alloc(const wire::PteAllocCmd& c) {
  Lni* owner = lni(c.lni_hndl);
  if (owner == nullptr) return -EINVAL;
  Eq* eq = c.evtq_hndl == wire::kEqNone ? nullptr : own(card_.event_queues, c.evtq_hndl);
  if (c.evtq_hndl != wire::kEqNone && eq == nullptr) return -EINVAL;
  if ((c.opts & wire::kPteEthernet) != 0 && !who_.net_raw) return -EPERM;
  // A number that this LNI gave up comes first: it is paid for.
  Pte* pte = nullptr;
  if (!owner->retired_ptes.empty()) {
    pte = card_.ptes.revive(owner->retired_ptes.front());
    owner->retired_ptes.erase(owner->retired_ptes.begin());
  } else {
    if (const int failed = take(card_, *owner->service, Resource::pte); failed != 0) return failed;
    pte = card_.ptes.make();
    if (pte == nullptr) {
      give_back(card_, *owner->service, Resource::pte);
      return -ENOSPC;
    }
  }
  pte->lni = owner;
  pte->eq = eq;
  pte->options = c.opts & kKnownOptions;
  pte->state = (c.opts & wire::kPteEthernet) != 0 ? wire::PteState::ethernet : wire::PteState::disabled;
  pte->pe = owner->next_pe;
  owner->next_pe = (owner->next_pe + 1) % wire::kProcessingElements;
  ++owner->refs;
  if (eq != nullptr) ++eq->refs;
  const int failed = respond(c.resp, wire::PteAllocResp{pte->id});
  if (failed != 0) drop(*pte);
  return failed;
}

int Client::pte_free(const wire::PteFreeCmd& c) {
  Pte* pte = own(card_.ptes, c.pte_number);
  if (pte == nullptr) return -EINVAL;
  if (pte->mappings != 0) return -EBUSY;
  drop(*pte);
  return 0;
}

void Client::drop(Pte& pte) {
  card_.stopping(pte);
  if (pte.eq != nullptr) --pte.eq->refs;
  --pte.lni->refs;
  pte.lni->retired_ptes.push_back(pte.id);
  card_.ptes.retire(pte.id);
}

int Client::pte_map(const wire::PteMapCmd& c) {
  Pte* pte = own(card_.ptes, c.pte_number);
  Domain* domain = own(card_.domains, c.domain_hndl);
  if (pte == nullptr || domain == nullptr || pte->lni != domain->lni) return -EINVAL;
  PteAddress address{.vni = domain->profile->match, .multicast = c.is_multicast != 0};
  if (address.multicast) {
    if (c.pid_offset >= 1u << (wire::kMulticastIdBits + wire::kIndexExtBits)) return -EINVAL;
    // One multicast to an entry.
    for (const auto& each : card_.mapping_table) {
      if (each && each->pte == pte && each->address.multicast) return -EINVAL;
    }
    address.endpoint = c.pid_offset & ((1u << wire::kMulticastIdBits) - 1);
    address.index_ext = c.pid_offset >> wire::kMulticastIdBits;
  } else {
    if (c.pid_offset >= wire::pid_granule(kPidBits)) return -EINVAL;
    address.endpoint = wire::endpoint_of(domain->pid, kPidBits, c.pid_offset);
    address.index_ext = wire::index_ext_of(c.pid_offset);
  }
  std::uint32_t index = 0;
  while (index < card_.mapping_table.size() && card_.mapping_table[index]) ++index;
  if (index == card_.mapping_table.size()) return -ENOSPC;
  // A multicast belongs to one entry of the device.
  if (address.multicast && card_.addresses.contains(address)) return -ENOSPC;
  card_.mapping_table[index] = PteMapping{.address = address, .pte = pte, .domain = domain};
  card_.addresses.emplace(address, pte);  // the lowest index wins where two are equal
  ++pte->mappings;
  ++domain->refs;
  const int failed = respond(c.resp, wire::PteMapResp{index});
  if (failed != 0) drop_mapping(index);
  return failed;
}

int Client::pte_unmap(const wire::PteUnmapCmd& c) {
  if (c.pte_index >= card_.mapping_table.size()) return -EINVAL;
  const auto& mapping = card_.mapping_table[c.pte_index];
  if (!mapping || mapping->pte->lni->client != this) return -EINVAL;
  drop_mapping(c.pte_index);
  return 0;
}

void Client::drop_mapping(std::uint32_t index) {
  const PteMapping gone = *card_.mapping_table[index];
  card_.mapping_table[index].reset();
  --gone.pte->mappings;
  --gone.domain->refs;
  card_.addresses.erase(gone.address);
  for (const auto& each : card_.mapping_table) {
    if (each && each->address == gone.address) card_.addresses.emplace(each->address, each->pte);
  }
}

// Cancels messages that are under way into a list entry. Requests land at once here, so there never are any.
int Client::pte_le_invalidate(const wire::PteLeInvalidateCmd& c) {
  return own(card_.ptes, c.pte_index) == nullptr ? -EINVAL : 0;
}

int Client::pte_status(const wire::PteStatusCmd& c) {
  const Pte* pte = own(card_.ptes, c.pte_index);
  if (pte == nullptr) return -EINVAL;
  wire::PteStatus answer{};  // a question first
  if (!memory_.read(c.resp, &answer, sizeof answer)) return -EFAULT;
  const PteStatus status = card_.status(*pte);
  answer.drop_count = status.drop_count;
  answer.state = static_cast<std::uint8_t>(status.state);
  answer.les_reserved = static_cast<std::uint16_t>(status.les_reserved);
  answer.les_allocated = static_cast<std::uint16_t>(status.les_allocated);
  answer.les_max = static_cast<std::uint16_t>(status.les_max);
  // Who brings no place for them is not told how many there are.
  std::vector<std::uint64_t> offsets;
  if (answer.ule_offsets != 0) offsets = card_.unexpected_offsets(*pte);
  const std::size_t room = std::min<std::size_t>(answer.ule_count, offsets.size());
  if (room != 0 && !memory_.write(answer.ule_offsets, offsets.data(), room * sizeof offsets[0])) return -EFAULT;
  answer.ule_count = static_cast<std::uint16_t>(offsets.size());
  return respond(c.resp, answer);
}

int Client::pte_transition_sm(const wire::PteTransitionSmCmd& c) {
  Pte* pte = own(card_.ptes, c.pte_index);
  return pte == nullptr ? -EINVAL : -card_.manage_by_software(*pte, c.drop_count);
}

}  // namespace strait::soft::cassini
