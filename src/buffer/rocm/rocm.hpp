// SPDX-License-Identifier: Apache-2.0
// The ROCm provider: AMD GPUs through the HSA runtime's own library.
#pragma once

#include "strait/plugin.h"

namespace strait::buffer {

// open() fails with Code::unsupported where there is no runtime or no GPU. Config: "ipc_cache=N",
// "cpu_copies=auto|IN/OUT|off".
[[nodiscard]] const strait_provider_ops* rocm_provider_ops();

}  // namespace strait::buffer
