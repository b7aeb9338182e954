// SPDX-License-Identifier: Apache-2.0
// memcpy on one CPU: what no transfer between two processes beats by much, and no peer.
#pragma once

#include <cstdint>

namespace strait::versus {

// Seconds for one copy of `bytes`, always from and to the same place, measured for about `seconds` on that CPU.
[[nodiscard]] double copy_seconds(std::uint64_t bytes, double seconds, int cpu);

}  // namespace strait::versus
