// SPDX-License-Identifier: Apache-2.0
// What ways cost, and which NIC is therefore taken first. Pure, as the planner.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/planner.hpp"

namespace strait::plan {

// One after the other: the times add up. Unknown if either is.
[[nodiscard]] Cost in_turn(const Cost& first, const Cost& second);

// Peer-to-peer between two places, or between host memory and a device (an empty place and a device's): by the PCIe
// links between them where sysfs tells their speed, else by the distance alone. A rule of thumb, and shown as one.
[[nodiscard]] Cost between(const Place& a, const Place& b);
// Packets of a NIC that is hardware: between() and the speed of its wire. Unknown for a software NIC.
[[nodiscard]] Cost by_hardware(const Memory& memory, const Nic& nic);

// Indices of `nics`, best first: the quickest where that is known of all, then the nearest. Of several that are equal
// every one should have its turn: `rank` says which one begins.
[[nodiscard]] std::vector<std::size_t> preferred(const Memory& memory, std::span<const Nic> nics, std::size_t rank);
// Those that are as good as the first of them.
[[nodiscard]] std::vector<std::size_t> best_group(const Memory& memory, std::span<const Nic> nics);

}  // namespace strait::plan
