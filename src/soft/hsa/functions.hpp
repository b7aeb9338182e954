// SPDX-License-Identifier: Apache-2.0
// The exported functions, declared from the one list.
#pragma once

#include "soft/hsa/abi.hpp"

#define STRAIT_HSA_API extern "C" __attribute__((visibility("default")))

namespace strait::soft::hsa {
#define HSA_FUNCTION(returns, name, arguments) STRAIT_HSA_API returns name arguments;
#define HSA_NEWER(returns, name, arguments) STRAIT_HSA_API returns name arguments;
#include "soft/hsa/functions.inc"
#undef HSA_FUNCTION
#undef HSA_NEWER

// Not AMD's: "allocations=2,frees=2,..." of this process into `text`, always ended; how long it is without the end.
STRAIT_HSA_API std::size_t strait_soft_hsa_counters(char* text, std::size_t room);
}  // namespace strait::soft::hsa
