// SPDX-License-Identifier: Apache-2.0
// What single copies and batches of them share.
#pragma once

#include <vector>

#include "soft/cuda/memory.hpp"

namespace strait::soft::cuda {

// Two lists of the same total length.
void move_bytes(const std::vector<Side::Span>& to, const std::vector<Side::Span>& from);

}  // namespace strait::soft::cuda
