// SPDX-License-Identifier: Apache-2.0
// Memory the Node allocates for the application.
#include "node/core.hpp"

namespace strait::node {

Result<strait_memory*> Core::allocate(std::uint64_t length_bytes, const std::string& near_device) {
  STRAIT_TRY(buffer::Memory memory, providers_->allocate(near_device, length_bytes));
  auto handle = std::make_unique<strait_memory>();
  handle->core = shared_from_this();
  handle->memory = std::move(memory);
  const std::lock_guard lock(regions_mutex_);
  memories_[handle->memory.range().address] = handle.get();
  return handle.release();
}

Status Core::free(strait_memory* memory) {
  sweep();
  {
    const std::lock_guard lock(regions_mutex_);
    if (memory->shared != 0) {
      return with_remedy(
          fail(Code::again,
               "this memory ({} bytes) is still shared by {} region{}, or an operation on one of them has not drained",
               memory->memory.size(), memory->shared, memory->shared == 1 ? "" : "s"),
          "revoke or drop its regions and wait for their operations, then free it again");
    }
    memories_.erase(memory->memory.range().address);
  }
  // The registration goes before the memory: a cached key must never name memory that somebody else was given.
  const buffer::Range range = memory->memory.range();
  for (Rail& rail : rails_) rail.cache->invalidate(range.address, range.length_bytes);
  Status freed = memory->memory.free();
  delete memory;
  return freed;
}

void Core::drop(strait_memory* memory) {
  sweep();
  {
    const std::lock_guard lock(regions_mutex_);
    if (memory->shared != 0) {
      memory->dropped = true;  // release_local frees it
      return;
    }
  }
  (void)free(memory);
}

}  // namespace strait::node
