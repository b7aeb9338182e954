// SPDX-License-Identifier: Apache-2.0
// Graphs, recipes, tensors, launches, profiling: exported, answered with synUnsupported.
#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/synapse.hpp"

namespace strait::soft::gaudi::syn {
#define SYN_UNSUPPORTED(name)                                                                \
  STRAIT_SYN_API std::int64_t name() {                                                       \
    if (Driver* driver = Driver::get(); driver != nullptr) driver->count_unsupported(#name); \
    return kUnsupported;                                                                     \
  }
#include "soft/gaudi/synapse_unsupported.inc"
}  // namespace strait::soft::gaudi::syn
