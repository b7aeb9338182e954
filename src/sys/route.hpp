// SPDX-License-Identifier: Apache-2.0
// Which of the host's addresses a packet would leave from.
#pragma once

#include "base/error.hpp"
#include "sys/interfaces.hpp"

namespace strait::sys {

// As the routing tables have it; nothing is sent. sys_errno is ENETUNREACH and its like when no route leads there.
// `scope`: the interface of a link-local IPv6 address.
[[nodiscard]] Result<IpBytes> source_towards(const IpBytes& destination, unsigned scope = 0);

}  // namespace strait::sys
