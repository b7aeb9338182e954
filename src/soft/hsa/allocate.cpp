// SPDX-License-Identifier: Apache-2.0
// Allocating, freeing, locking; who is told when memory goes.
#include <algorithm>
#include <limits>

#include "soft/hsa/runtime.hpp"
#include "sys/file_hold.hpp"

namespace strait::soft::hsa {

Status Runtime::show_to_cpu(Range& range) {
  STRAIT_CHECK(sys::map_file_over(reinterpret_cast<void*>(range.base), range.pages->fd(), range.offset,
                                  range.room_bytes, sys::Protect::read_write));
  range.host_access = true;
  return {};
}

Result<Range> Runtime::make_device_range(Gpu& gpu, std::uint64_t length_bytes, std::uint32_t flags) {
  Range range;
  range.asked_bytes = length_bytes;
  range.room_bytes = sys::round_up(length_bytes, sys::page_bytes());
  range.type = kPointerHsa;
  range.owner = gpu.node;
  range.flags = flags;
  range.access = std::uint64_t{1} << gpu.node;
  range.piece = range.room_bytes < Blocks::kBlockBytes - sys::page_bytes();
  if (range.piece) {
    STRAIT_TRY(const Blocks::Piece piece, gpu.blocks->allocate(range.room_bytes));
    range.base = piece.base;
    range.offset = piece.offset;
    range.pages = piece.pages;
  } else {
    STRAIT_TRY(range.base, gpu.arena->allocate(range.room_bytes));
    range.pages = std::make_shared<Pages>(gpu.arena->hold(range.base));
  }
  if (!large_bar_) return range;
  if (Status shown = show_to_cpu(range); !shown) {
    give_back(std::move(range));
    return std::move(shown).error();
  }
  return range;
}

Result<Range> Runtime::make_system_range(std::uint64_t length_bytes, std::uint32_t flags) {
  Range range;
  range.asked_bytes = length_bytes;
  range.room_bytes = sys::round_up(length_bytes, sys::page_bytes());
  range.type = kPointerHsa;
  range.flags = flags;
  range.access = 1;
  range.host_access = true;
  STRAIT_TRY(sys::Fd memfd, sys::make_sealed_memfd("strait soft hsa system memory", range.room_bytes));
  STRAIT_TRY(range.pages, Pages::of_file(std::move(memfd), range.room_bytes));
  range.base = reinterpret_cast<std::uint64_t>(range.pages->bytes());
  return range;
}

// With mutex_ held, or before the range was shown to anybody.
void Runtime::give_back(Range range) {
  if (range.pages && sys::is_held_elsewhere(range.pages->fd())) keep_exported_locked(range.pages);
  if (range.owner == 0 || range.type != kPointerHsa) return;  // its pages and its place say the rest
  if (range.host_access)
    (void)sys::map_file_over(reinterpret_cast<void*>(range.base), -1, 0, range.room_bytes, sys::Protect::none);
  Gpu* gpu = gpu_at(range.owner);
  if (gpu == nullptr) return;
  range.pages.reset();
  if (range.piece)
    gpu->blocks->free(range.base, range.room_bytes);
  else
    (void)gpu->arena->free(range.base);
}

Answer Runtime::allocate(PoolName pool, std::uint64_t length_bytes, void** out) {
  Gpu* gpu = gpu_at(pool.node);
  const std::uint64_t most = gpu == nullptr ? kCpuMemoryBytes : gpu->arena->memory_bytes();
  if (pool.kind == PoolKind::gpu_group || length_bytes > most) return kInvalidAllocation;
  const std::uint32_t flags = pool.kind == PoolKind::cpu_kernarg ? kFlagKernarg | kFlagFineGrained
                              : pool.kind == PoolKind::cpu_fine || pool.kind == PoolKind::gpu_fine ? kFlagFineGrained
                                                                                                   : kFlagCoarseGrained;
  const std::lock_guard lock(mutex_);
  forget_closed_exports_locked();
  auto range = gpu == nullptr ? make_system_range(length_bytes, flags) : make_device_range(*gpu, length_bytes, flags);
  if (!range) return kOutOfResources;
  if (gpu != nullptr && !tell_kernel(*range)) {
    give_back(std::move(*range));
    return kOutOfResources;
  }
  *out = reinterpret_cast<void*>(range->base);
  ranges_.add(std::move(*range));
  counts().allocations.add();
  return kSuccess;
}

Answer Runtime::free(void* pointer) {
  if (pointer == nullptr) return kSuccess;
  Range range;
  {
    const std::lock_guard lock(mutex_);
    const Range* found = ranges_.at(reinterpret_cast<std::uint64_t>(pointer));
    if (found == nullptr) return kInvalidAllocation;
    if (found->type != kPointerHsa) return kInvalidArgument;  // imports are detached, mappings unmapped
    range = ranges_.take(found->base);
  }
  // The range is in no table any more, so a callback may manage memory, also free this again and be refused.
  for (const Notifier& each : range.notifiers) {
    each.call(each.pointer, each.argument);
    counts().callbacks.add();
  }
  tell_kernel_gone(range);
  const std::lock_guard lock(mutex_);
  give_back(std::move(range));
  forget_closed_exports_locked();
  counts().frees.add();
  return kSuccess;
}

Answer Runtime::allow_access(std::uint64_t nodes, const void* pointer) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.at(reinterpret_cast<std::uint64_t>(pointer));
  if (range == nullptr) return kInvalidAllocation;
  if (range->type == kPointerIpc) return kSuccess;  // was given when it was attached
  range->access = nodes | std::uint64_t{1} << range->owner;
  return kSuccess;
}

Answer Runtime::watch_free(void* pointer, DeallocationCallback call, void* argument) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.around(reinterpret_cast<std::uint64_t>(pointer));
  if (range == nullptr || range->type != kPointerHsa) return kInvalidAllocation;
  range->notifiers.push_back(Notifier{pointer, call, argument});
  return kSuccess;
}

Answer Runtime::unwatch_free(void* pointer, DeallocationCallback call) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.around(reinterpret_cast<std::uint64_t>(pointer));
  if (range == nullptr) return kInvalidArgument;
  const std::size_t gone = std::erase_if(
      range->notifiers, [&](const Notifier& each) { return each.pointer == pointer && each.call == call; });
  return gone == 0 ? kInvalidArgument : kSuccess;
}

Answer Runtime::lock(void* pointer, std::uint64_t length_bytes, std::uint64_t nodes) {
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  if (length_bytes > std::numeric_limits<std::uint64_t>::max() - base) return kInvalidArgument;
  const std::lock_guard lock(mutex_);
  if (ranges_.overlaps(base, length_bytes)) return kOutOfResources;  // device memory is not the program's to lock
  locked_.push_back(Locked{base, length_bytes, nodes, nullptr});
  counts().locks.add();
  return kSuccess;
}

Answer Runtime::unlock(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(locked_.rbegin(), locked_.rend(), [&](const Locked& each) {
    return each.base == reinterpret_cast<std::uint64_t>(pointer);
  });
  if (found == locked_.rend()) return kInvalidArgument;
  locked_.erase(std::next(found).base());
  counts().unlocks.add();
  return kSuccess;
}

const Runtime::Locked* Runtime::locked_around(std::uint64_t address, std::uint64_t length_bytes) const {
  for (const Locked& each : locked_) {
    if (address >= each.base && length_bytes <= each.length_bytes &&
        address - each.base <= each.length_bytes - length_bytes)
      return &each;
  }
  return nullptr;
}

}  // namespace strait::soft::hsa
