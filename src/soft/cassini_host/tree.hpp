// SPDX-License-Identifier: Apache-2.0
// What sysfs says about the cards of a run, and their nodes.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "soft/host/root.hpp"

namespace strait::soft::cassini {

[[nodiscard]] Status write_tree(host::Root& root, std::uint32_t cards);

}  // namespace strait::soft::cassini
