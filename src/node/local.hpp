// SPDX-License-Identifier: Apache-2.0
// A slice of a region as the source or destination of an operation; and the bounce buffer where there is one.
#pragma once

#include "node/core.hpp"
#include "post/lane.hpp"

namespace strait::node {

[[nodiscard]] inline bool slice_good(const strait_slice& slice) {
  const strait_region& region = *slice.region;
  return slice.offset <= region.length_bytes && slice.length_bytes <= region.length_bytes - slice.offset &&
         region.state.load(std::memory_order_relaxed) == RegionState::live;
}
[[nodiscard]] Error why_slice_bad(const strait_slice& slice);

// Peers are connected over the first NIC.
[[nodiscard]] inline post::Local local_of(const strait_slice& slice) {
  const strait_region& region = *slice.region;
  return {region.local_address + slice.offset,
          slice.length_bytes,
          region.lkeys[0],
          region.cpu_accessible,
          false,
          &region,
          slice.offset};
}

// Staged regions only. Code::unsupported when the caller requires zero copies.
[[nodiscard]] Status may_stage(const strait_slice& slice, const strait_op_options* options);
// Brings the bytes into the bounce buffer; blocks while the accelerator copies.
[[nodiscard]] Status stage_out(const strait_slice& slice, const strait_op_options* options);
// post::Unstage
[[nodiscard]] bool unstage(const void* holder, std::uint64_t offset, std::uint64_t length_bytes);

}  // namespace strait::node
