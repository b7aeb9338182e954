// SPDX-License-Identifier: Apache-2.0
// ibv_wc_status and the syndrome byte of a completion say the same in different numbers.
#pragma once

#include <infiniband/verbs.h>

#include "strait/wire/mlx5.hpp"

namespace strait::rail::verbs {

[[nodiscard]] wire::mlx5::Syndrome syndrome_of(ibv_wc_status status);

}  // namespace strait::rail::verbs
