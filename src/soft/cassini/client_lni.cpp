// SPDX-License-Identifier: Apache-2.0
// LNIs and what they clean up when they go, domains and PIDs.
#include <algorithm>
#include <cerrno>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint32_t kPidCount = wire::kPidAny;  // 511 of nine bits: the last stands for "any"

bool vni_is_valid(std::uint32_t vni) {
  return vni >= 1 && vni <= 0xffff;
}

// A group with room for one more LNI of the service, or a new one; null: all 255 are taken.
std::shared_ptr<Rgid> join_group(Card& card, const Service& service) {
  for (const auto& group : card.rgids) {
    if (group && group->service == service.id && group->capacity == service.lnis_per_rgid &&
        group->lnis < group->capacity)
      return group;
  }
  for (std::uint32_t i = 1; i < card.rgids.size(); ++i) {
    if (card.rgids[i]) continue;
    card.rgids[i] = std::make_shared<Rgid>();
    card.rgids[i]->id = i;
    card.rgids[i]->service = service.id;
    card.rgids[i]->capacity = service.lnis_per_rgid;
    return card.rgids[i];
  }
  return nullptr;
}

bool reserved_by(const Lni& lni, const Profile& profile, std::uint32_t pid) {
  return std::any_of(lni.reserved_pids.begin(), lni.reserved_pids.end(),
                     [&](const Lni::Reserved& each) { return each.profile.get() == &profile && each.pids.test(pid); });
}

// First PID from `start` on that begins `count` free ones; kPidCount: there is none.
std::uint32_t free_run(const Profile& profile, std::uint32_t start, std::uint32_t count) {
  std::uint32_t length = 0;
  for (std::uint32_t pid = start; pid < kPidCount; ++pid) {
    length = profile.pids.test(pid) ? 0 : length + 1;
    if (length == count) return pid + 1 - count;
  }
  return kPidCount;
}

// The first of `count` PIDs that are taken from now on, or -errno. A PID asked for by name may be one reserved before.
int take_pids(const Lni& lni, Profile& profile, std::uint32_t pid, std::uint32_t count, bool reserve) {
  std::uint32_t first = pid;
  if (pid == wire::kPidAny) {
    first = free_run(profile, 0, count);
    // The last PID is never found this way.
    if (first + count >= kPidCount) return -ENOSPC;
  } else if (reserve) {
    // A range may begin later than asked for, but not behind all that was asked for.
    first = free_run(profile, pid, count);
    if (first >= pid + count || first == kPidCount) return -EEXIST;
  } else if (profile.pids.test(pid) && !reserved_by(lni, profile, pid)) {
    return -EEXIST;
  }
  for (std::uint32_t i = 0; i < count; ++i) profile.pids.set(first + i);
  return static_cast<int>(first);
}

}  // namespace

int Client::lni_alloc(const wire::LniAllocCmd& c) {
  Service* service = card_.services.find(c.svc_id);
  if (service == nullptr) return -EINVAL;
  if (!service->enabled()) return -EKEYREVOKED;
  if (!admits(service->access, who_)) return -EPERM;
  std::shared_ptr<Rgid> group = join_group(card_, *service);
  if (group == nullptr) return -ENOSPC;
  Lni* lni = card_.lnis.make(group);
  if (lni == nullptr) return -ENOSPC;
  lni->service = service;
  lni->client = this;
  lni->strict = strict_.get();
  lni->faults = faults_.get();
  lni->next_pe = group->id % wire::kProcessingElements;
  ++group->lnis;
  ++service->lnis;
  const int failed = respond(c.resp, wire::LniAllocResp{lni->id});
  if (failed != 0) drop(*lni);
  return failed;
}

int Client::lni_free(const wire::LniFreeCmd& c) {
  Lni* found = lni(c.lni);
  if (found == nullptr) return -EINVAL;
  if (found->refs != 0) return -EBUSY;
  drop(*found);
  return 0;
}

// Numbers and credits of what was freed return. The engine holds nothing of a queue that stopped, so nothing is
// waited for.
void Client::clean_queues(Lni& lni) {
  for (const std::uint32_t id : lni.retired_cqs) {
    const bool transmit = id < wire::kFirstTargetCq;
    (transmit ? card_.transmit_queues : card_.target_queues).give_back(id);
    give_back(card_, *lni.service, transmit ? Resource::txq : Resource::tgq);
  }
  lni.retired_cqs.clear();
}

