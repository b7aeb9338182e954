// SPDX-License-Identifier: Apache-2.0
// The threads that are set upon the rings. Each scenario names the bound within which it is explored completely.
#pragma once

#include <memory>
#include <vector>

#include "explore/world.hpp"

namespace explore {

struct Scenario {
  const char* name;
  Bounds bounds;
  std::unique_ptr<Program> (*make)();
};

const std::vector<Scenario>& scenarios();

}  // namespace explore
