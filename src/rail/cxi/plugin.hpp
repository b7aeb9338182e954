// SPDX-License-Identifier: Apache-2.0
// The CXI rail as a NIC plug-in. It needs no library, so it is part of this one and no file to load.
#pragma once

#include "strait/plugin.h"

namespace strait::rail::cxi {

[[nodiscard]] const strait_nic_ops* nic_plugin();

}  // namespace strait::rail::cxi
