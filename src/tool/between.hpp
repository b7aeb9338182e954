// SPDX-License-Identifier: Apache-2.0
// How bytes travel between processes of this host, for `strait info`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tool/json.hpp"

namespace strait::tool {

// Tries it; before the process has threads. {"process_vm": {"works", "text"}, "userfaultfd": ..., "port_4791":
// {"owner", "text"}}; owner: "nobody", "you" or "other".
[[nodiscard]] Json between_processes();

// Who has a UDP port: a user of /proc/net/udp or udp6, another one than `own` if there is one. Null: nobody.
[[nodiscard]] std::optional<std::uint32_t> udp_port_owner(std::string_view table, std::uint16_t port,
                                                          std::uint32_t own);

}  // namespace strait::tool
