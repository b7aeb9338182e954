// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/card.hpp"

#include "soft/cassini/services.hpp"
#include "sys/pause.hpp"

namespace strait::soft::cassini {

namespace {
constexpr std::uint32_t kFirstNid = 0x100;
}  // namespace

Card::Card(Fabric& fabric, CardSettings settings) : fabric_(fabric), settings_(settings) {
  mapping_table.resize(wire::kNumPteMappings);
  const auto totals = device_totals();
  for (std::size_t i = 0; i < kResources; ++i) resources[i] = {.max = totals[i], .shared = totals[i]};
  make_default_service(*this);
}

Card::~Card() = default;

Profile* Card::profile_of(std::uint32_t vni) const {
  for (const auto& profile : profiles) {
    if (profile->enabled && profile->covers(vni)) return profile.get();
  }
  return nullptr;
}

Pte* Card::at(std::uint32_t vni, std::uint32_t endpoint, std::uint32_t index_ext) const {
  const Profile* profile = profile_of(vni);
  if (profile == nullptr) return nullptr;
  const auto found =
      addresses.find({.vni = profile->match, .endpoint = endpoint, .index_ext = index_ext, .multicast = false});
  return found == addresses.end() ? nullptr : found->second;
}

std::uint32_t Card::rgids_available() const {
  std::uint32_t free = 0;
  for (std::uint32_t i = 1; i < rgids.size(); ++i) free += rgids[i] == nullptr ? 1 : 0;
  return free;
}

Fabric::Fabric(std::uint32_t cards) {
  // Network ids are anything but 0, which tests of others take for "unknown".
  for (std::uint32_t i = 0; i < cards; ++i)
    cards_.push_back(std::make_unique<Card>(*this, CardSettings{.index = i, .nid = kFirstNid + i}));
}

Card* Fabric::by_nid(std::uint32_t nid) {
  if (nid - kFirstNid < cards_.size() && cards_[nid - kFirstNid]->settings().nid == nid)
    return cards_[nid - kFirstNid].get();
  for (const auto& card : cards_) {
    if (card->settings().nid == nid) return card.get();
  }
  return nullptr;
}

std::uint32_t Fabric::drive() {
  std::uint32_t done = 0;
  for (const auto& card : cards_) {
    if (card->unused()) continue;
    const std::uint32_t here = card->drive();
    if (here != 0) busiest_ = card.get();
    done += here;
  }
  return done;
}

void Fabric::await_busiest(std::uint32_t looks) {
  const Card* const card = busiest_;
  do {
    sys::pause_turn(0);
  } while (card != nullptr && --looks != 0 && !card->has_news());
}

}  // namespace strait::soft::cassini
