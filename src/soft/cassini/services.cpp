// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/services.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/cassini/client.hpp"

namespace strait::soft::cassini {

std::array<std::uint16_t, kResources> device_totals() {
  return {wire::kNumPtes,   wire::kNumTransmitCqs,          wire::kNumTargetCqs, wire::kUsableEqs,
          wire::kUsableCts, wire::kLesPerProcessingElement, wire::kNumTles,      wire::kUsableAcs};
}

bool admits(const AccessList& list, const Who& who) {
  return std::any_of(list.begin(), list.end(), [&](const Access& each) {
    switch (each.kind) {
      case Access::Kind::open: return true;
      case Access::Kind::uid: return each.id == who.uid;
      case Access::Kind::gid: return each.id == who.gid;
      case Access::Kind::netns: return each.id == who.netns;
    }
    return false;
  });
}

// ---- Networks -------------------------------------------------------------------------------------------------------

int make_profile(Card& card, std::uint32_t match, std::uint32_t ignore, std::shared_ptr<Profile>& out) {
  for (const auto& other : card.profiles) {
    // They meet where all bits agree that both look at.
    if (((other->match ^ match) & ~(other->ignore | ignore)) == 0) return -EEXIST;
  }
  out = std::make_shared<Profile>();
  out->match = match;
  out->ignore = ignore;
  card.profiles.push_back(out);
  return 0;
}

void forget_unused_profiles(Card& card) {
  std::erase_if(card.profiles, [](const std::shared_ptr<Profile>& each) { return each.use_count() == 1; });
}

// ---- Resources ------------------------------------------------------------------------------------------------------

int take(Card& card, Service& service, Resource resource) {
  if (!service.enabled()) return -EKEYREVOKED;
  const auto i = static_cast<std::size_t>(resource);
  const wire::Limits& limits = service.desc.limits[i];
  ResourceUse& use = card.resources[i];
  if (service.in_use[i] >= limits.res) {
    // The driver compares with all that the device has, so that others can use up what was reserved. Not here.
    if (service.in_use[i] >= limits.max || use.shared_use >= use.shared) return -ENOSPC;
    ++use.shared_use;
  }
  ++service.in_use[i];
  return 0;
}

void give_back(Card& card, Service& service, Resource resource) {
  const auto i = static_cast<std::size_t>(resource);
  if (service.in_use[i] > service.desc.limits[i].res) --card.resources[i].shared_use;
  --service.in_use[i];
}

namespace {

constexpr auto kLe = static_cast<std::size_t>(Resource::le);
constexpr auto kTle = static_cast<std::size_t>(Resource::tle);

// The lowest number of [first, end) that no service has; none: all are taken.
template <class Member>
std::optional<std::uint32_t> free_pool(Card& card, std::uint32_t first, std::uint32_t end, Member member) {
  for (std::uint32_t pool = first; pool < end; ++pool) {
    bool taken = false;
    card.services.each([&](const Service& each) { taken = taken || each.*member == pool; });
    if (!taken) return pool;
  }
  return std::nullopt;
}

bool valid_vni(std::uint32_t vni) {
  return vni >= 1 && vni <= 0xffff;
}

int check(const wire::SvcDesc& desc) {
  if ((desc.flags & wire::kSvcRestrictedVnis) != 0) {
    if (desc.num_vld_vnis > wire::kMaxServiceVnis) return -EINVAL;
    for (std::size_t i = 0; i < desc.num_vld_vnis; ++i) {
      if (!valid_vni(desc.vnis[i])) return -EINVAL;
    }
  }
  if ((desc.flags & wire::kSvcRestrictedMembers) != 0) {
    for (const wire::SvcMember& each : desc.members) {
      if (static_cast<std::uint32_t>(each.type) >= wire::kMemberTypes) return -EINVAL;
    }
  }
  if ((desc.flags & wire::kSvcResourceLimits) != 0) {
    const auto totals = device_totals();
    for (std::size_t i = 0; i < kResources; ++i) {
      if (desc.limits[i].max < desc.limits[i].res || desc.limits[i].max > totals[i]) return -EINVAL;
    }
  }
  return 0;
}

AccessList access_of(const wire::SvcDesc& desc) {
  if ((desc.flags & wire::kSvcRestrictedMembers) == 0) return {Access{}};
  AccessList list;
  for (const wire::SvcMember& each : desc.members) {
    if (each.type == wire::MemberType::uid) list.push_back({Access::Kind::uid, each.id});
    if (each.type == wire::MemberType::gid) list.push_back({Access::Kind::gid, each.id});
    if (each.type == wire::MemberType::net_ns) list.push_back({Access::Kind::netns, each.id});
  }
  return list;
}

int add_profile(Card& card, Service& service, std::uint32_t match, std::uint32_t ignore) {
  std::shared_ptr<Profile> profile;
  if (const int failed = make_profile(card, match, ignore, profile); failed != 0) return failed;
  profile->access = service.access;
  for (std::size_t i = 0; i < profile->tcs.size(); ++i)
    profile->tcs[i] = !service.has(wire::kSvcRestrictedTcs) || service.desc.tcs[i] != 0;
  profile->enabled = service.enabled();
  service.profiles.push_back(std::move(profile));
  return 0;
}

void switch_on(Service& service, bool on) {
  service.desc.flags =
      static_cast<std::uint8_t>(on ? service.desc.flags | wire::kSvcEnable : service.desc.flags & ~wire::kSvcEnable);
  for (const auto& profile : service.profiles) profile->enabled = on;
}

// Limits as they will be kept, and the reservations they hold. Says in `fail` what there would have been.
int reserve(Card& card, Service& service, wire::SvcFailInfo& fail) {
  wire::SvcDesc& desc = service.desc;
  if (!service.has(wire::kSvcResourceLimits)) {
    const auto totals = device_totals();
    for (std::size_t i = 0; i < kResources; ++i) desc.limits[i] = {.max = totals[i], .res = 0};
  }
  for (std::size_t i = 0; i < kResources; ++i) {
    wire::Limits& limits = desc.limits[i];
    if (limits.res == 0 && limits.max == 0) continue;
    // Triggered entries are never shared between services: all that may be used is reserved.
    if (i == kTle && service.id != wire::kDefaultService) {
      limits.res = std::max(limits.res, static_cast<std::uint16_t>(wire::kMinTlePool));
      limits.max = limits.res;
    }
    if (i != kTle) fail.rsrc_avail[i] = static_cast<std::uint16_t>(card.resources[i].shared);
    if (limits.res > card.resources[i].shared) return -ENOSPC;
  }
  if (desc.limits[kLe].res != 0) {
    service.le_pool = free_pool(card, 1, kLePools, &Service::le_pool);
    fail.no_le_pools = service.le_pool ? 0 : 1;
    if (!service.le_pool) return -ENOSPC;
  }
  if (desc.limits[kTle].res != 0) {
    service.tle_pool = free_pool(card, 0, wire::kTlePools, &Service::tle_pool);
    fail.no_tle_pools = service.tle_pool ? 0 : 1;
    if (!service.tle_pool) return -ENOSPC;
  }
  for (std::size_t i = 0; i < kResources; ++i) card.resources[i].shared -= desc.limits[i].res;
  return 0;
}

void remove(Card& card, Service& service) {
  // Who still uses one of its networks may go on; nobody new is admitted.
  for (const auto& profile : service.profiles) profile->access.clear();
  card.services.give_back(service.id);
  forget_unused_profiles(card);
}

}  // namespace

// ---- Services -------------------------------------------------------------------------------------------------------

int make_service(Card& card, const wire::SvcDesc& desc, wire::SvcFailInfo& fail, std::uint32_t& id) {
  if (const int failed = check(desc); failed != 0) return failed;
  Service* service = card.services.make();
  if (service == nullptr) return -ENOSPC;
  service->desc = desc;
  service->desc.svc_id = service->id;
  service->access = access_of(desc);
  // A service without VNIs of its own waits for its range.
  switch_on(*service, service->has(wire::kSvcRestrictedVnis));
  int failed = 0;
  if (service->has(wire::kSvcRestrictedVnis)) {
    for (std::size_t i = 0; i < desc.num_vld_vnis && failed == 0; ++i)
      failed = add_profile(card, *service, desc.vnis[i], 0);
  }
  if (failed == 0) failed = reserve(card, *service, fail);
  if (failed != 0) {
    remove(card, *service);
    return failed;
  }
  id = service->id;
  return 0;
}

void make_default_service(Card& card) {
  constexpr std::uint16_t kDefaultTles = 512;
  wire::SvcDesc desc{};
  desc.flags = wire::kSvcRestrictedVnis | wire::kSvcResourceLimits;
  desc.num_vld_vnis = 2;
  desc.vnis[0] = 1;
  desc.vnis[1] = 10;
  for (std::size_t tc = 0; tc < 4; ++tc) desc.tcs[tc] = 1;
  const auto totals = device_totals();
  for (std::size_t i = 0; i < kResources; ++i) desc.limits[i] = {.max = totals[i], .res = 0};
  desc.limits[kTle] = {.max = kDefaultTles, .res = kDefaultTles};
  // The driver ships it switched off, and every installation that has no job launcher switches it on.
  wire::SvcFailInfo fail{};
  std::uint32_t id = 0;
  (void)make_service(card, desc, fail, id);
}

int destroy_service(Card& card, std::uint32_t id) {
  Service* service = card.services.find(id);
  if (id == wire::kDefaultService || service == nullptr) return -EINVAL;
  if (service->lnis != 0) return -EBUSY;
  for (std::size_t i = 0; i < kResources; ++i) card.resources[i].shared += service->desc.limits[i].res;
  remove(card, *service);
  return 0;
}

int update_service(Card& card, const wire::SvcDesc& desc) {
  if (const int failed = check(desc); failed != 0) return failed;
  Service* service = card.services.find(desc.svc_id);
  if (service == nullptr) return -EINVAL;
  if (service->lnis != 0) return -EBUSY;
  if (((service->desc.flags ^ desc.flags) & wire::kSvcResourceLimits) != 0) return -EINVAL;
  // Limits, networks and who is admitted stay what they were; the description is what it is told.
  const std::uint8_t system = service->desc.flags & wire::kSvcIsSystem;
  wire::SvcDesc next = desc;
  std::copy(std::begin(service->desc.limits), std::end(service->desc.limits), std::begin(next.limits));
  next.flags = static_cast<std::uint8_t>((desc.flags & ~wire::kSvcIsSystem) | system);
  service->desc = next;
  switch_on(*service, (desc.flags & wire::kSvcEnable) != 0);
  return 0;
}

int enable_service(Card& card, std::uint32_t id, bool enable) {
  Service* service = card.services.find(id);
  if (service == nullptr) return -EINVAL;
  if (service->lnis != 0) return -EBUSY;
  switch_on(*service, enable);
  return 0;
}

int set_lnis_per_rgid(Card& card, std::uint32_t id, std::uint32_t lnis) {
  if (lnis > wire::kLacsPerRgid) return -EINVAL;
  Service* service = card.services.find(id);
  if (service == nullptr) return -EINVAL;
  if (service->lnis != 0) return -EBUSY;
  service->lnis_per_rgid = lnis;
  return 0;
}

int set_exclusive_cp(Card& card, std::uint32_t id, bool exclusive) {
  Service* service = card.services.find(id);
  if (service == nullptr || service->has(wire::kSvcRestrictedVnis) || service->profiles.empty()) return -EINVAL;
  // Communication profiles that are shared already cannot be made anybody's own.
  if (service->profiles.front()->enabled) return -EBUSY;
  service->profiles.front()->exclusive_cp = exclusive;
  return 0;
}

int set_vni_range(Card& card, std::uint32_t id, std::uint32_t min, std::uint32_t max) {
  Service* service = card.services.find(id);
  if (service == nullptr || service->has(wire::kSvcRestrictedVnis)) return -EINVAL;
  if (!valid_vni(min) || !valid_vni(max) || max < min) return -EINVAL;
  const std::uint32_t range = max - min + 1;
  if ((range & (range - 1)) != 0 || (min & (range - 1)) != 0) return -EINVAL;
  const auto before = std::move(service->profiles);
  service->profiles.clear();
  const int failed = add_profile(card, *service, min, range - 1);
  if (failed != 0) {
    service->profiles = before;
    return failed;
  }
  service->desc.num_vld_vnis = 1;
  return 0;
}

int set_netns(Card& card, std::uint32_t id, std::uint32_t netns) {
  Service* service = card.services.find(id);
  if (service == nullptr) return -EINVAL;
  for (const Access& each : service->access) {
    if (each.kind != Access::Kind::netns) return -EEXIST;
  }
  service->access = {{Access::Kind::netns, netns}};
  for (const auto& profile : service->profiles) profile->access.push_back({Access::Kind::netns, netns});
  return 0;
}

wire::RsrcUse resource_use(Card& card, const Service& service) {
  wire::RsrcUse use{};
  use.svc_id = service.id;
  for (std::size_t i = 0; i < kResources; ++i) use.in_use[i] = static_cast<std::uint16_t>(service.in_use[i]);
  // Of pools that several services share nobody can say who has how much.
  use.in_use[kLe] = use.in_use[kTle] = 0xffff;
  if (service.le_pool || service.id == wire::kDefaultService)
    use.in_use[kLe] = static_cast<std::uint16_t>(service.les_in_pe[0]);
  if (service.tle_pool) {
    std::size_t tles = 0;
    card.counters.each([&](const Ct& ct) { tles += ct.lni->service == &service ? ct.triggers.size() : 0; });
    use.in_use[kTle] = static_cast<std::uint16_t>(tles);
    use.tle_pool_id = *service.tle_pool;
  }
  return use;
}

}  // namespace strait::soft::cassini
