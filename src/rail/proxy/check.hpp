// SPDX-License-Identifier: Apache-2.0
// What mlx5 rings of a caller have to be before a CPU reads and writes them.
#pragma once

#include "base/error.hpp"
#include "strait/plugin.h"

namespace strait::rail::proxy {

[[nodiscard]] Status check(const strait_nic_cq_request& request);
[[nodiscard]] Status check(const strait_nic_qp_request& request);

}  // namespace strait::rail::proxy
