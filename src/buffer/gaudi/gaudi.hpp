// SPDX-License-Identifier: Apache-2.0
// The Gaudi provider: Habana's accelerators through hl-thunk, with SynapseAI and scal where they are there.
#pragma once

#include "strait/plugin.h"

namespace strait::buffer {

// open() fails with Code::unsupported where there is no hl-thunk or no device. Opening lists devices through their
// control nodes; a compute node, which has one owner process, is taken when memory is asked for there, or, with
// "acquire=open" in the config, at once.
[[nodiscard]] const strait_provider_ops* gaudi_provider_ops();

}  // namespace strait::buffer
