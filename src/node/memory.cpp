// SPDX-License-Identifier: Apache-2.0
// Memory the Node allocates for the application.
#include "node/core.hpp"

namespace strait::node {

Result<strait_memory*> Core::allocate(std::uint64_t length_bytes, const std::string& near_device, bool networked) {
  auto handle = std::make_unique<strait_memory>();
  STRAIT_TRY(handle->memory, providers_->allocate(near_device, length_bytes));
  // Before anybody touches it: pages that are there stay where they are. A peer that maps them gets the same ones.
  if (near_device.empty() || near_device == "host")
    placement_.place_memory(handle->memory.data(), handle->memory.size());
  if (networked) {
    STRAIT_TRY(handle->files, register_early(handle->memory.range()));
  }
  handle->core = shared_from_this();
  const Locked lock(regions_mutex_);
  if (handle->files) {
    if (kept_fds_ < options_.integer("cache_fds")) {
      ++kept_fds_;
    } else {
      handle->files.reset();  // exported again when it is shared
    }
  }
  memories_[handle->memory.range().address] = handle.get();
  return handle.release();
}

Status Core::free(strait_memory* memory) {
  sweep();
  {
    const Locked lock(regions_mutex_);
    if (memory->shared != 0) {
      return with_remedy(
          fail(Code::again,
               "this memory ({} bytes) is still shared by {} region{}, or an operation on one of them has not drained",
               memory->memory.size(), memory->shared, memory->shared == 1 ? "" : "s"),
          "revoke or drop its regions and wait for their operations, then free it again");
    }
    memories_.erase(memory->memory.range().address);
    if (memory->files) --kept_fds_;
  }
  // The registration goes before the memory: a cached key must never name memory that somebody else was given.
  const buffer::Range range = memory->memory.range();
  if (cache_) cache_->invalidate(range.address, range.length_bytes);
  memory->files.reset();
  Status freed = memory->memory.free();
  delete memory;
  return freed;
}

void Core::drop(strait_memory* memory) {
  sweep();
  {
    const Locked lock(regions_mutex_);
    if (memory->shared != 0) {
      memory->dropped = true;  // release_local frees it
      return;
    }
  }
  (void)free(memory);
}

Status Core::copy(void* to, const void* from, std::uint64_t length_bytes, sys::Deadline deadline) {
  Status done = providers_->copy(to, from, length_bytes, deadline);
  if (done || done.error().code != Code::unsupported) return done;
  STRAIT_TRY(const buffer::Claim target, providers_->classify(to, length_bytes));
  STRAIT_TRY(const buffer::Claim source, providers_->classify(from, length_bytes));
  if (target.provider == source.provider || target.cpu_accessible() || source.cpu_accessible()) return done;
  if (!settings_.allow_staging) {
    return with_remedy(
        fail(Code::unsupported, "{} and {} have no copies between them, and a copy through host memory was not allowed",
             source.device->name, target.device->name),
        "Share both and put from one to the other (a NIC reaches them without a copy), or set the option "
        "allow_staging.");
  }
  counters_.get("copies_through_host").add();
  return relay_->copy(target, source, deadline);
}

}  // namespace strait::node