void Client::clean(Lni& lni) {
  clean_queues(lni);
  for (const std::uint32_t id : lni.retired_ptes) {
    card_.ptes.give_back(id);
    give_back(card_, *lni.service, Resource::pte);
  }
  for (const std::uint32_t id : lni.retired_eqs) {
    card_.event_queues.give_back(id);
    give_back(card_, *lni.service, Resource::eq);
  }
  for (const std::uint32_t id : lni.retired_cts) {
    card_.counters.give_back(id);
    give_back(card_, *lni.service, Resource::ct);
  }
  for (auto& context : lni.acs) {
    if (!context || context->lni != &lni) continue;
    card_.acs.reset(context->ac);
    give_back(card_, *lni.service, Resource::ac);
    context.reset();
  }
}

void Client::drop(Lni& lni) {
  for (const Lni::Reserved& each : lni.reserved_pids) each.profile->pids &= ~each.pids;
  lni.reserved_pids.clear();
  clean(lni);
  --lni.service->lnis;
  if (--lni.rgid->lnis == 0) card_.rgids[lni.rgid->id].reset();
  card_.lnis.give_back(lni.id);
  forget_unused_profiles(card_);
}

// ---- Networks -------------------------------------------------------------------------------------------------------

bool Client::may_use(std::uint32_t vni) const {
  const Profile* profile = card_.profile_of(vni);
  return profile != nullptr && admits(profile->access, who_);
}

int Client::profile_for(std::uint32_t vni, std::shared_ptr<Profile>& out) {
  for (const auto& profile : card_.profiles) {
    if (!profile->enabled || !profile->covers(vni)) continue;
    if (!admits(profile->access, who_)) return -EPERM;
    out = profile;
    return 0;
  }
  if (who_.uid != 0) return -ENOENT;
  // For root there is always a network: made for it alone, and gone with its last user.
  if (const int failed = make_profile(card_, vni, 0, out); failed != 0) return failed;
  out->access = {{Access::Kind::uid, who_.uid}};
  out->tcs.fill(true);
  out->enabled = true;
  return 0;
}

// ---- Domains --------------------------------------------------------------------------------------------------------

int Client::domain_reserve(const wire::DomainReserveCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr || !vni_is_valid(c.vni) || !may_use(c.vni)) return -EINVAL;
  if (c.pid >= kPidCount && c.pid != wire::kPidAny) return -EINVAL;
  if (c.count == 0 || c.count > kPidCount) return -EINVAL;
  std::shared_ptr<Profile> profile;
  if (const int failed = profile_for(c.vni, profile); failed != 0) return failed;
  const int first = take_pids(*owner, *profile, c.pid, c.count, true);
  if (first < 0) return first;
  Lni::Reserved reserved{.profile = std::move(profile), .pids = {}};
  for (std::uint32_t i = 0; i < c.count; ++i) reserved.pids.set(static_cast<std::uint32_t>(first) + i);
  owner->reserved_pids.push_back(std::move(reserved));
  return respond(c.resp, wire::DomainReserveResp{static_cast<std::uint32_t>(first)});
}

int Client::domain_alloc(const wire::DomainAllocCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr || !vni_is_valid(c.vni)) return -EINVAL;
  if (c.pid >= kPidCount && c.pid != wire::kPidAny) return -EINVAL;
  std::shared_ptr<Profile> profile;
  int failed = profile_for(c.vni, profile);
  if (failed != 0) return failed;
  // A reserved PID may be named again and again; two domains of the same network and PID there are not.
  bool twice = false;
  card_.domains.each([&](const Domain& each) { twice = twice || (each.vni == c.vni && each.pid == c.pid); });
  const int pid = twice ? -EEXIST : take_pids(*owner, *profile, c.pid, 1, false);
  Domain* domain = pid < 0 ? nullptr : card_.domains.make();
  if (domain == nullptr) {
    if (pid >= 0) profile->pids.reset(static_cast<std::uint32_t>(pid));
    profile.reset();
    forget_unused_profiles(card_);
    return pid < 0 ? pid : -ENOSPC;
  }
  domain->lni = owner;
  domain->vni = c.vni;
  domain->pid = static_cast<std::uint32_t>(pid);
  domain->profile = std::move(profile);
  ++owner->refs;
  failed = respond(c.resp, wire::DomainAllocResp{domain->id, domain->vni, domain->pid});
  if (failed != 0) drop(*domain);
  return failed;
}

int Client::domain_free(const wire::DomainFreeCmd& c) {
  Domain* domain = own(card_.domains, c.domain);
  if (domain == nullptr) return -EINVAL;
  if (domain->refs != 0) return -EBUSY;
  drop(*domain);
  return 0;
}

void Client::drop(Domain& domain) {
  domain.profile->pids.reset(domain.pid);  // also one that was reserved
  --domain.lni->refs;
  card_.domains.give_back(domain.id);
  forget_unused_profiles(card_);
}

}  // namespace strait::soft::cassini
