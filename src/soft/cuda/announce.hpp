// SPDX-License-Identifier: Apache-2.0
// Tells the software machine's kernel which device memory there is, as the real driver's kernel module knows it.
#pragma once

#include "soft/cuda/memory.hpp"

namespace strait::soft::cuda {

// True: told, or not of interest (host and managed memory). Zeroes piece.identity when there is nothing to retract.
[[nodiscard]] bool announce(const Range& range, Piece& piece);
// Before the bytes go, and with no lock held.
void retract(Piece& piece);

}  // namespace strait::soft::cuda
