// SPDX-License-Identifier: Apache-2.0
// What processes of this user may do to each other here, found out by doing it.
#pragma once

#include "base/error.hpp"
#include "sys/calls.hpp"

namespace strait::sys {

// A child reads a word of this process, which to the kernel (Yama) is as much its business as a stranger's; the other
// way round parents may more. Code::denied: the kernel forbids it. Call it before the process has threads.
[[nodiscard]] Status try_process_vm(const Calls& calls = real_calls());

}  // namespace strait::sys
