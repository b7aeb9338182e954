// SPDX-License-Identifier: Apache-2.0
// Long operations on staged memory, in pieces: while one is on the wire the accelerator copies the next.
#pragma once

#include "node/lane.hpp"
#include "node/local.hpp"

namespace strait::node {

// Staged, and longer than one piece (option staging_piece).
[[nodiscard]] bool in_pieces(const strait_slice& slice);

// All pieces but the last are detached; the last carries the extras and is the operation. Pieces arrive in order, so
// that it is done when all are, and fails when any failed. Blocks while the accelerator copies and while the lane is
// full. After a failure some pieces may have arrived.
[[nodiscard]] Status put_in_pieces(strait_lane& lane, const strait_slice& from, device::Remote to,
                                   const post::Extras& extras, std::uint64_t& id);
// Each piece goes to the device when it has arrived, while the next arrives.
[[nodiscard]] Status get_in_pieces(strait_lane& lane, const strait_slice& into, device::Remote from,
                                   const post::Extras& extras, std::uint64_t& id);

}  // namespace strait::node
