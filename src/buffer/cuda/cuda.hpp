// SPDX-License-Identifier: Apache-2.0
// The CUDA provider: NVIDIA GPUs through the driver's own library. Nothing of a toolkit is needed, to build or to run.
#pragma once

#include "strait/plugin.h"

namespace strait::buffer {

// open() fails with Code::unsupported where there is no driver or no device. Config: "ipc_cache=N", how many handles of
// other processes stay open while nobody uses them; "cpu_map=auto|dmabuf|gdrcopy|none", how the CPU gets at device
// memory; "cpu_copies=auto|IN/OUT|off", up to which lengths copies go that way.
[[nodiscard]] const strait_provider_ops* cuda_provider_ops();

}  // namespace strait::buffer
