// SPDX-License-Identifier: Apache-2.0
// Counters for people: grouped, one a line, each with what it counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tool/json.hpp"

namespace strait::tool {

// All that strait_node_info() counted, as text within 80 columns.
[[nodiscard]] std::string counters_page(const Json& info);

// One counter of the NICs, summed over them; 0 where none has it.
[[nodiscard]] std::uint64_t nic_counter(const Json& info, std::string_view name);

}  // namespace strait::tool
