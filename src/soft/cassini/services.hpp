// SPDX-License-Identifier: Apache-2.0
// Services of a card: who may use it, which networks there are, how much of everything a service has. As the driver
// keeps them: they belong to the card and outlive the client that made them. Answers are 0 or -errno.
#pragma once

#include <array>
#include <cstdint>

#include "soft/cassini/card.hpp"

namespace strait::soft::cassini {

struct Who;

inline constexpr std::uint32_t kLePools = 16;

// What the device has of each resource; list entries are those of one processing element.
[[nodiscard]] std::array<std::uint16_t, kResources> device_totals();
// What DEV_INFO_GET answers, and the files of sysfs say.
[[nodiscard]] wire::DevInfo device_info(const CardSettings& card);
void make_default_service(Card& card);

[[nodiscard]] bool admits(const AccessList& list, const Who& who);

// A new network, or -EEXIST when it meets one that is there.
[[nodiscard]] int make_profile(Card& card, std::uint32_t match, std::uint32_t ignore, std::shared_ptr<Profile>& out);
// Profiles that nobody but the card holds go.
void forget_unused_profiles(Card& card);

int make_service(Card& card, const wire::SvcDesc& desc, wire::SvcFailInfo& fail, std::uint32_t& id);
int destroy_service(Card& card, std::uint32_t id);
int update_service(Card& card, const wire::SvcDesc& desc);
int enable_service(Card& card, std::uint32_t id, bool enable);
int set_lnis_per_rgid(Card& card, std::uint32_t id, std::uint32_t lnis);
int set_exclusive_cp(Card& card, std::uint32_t id, bool exclusive);
int set_vni_range(Card& card, std::uint32_t id, std::uint32_t min, std::uint32_t max);
int set_netns(Card& card, std::uint32_t id, std::uint32_t netns);
[[nodiscard]] wire::RsrcUse resource_use(Card& card, const Service& service);

// One more of it, or one less, for a service: -EKEYREVOKED, -ENOSPC.
[[nodiscard]] int take(Card& card, Service& service, Resource resource);
void give_back(Card& card, Service& service, Resource resource);

}  // namespace strait::soft::cassini
