// SPDX-License-Identifier: Apache-2.0
#include "plan/place.hpp"

#include <algorithm>
#include <compare>

namespace strait::plan {

Distance distance(const Place& a, const Place& b) {
  if (a.path.empty() || b.path.empty()) return {};
  if (a.path == b.path) return {Nearness::same_device, 0};
  const auto [at, other] = std::ranges::mismatch(a.path, b.path);
  const auto common = static_cast<std::size_t>(at - a.path.begin());
  // The device itself is no bridge, and neither is the root complex.
  const auto crossed = static_cast<unsigned>(a.path.size() - 1 - common + b.path.size() - 1 - common);
  if (common == 0) {
    const bool known = a.numa_node >= 0 && b.numa_node >= 0;
    return {known && a.numa_node == b.numa_node ? Nearness::numa_node : Nearness::machine, crossed};
  }
  // Only the root complex in common, or a root port as well: below a port is a switch, whose own ports count as one.
  if (common == 1) return {Nearness::root_complex, crossed};
  return {crossed <= 2 ? Nearness::one_switch : Nearness::switches, crossed};
}

std::string distance_text(const Distance& distance) {
  switch (distance.nearness) {
    case Nearness::same_device: return "the same device";
    case Nearness::one_switch: return "below one PCIe switch";
    case Nearness::switches: return "below one root port, several switches between";
    case Nearness::root_complex: return "at one root complex";
    case Nearness::numa_node: return "at two root complexes of one NUMA node";
    case Nearness::machine: return "across NUMA nodes";
    case Nearness::unknown: break;
  }
  return {};
}

const char* distance_word(Nearness nearness) {
  switch (nearness) {
    case Nearness::same_device: return "X";
    case Nearness::one_switch: return "PIX";
    case Nearness::switches: return "PXB";
    case Nearness::root_complex: return "PHB";
    case Nearness::numa_node: return "NODE";
    case Nearness::machine: return "SYS";
    case Nearness::unknown: break;
  }
  return "-";
}

}  // namespace strait::plan
