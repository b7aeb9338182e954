// SPDX-License-Identifier: Apache-2.0
// A slice of a region as the source or destination of an operation; and the bounce buffer where there is one.
#pragma once

#include "node/core.hpp"
#include "node/lane.hpp"
#include "post/lane.hpp"

namespace strait::node {

[[nodiscard]] inline bool slice_good(const strait_slice& slice) {
  const strait_region& region = *slice.region;
  return slice.offset <= region.length_bytes && slice.length_bytes <= region.length_bytes - slice.offset &&
         region.state.load(std::memory_order_relaxed) == RegionState::live;
}
[[nodiscard]] Error why_slice_bad(const strait_slice& slice);

// By the key of the lane's NIC; kNoKey where that refused the memory: why_no_key() has the sentence.
[[nodiscard]] inline post::Local local_of(const strait_lane& lane, const strait_slice& slice) {
  const strait_region& region = *slice.region;
  return {region.local_address + slice.offset,
          slice.length_bytes,
          region.lkeys[lane.rail],
          region.cpu_accessible,
          false,
          &region,
          slice.offset};
}

[[nodiscard]] Error why_no_key(const strait_lane& lane, const strait_slice& slice);
// Of the owner's NIC that the lane ends at; kNoKey where that refused the memory.
[[nodiscard]] inline std::uint32_t rkey_of(const strait_target& target, std::uint8_t far_rail) {
  if (far_rail == 0) [[likely]]
    return target.rkey;
  return target.struct_size >= sizeof target ? target.more_rkeys[far_rail - 1] : kNoKey;
}
[[nodiscard]] inline std::uint32_t rkey_of(const strait_lane& lane, const strait_target& target) {
  return rkey_of(target, lane.far_rail);
}
[[nodiscard]] inline std::uint32_t signal_rkey_of(const strait_target& target, std::uint8_t far_rail) {
  if (far_rail == 0) [[likely]]
    return target.signal_rkey;
  return target.struct_size >= sizeof target ? target.more_signal_rkeys[far_rail - 1] : kNoKey;
}
[[nodiscard]] inline std::uint32_t signal_rkey_of(const strait_lane& lane, const strait_target& target) {
  return signal_rkey_of(target, lane.far_rail);
}
[[nodiscard]] Error why_no_remote_key(const strait_lane& lane);

// Staged regions only. Code::unsupported when the caller requires zero copies.
[[nodiscard]] Status may_stage(const strait_slice& slice, const strait_op_options* options);
// Brings the bytes into the bounce buffer; blocks while the accelerator copies.
[[nodiscard]] Status stage_out(const strait_slice& slice, const strait_op_options* options);
// post::Unstage
[[nodiscard]] bool unstage(const void* holder, std::uint64_t offset, std::uint64_t length_bytes);

}  // namespace strait::node
