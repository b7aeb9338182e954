// SPDX-License-Identifier: Apache-2.0
// Slices and staging.
#include "node/local.hpp"

namespace strait::node {

Error why_slice_bad(const strait_slice& slice) {
  const strait_region& region = *slice.region;
  if (region.core->in_child()) return dead_after_fork("region");
  if (region.core->closed()) return fail(Code::gone, "the Node of this region was closed");
  if (region.state.load() != RegionState::live) return fail(Code::gone, "the local region was revoked");
  return fail(Code::invalid, "{} bytes at offset {} are outside the local region of {} bytes", slice.length_bytes,
              slice.offset, region.length_bytes);
}

Error why_no_key(const strait_lane& lane, const strait_slice& slice) {
  const strait_region& region = *slice.region;
  const std::string why = region.exported ? region.exported->refusal_of(lane.rail) : std::string();
  return with_remedy(fail(Code::unsupported, "{} did not take this memory of {} when it was shared: {}",
                          lane.node->rails()[lane.rail].nic->name(), region.claim.device->name, why),
                     "use a lane over another NIC of this Node (its path names it), or share the memory again");
}

Error why_no_remote_key(const strait_lane& lane) {
  return with_remedy(
      fail(Code::unsupported,
           "the NIC of {} that this lane ends at did not take the target's memory when it was shared; the path of the "
           "owner's region says why",
           lane.peer_name),
      "use a lane that ends at another NIC of the peer, or let the owner share the memory again");
}

Status may_stage(const strait_slice& slice, const strait_op_options* options) {
  if (options == nullptr || (options->flags & STRAIT_REQUIRE_ZERO_COPY) == 0) return {};
  const std::string reasons = slice.region->exported ? slice.region->exported->rejected_text() : std::string();
  return with_remedy(
      fail(Code::unsupported,
           "zero copy was required, but the memory of {} is only reached through a bounce buffer in host memory{}",
           slice.region->claim.device->name, reasons),
      "drop the requirement, or use memory that can be exported");
}

Status stage_out(const strait_slice& slice, const strait_op_options* options) {
  STRAIT_CHECK(may_stage(slice, options));
  strait_region& region = *slice.region;
  const std::lock_guard lock(region.staging_mutex);
  return region.staging->fill(slice.offset, slice.length_bytes, region.core->deadline(-1));
}

bool unstage(const void* holder, std::uint64_t offset, std::uint64_t length_bytes) {
  strait_region& region = *const_cast<strait_region*>(static_cast<const strait_region*>(holder));
  const std::lock_guard lock(region.staging_mutex);
  return static_cast<bool>(region.staging->drain(offset, length_bytes, region.core->deadline(-1)));
}

}  // namespace strait::node
