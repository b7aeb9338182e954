// SPDX-License-Identifier: Apache-2.0
// The command rings of a CXI device, with the device that reads them: publish, ring, make room, wait for a counter.
// Rings are shorter here than any device has, so that they go round.
#pragma once

#include <vector>

#include "explore/scenarios.hpp"

namespace explore {

const std::vector<Scenario>& cxi_scenarios();

}  // namespace explore
