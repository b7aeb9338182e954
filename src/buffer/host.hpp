// SPDX-License-Identifier: Apache-2.0
// The host provider: memory of this process that the CPU reads and writes. Built in, behind the same struct as all
// others.
//
// It answers for what it allocated itself (sealed memfds, so that a peer process can be handed the pages later). Memory
// of others (malloc, mmap, the stack) is recognised by Providers, which asks the kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "strait/plugin.h"

namespace strait::buffer {

[[nodiscard]] const strait_provider_ops* host_provider_ops();

constexpr std::string_view kHostDevice = "host";
constexpr std::uint32_t kHostCapabilities = STRAIT_CAN_COPY | STRAIT_CPU_ACCESSIBLE;

}  // namespace strait::buffer
