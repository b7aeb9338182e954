// SPDX-License-Identifier: Apache-2.0
// What every entry point begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "soft/hsa/functions.hpp"
#include "soft/hsa/runtime.hpp"

// auto runtime = the open one, or the function answers NOT_INITIALIZED.
#define STRAIT_HSA_OPEN(runtime)                               \
  const auto runtime = ::strait::soft::hsa::current_runtime(); \
  if (!runtime) return ::strait::soft::hsa::kNotInitialized

namespace strait::soft::hsa {

// Bits of the nodes of `n` agents. False: one of them is none.
[[nodiscard]] inline bool nodes_of(const Runtime& runtime, std::uint32_t n, const Agent* agents, std::uint64_t& nodes) {
  nodes = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t node = 0;
    if (!runtime.node_of(agents[i], node)) return false;
    nodes |= std::uint64_t{1} << node;
  }
  return true;
}

}  // namespace strait::soft::hsa
