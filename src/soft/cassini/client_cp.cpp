// SPDX-License-Identifier: Apache-2.0
// Communication profiles: which network and traffic class a queue sends on, by a local number (LCID).
#include <cerrno>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"
#include "soft/cassini/strict.hpp"

namespace strait::soft::cassini {
namespace {

// An equal one is shared: number 0 inside the group, the others inside the LNI that asked for them.
std::shared_ptr<Cp> equal_cp(const Lni& lni, const wire::TrigCpAllocCmd& c) {
  const bool shares_zero = c.cp_type != wire::CpType::non_triggered;
  for (std::uint32_t lcid = 0; lcid < lni.cps.size(); ++lcid) {
    const auto& cp = lni.cps[lcid];
    if (!cp || cp->vni != c.vni || cp->tc != static_cast<std::uint32_t>(c.tc) ||
        cp->tc_type != static_cast<std::uint32_t>(c.tc_type))
      continue;
    if (shares_zero ? lcid == 0 : lcid != 0 && cp->lni == lni.id) return cp;
  }
  return nullptr;
}

// -1: none is free.
int free_lcid(const Lni& lni, wire::CpType type) {
  const std::size_t first = type == wire::CpType::non_triggered ? 1 : 0;
  const std::size_t end = type == wire::CpType::triggered ? 1 : lni.cps.size();
  for (std::size_t lcid = first; lcid < end; ++lcid) {
    if (!lni.cps[lcid]) return static_cast<int>(lcid);
  }
  return -1;
}

}  // namespace

int Client::cp_alloc(const wire::CpAllocCmd& c) {
  wire::TrigCpAllocCmd any{};
  any.resp = c.resp;
  any.lni = c.lni;
  any.vni = c.vni;
  any.tc = c.tc;
  any.tc_type = c.tc_type;
  any.cp_type = wire::CpType::any;
  return trig_cp_alloc(any);
}

int Client::trig_cp_alloc(const wire::TrigCpAllocCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr) return -EINVAL;
  // Two more Ethernet classes follow the named ones.
  const auto tc = static_cast<std::uint32_t>(c.tc);
  if (tc >= wire::kTrafficClasses + 2 || static_cast<std::uint32_t>(c.tc_type) >= wire::kTrafficClassTypes)
    return -EINVAL;
  std::shared_ptr<Profile> profile;
  if (tc >= static_cast<std::uint32_t>(wire::TrafficClass::ethernet)) {
    if (c.vni > 7) return -EINVAL;  // it is a priority there
    if (!who_.net_raw) return -EPERM;
    profile = std::make_shared<Profile>();
  } else {
    if (c.vni == 0 || c.vni > 0xffff) return -EINVAL;
    if (const int failed = profile_for(c.vni, profile); failed != 0) return failed;
    // Low latency is the device's own, for its transport.
    if (!profile->tcs[tc] || c.tc == wire::TrafficClass::low_latency) {
      profile.reset();
      forget_unused_profiles(card_);
      return -EINVAL;
    }
  }
  std::shared_ptr<Cp> cp = profile->exclusive_cp ? nullptr : equal_cp(*owner, c);
  if (!cp) {
    const int lcid = free_lcid(*owner, c.cp_type);
    if (lcid < 0) {
      profile.reset();
      forget_unused_profiles(card_);
      return -ENOSPC;
    }
    cp = std::make_shared<Cp>();
    cp->lcid = static_cast<std::uint32_t>(lcid);
    cp->vni = c.vni;
    cp->tc = tc;
    cp->tc_type = static_cast<std::uint32_t>(c.tc_type);
    cp->lni = owner->id;
    cp->profile = std::move(profile);
    owner->cps[cp->lcid] = cp;
  }
  std::uint32_t handle = 0;
  while (cps_.contains(handle)) ++handle;
  ++cp->refs;
  ++owner->refs;
  cps_[handle] = {.cp = cp, .lni = owner};
  const int failed = respond(c.resp, wire::CpAllocResp{handle, cp->lcid});
  if (failed != 0) drop_cp(handle);
  return failed;
}

int Client::cp_free(const wire::CpFreeCmd& c) {
  const auto found = cps_.find(c.cp_hndl);
  if (found == cps_.end()) return -EINVAL;
  if (strict_) strict_->freeing(card_, *found->second.lni, *found->second.cp);
  drop_cp(c.cp_hndl);
  return 0;
}

// Queues go on with the number: they find no profile behind it any more, and their commands fail.
void Client::drop_cp(std::uint32_t handle) {
  const auto found = cps_.find(handle);
  const auto [cp, owner] = found->second;
  cps_.erase(found);
  --owner->refs;
  if (--cp->refs == 0) owner->cps[cp->lcid].reset();
  if (cp->refs == 0) cp->profile.reset();
  forget_unused_profiles(card_);
}

int Client::cp_modify(const wire::CpModifyCmd& c) {
  const auto found = cps_.find(c.cp_hndl);
  if (found == cps_.end()) return -EINVAL;
  Cp& cp = *found->second.cp;
  if (!cp.profile->exclusive_cp || cp.tc >= static_cast<std::uint32_t>(wire::TrafficClass::ethernet)) return -EINVAL;
  if (!may_use(c.vni)) return -EINVAL;
  cp.vni = c.vni;
  return 0;
}

}  // namespace strait::soft::cassini
