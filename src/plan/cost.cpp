// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <numeric>

namespace strait::plan {
namespace {

// What is left of a link's rate behind headers, acknowledgements and read requests.
constexpr double kPciePayload = 0.85;

// How fast two devices below one switch are when sysfs does not say: PCIe 4.0 with 16 lanes, a little less.
constexpr double kSwitchGbS = 24;

// Beyond a switch the processor forwards, and sets the pace whatever the links could do. Infinite: it does not matter.
struct Pace {
  double latency_us = 0;
  double gb_s = 0;
};
Pace pace(Nearness nearness) {
  switch (nearness) {
    case Nearness::same_device:
    case Nearness::one_switch:
    case Nearness::switches: return {2, INFINITY};
    case Nearness::root_complex: return {2.5, 12};
    case Nearness::numa_node: return {3, 8};
    case Nearness::machine: return {4, 3};
    case Nearness::unknown: break;
  }
  return {};
}

// The slowest link between the two, in what arrives: parts of both paths that they do not have in common. A port and
// the device below it both name the link between them. 0: not said.
double slowest_link(const Place& a, const Place& b) {
  const auto [at, other] = std::ranges::mismatch(a.path, b.path);
  const auto common = static_cast<std::size_t>(at - a.path.begin());
  double least = INFINITY;
  for (const Place* const place : {&a, &b}) {
    for (std::size_t i = common; i < place->link_gb_s.size(); ++i) {
      if (place->link_gb_s[i] > 0) least = std::min(least, place->link_gb_s[i]);
    }
  }
  return std::isinf(least) ? 0 : least * kPciePayload;
}

// Rates are compared in steps of a twentieth: less is no reason to go further.
struct Merit {
  double minus_gb_s = 0;
  Distance distance;
  friend auto operator<=>(const Merit&, const Merit&) = default;
};

std::vector<Merit> merits(const Memory& memory, std::span<const Nic> nics) {
  std::vector<Merit> all;
  bool known = true;
  for (const Nic& nic : nics) {
    const Cost cost = by_hardware(memory, nic);
    known = known && cost.known();
    all.push_back({cost.known() ? -std::round(std::log(cost.gb_s) * 20) : 0, distance(memory.place, nic.place)});
  }
  if (!known) {
    for (Merit& each : all) each.minus_gb_s = 0;
  }
  return all;
}

}  // namespace

Cost in_turn(const Cost& first, const Cost& second) {
  if (!first.known() || !second.known()) return {};
  return {first.latency_us + second.latency_us, 1 / (1 / first.gb_s + 1 / second.gb_s), false,
          fmt::format("{}, then {}", first.basis, second.basis)};
}

Cost between(const Place& a, const Place& b) {
  const double link = slowest_link(a, b);
  if (a.path.empty() || b.path.empty()) {
    return link > 0 ? Cost{2, link, false, fmt::format("PCIe {:.1f} GB/s", link)} : Cost{};
  }
  const Distance apart = distance(a, b);
  const Pace most = pace(apart.nearness);
  if (link > 0 && link < most.gb_s)
    return {most.latency_us, link, false, fmt::format("PCIe {:.1f} GB/s, {}", link, distance_text(apart))};
  return {most.latency_us, std::isinf(most.gb_s) ? kSwitchGbS : most.gb_s, false,
          "usual for devices " + distance_text(apart)};
}

Cost by_hardware(const Memory& memory, const Nic& nic) {
  if (nic.software) return {};
  // Host memory may lie anywhere, and a device whose place nobody knows as well.
  Cost cost = between(memory.accelerator ? memory.place : Place{}, nic.place);
  if (memory.accelerator && memory.place.path.empty()) return {};
  if (nic.port_gb_s <= 0 || (cost.known() && cost.gb_s <= nic.port_gb_s)) return cost;
  return {std::max(cost.latency_us, 2.0), nic.port_gb_s, false,
          fmt::format("{}'s wire of {:.0f} Gb/s", nic.name, nic.port_gb_s * 8)};
}

std::vector<std::size_t> preferred(const Memory& memory, std::span<const Nic> nics, std::size_t rank) {
  const std::vector<Merit> all = merits(memory, nics);
  std::vector<std::size_t> order(nics.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::tie(all[i].minus_gb_s, all[i].distance); });
  // Within each group of equals, begin with another one for each device.
  for (auto from = order.begin(); from != order.end();) {
    const auto to = std::find_if(from, order.end(), [&](std::size_t i) { return all[i] != all[*from]; });
    std::rotate(from, from + static_cast<std::ptrdiff_t>(rank % static_cast<std::size_t>(to - from)), to);
    from = to;
  }
  return order;
}

std::vector<std::size_t> best_group(const Memory& memory, std::span<const Nic> nics) {
  const std::vector<Merit> all = merits(memory, nics);
  std::vector<std::size_t> group;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!group.empty() && std::is_lt(all[i] <=> all[group.front()])) group.clear();
    if (group.empty() || all[i] == all[group.front()]) group.push_back(i);
  }
  return group;
}

}  // namespace strait::plan
