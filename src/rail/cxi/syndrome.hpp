// SPDX-License-Identifier: Apache-2.0
// CXI return codes and the syndrome byte of a completion; the code itself is the completion's vendor byte.
#pragma once

#include "strait/wire/cxi.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::rail::cxi {

// How a put, get, atomic or message ended, for who asked for it.
[[nodiscard]] wire::mlx5::Syndrome syndrome_of(wire::cxi::ReturnCode code);
// The same for who received.
[[nodiscard]] wire::mlx5::Syndrome receive_syndrome_of(wire::cxi::ReturnCode code);

}  // namespace strait::rail::cxi
