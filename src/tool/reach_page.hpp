// SPDX-License-Identifier: Apache-2.0
// What strait_node_reach() found, as text within 80 columns: a table of memory, NIC and way, the reasons below it, and
// what everybody needs from the machine.
#pragma once

#include <string>

#include "tool/json.hpp"

namespace strait::tool {

[[nodiscard]] std::string reach_page(const Json& reach);
[[nodiscard]] std::string requirements_page(const Json& reach);

}  // namespace strait::tool
