// SPDX-License-Identifier: Apache-2.0
// Mappings that the program makes itself: reserve addresses, make memory without one, bring them together.
#include <algorithm>

#include "soft/hsa/runtime.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"

namespace strait::soft::hsa {
namespace {

std::uint64_t next_vmem_handle() {
  static std::uint64_t last = 0;  // under the runtime's mutex
  return 0x5356'4d48'0000'0000 + ++last;
}

bool whole_pages(std::uint64_t value) {
  return value % sys::page_bytes() == 0;
}

}  // namespace

Answer Runtime::reserve(void** out, std::uint64_t length_bytes, std::uint64_t wanted, std::uint64_t alignment) {
  if (alignment == 0) alignment = sys::page_bytes();
  if (length_bytes == 0 || !whole_pages(length_bytes) || !whole_pages(alignment) || (alignment & (alignment - 1)) != 0)
    return kInvalidArgument;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46;
  if (length_bytes > kMost || alignment > kMost) return kOutOfResources;
  // Room for the alignment is kept as well: addresses cost nothing.
  auto room = sys::map_anonymous(length_bytes + (alignment > sys::page_bytes() ? alignment : 0), sys::Protect::none,
                                 reinterpret_cast<void*>(wanted));
  if (!room) return kOutOfResources;
  Reservation made;
  made.base = sys::round_up(reinterpret_cast<std::uint64_t>(room->data()), alignment);
  made.length_bytes = length_bytes;
  made.room = std::move(*room);
  *out = reinterpret_cast<void*>(made.base);
  const std::lock_guard lock(mutex_);
  reservations_.push_back(std::move(made));
  return kSuccess;
}

Answer Runtime::unreserve(void* address, std::uint64_t length_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(reservations_.begin(), reservations_.end(), [&](const Reservation& each) {
    return each.base == reinterpret_cast<std::uint64_t>(address);
  });
  if (found == reservations_.end()) return kInvalidAllocation;
  if (found->length_bytes != length_bytes) return kInvalidArgument;
  if (ranges_.overlaps(found->base, found->length_bytes)) return kResourceFree;  // something is mapped there
  reservations_.erase(found);
  return kSuccess;
}

Runtime::Reservation* Runtime::reservation_around(std::uint64_t address, std::uint64_t length_bytes) {
  for (Reservation& each : reservations_) {
    if (address >= each.base && length_bytes <= each.length_bytes &&
        address - each.base <= each.length_bytes - length_bytes)
      return &each;
  }
  return nullptr;
}

Answer Runtime::create_handle(PoolName pool, std::uint64_t length_bytes, std::int32_t type, VmemHandle& out) {
  if (length_bytes == 0 || !whole_pages(length_bytes) || type < 0 || type > 1) return kInvalidArgument;
  Gpu* gpu = gpu_at(pool.node);
  if (pool.kind == PoolKind::gpu_group ||
      length_bytes > (gpu == nullptr ? kCpuMemoryBytes : gpu->arena->memory_bytes()))
    return kInvalidAllocation;
  Handle handle;
  handle.pool = pool;
  handle.type = type;
  const std::lock_guard lock(mutex_);
  forget_closed_exports_locked();
  if (gpu != nullptr) {
    const auto hidden = gpu->arena->allocate(length_bytes);  // its address there is nobody's
    if (!hidden) return kOutOfResources;
    handle.pages = std::make_shared<Pages>(gpu->arena->hold(*hidden));
    handle.charged = true;
  } else {
    auto memfd = sys::make_sealed_memfd("strait soft hsa system memory", length_bytes);
    if (!memfd) return kOutOfResources;
    auto pages = Pages::of_file(std::move(*memfd), length_bytes);
    if (!pages) return kOutOfResources;
    handle.pages = std::move(*pages);
  }
  out.handle = next_vmem_handle();
  handles_.emplace(out.handle, std::move(handle));
  counts().vmem_handles.add();
  return kSuccess;
}

void Runtime::drop_handle_locked(std::map<std::uint64_t, Handle>::iterator handle) {
  if (handle->second.references != 0 || handle->second.mappings != 0) return;
  Handle gone = std::move(handle->second);
  handles_.erase(handle);
  if (sys::is_held_elsewhere(gone.pages->fd())) keep_exported_locked(gone.pages);
  if (Gpu* gpu = gpu_at(gone.pool.node); gone.charged && gpu != nullptr)
    (void)gpu->arena->free(gone.pages->device_base());
}

Answer Runtime::release_handle(VmemHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle.handle);
  if (found == handles_.end() || found->second.references == 0) return kInvalidAllocation;
  --found->second.references;
  counts().vmem_releases.add();
  drop_handle_locked(found);
  return kSuccess;
}

Answer Runtime::map_handle(void* address, std::uint64_t length_bytes, std::uint64_t offset, VmemHandle handle) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  if (length_bytes == 0 || !whole_pages(base) || !whole_pages(length_bytes) || !whole_pages(offset))
    return kInvalidArgument;
  const std::lock_guard lock(mutex_);
  if (reservation_around(base, length_bytes) == nullptr || ranges_.overlaps(base, length_bytes))
    return kInvalidArgument;
  const auto found = handles_.find(handle.handle);
  if (found == handles_.end() || found->second.references == 0) return kInvalidArgument;
  const std::uint64_t whole = found->second.pages->length_bytes();
  if (offset > whole || length_bytes > whole - offset) return kInvalidArgument;
  Range range;
  range.base = base;
  range.asked_bytes = range.room_bytes = length_bytes;
  range.type = kPointerVmem;
  range.owner = found->second.pool.node;
  range.flags = range.owner == 0 ? kFlagFineGrained : kFlagCoarseGrained;
  range.pages = found->second.pages;
  range.offset = offset;
  range.vmem = handle.handle;
  if (range.owner != 0 && !tell_kernel(range)) return kOutOfResources;
  ++found->second.mappings;
  ranges_.add(std::move(range));
  return kSuccess;
}

Answer Runtime::unmap_handle(void* address, std::uint64_t length_bytes) {
  Range range;
  {
    const std::lock_guard lock(mutex_);
    const Range* found = ranges_.at(reinterpret_cast<std::uint64_t>(address));
    if (found == nullptr || found->type != kPointerVmem) return kInvalidAllocation;
    if (found->room_bytes != length_bytes) return kInvalidArgument;
    range = ranges_.take(found->base);
  }
  tell_kernel_gone(range);
  const std::lock_guard lock(mutex_);
  if (range.host_access) (void)sys::map_file_over(address, -1, 0, length_bytes, sys::Protect::none);
  const auto handle = handles_.find(range.vmem);
  if (handle == handles_.end()) return kError;
  --handle->second.mappings;
  range.pages.reset();
  drop_handle_locked(handle);
  return kSuccess;
}

Answer Runtime::set_access(void* address, std::uint64_t length_bytes, const AccessDesc* wanted, std::size_t n) {
  const auto first = reinterpret_cast<std::uint64_t>(address);
  std::vector<std::uint32_t> nodes(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!node_of(wanted[i].agent, nodes[i])) return kInvalidAgent;
    if (wanted[i].permissions < kAccessNone || wanted[i].permissions > kAccessReadWrite) return kInvalidArgument;
  }
  const std::lock_guard lock(mutex_);
  // The whole range must be mapped, by one handle or by several side by side.
  for (std::uint64_t at = first; at - first < length_bytes;) {
    const Range* range = ranges_.at(at);
    if (range == nullptr || range->type != kPointerVmem || range->room_bytes > length_bytes - (at - first))
      return kInvalidAllocation;
    at += range->room_bytes;
  }
  for (std::uint64_t at = first; at - first < length_bytes;) {
    Range* range = ranges_.at(at);
    for (std::size_t i = 0; i < n; ++i) {
      const bool allowed = wanted[i].permissions != kAccessNone;
      if (nodes[i] == 0 && allowed && range->owner != 0 && !large_bar_) return kError;  // no way for a CPU to get there
      if (nodes[i] == 0 && allowed && !range->host_access && !show_to_cpu(*range)) return kOutOfResources;
      range->permissions[nodes[i]] = wanted[i].permissions;
      const std::uint64_t bit = std::uint64_t{1} << nodes[i];
      range->access = allowed ? range->access | bit : range->access & ~bit;
    }
    at += range->room_bytes;
  }
  return kSuccess;
}

Answer Runtime::get_access(void* address, std::int32_t& permissions, std::uint32_t node) {
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.around(reinterpret_cast<std::uint64_t>(address));
  if (range == nullptr || range->type != kPointerVmem) return kInvalidAllocation;
  const auto found = range->permissions.find(node);
  permissions = found == range->permissions.end() ? kAccessNone : found->second;
  return kSuccess;
}

Answer Runtime::export_handle(int& fd, VmemHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle.handle);
  if (found == handles_.end() || found->second.references == 0) return kInvalidAllocation;
  auto out = hold_out(found->second.pages);
  if (!out) return kOutOfResources;
  fd = out->release();
  counts().exports.add();
  return kSuccess;
}

Answer Runtime::import_handle(int fd, VmemHandle& out) {
  const std::int64_t whole = sys::file_bytes(fd);
  if (whole <= 0 || !whole_pages(static_cast<std::uint64_t>(whole)) || !sys::check_sealed(fd, 1))
    return kInvalidArgument;
  auto file = sys::open_again(fd);
  constexpr std::int64_t kPatienceNs = 10'000'000'000;
  if (!file || !sys::hold_file_before(file->get(), sys::Deadline::after_ns(kPatienceNs))) return kOutOfResources;
  auto pages = Pages::of_file(std::move(*file), static_cast<std::uint64_t>(whole));
  if (!pages) return kOutOfResources;
  Handle handle;
  handle.pages = std::move(*pages);
  // The file does not say which device it is of; the first will do for a copy engine.
  handle.pool = {PoolKind::gpu_coarse, gpus_.empty() ? 0 : gpus_.front().node};
  const std::lock_guard lock(mutex_);
  out.handle = next_vmem_handle();
  handles_.emplace(out.handle, std::move(handle));
  counts().vmem_handles.add();
  return kSuccess;
}

Answer Runtime::retain_handle(VmemHandle& out, void* address) {
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.around(reinterpret_cast<std::uint64_t>(address));
  if (range == nullptr || range->type != kPointerVmem) return kInvalidAllocation;
  const auto found = handles_.find(range->vmem);
  if (found == handles_.end()) return kInvalidAllocation;
  ++found->second.references;
  out.handle = range->vmem;
  return kSuccess;
}

Answer Runtime::handle_properties(VmemHandle handle, MemoryPool& pool, std::int32_t& type) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle.handle);
  if (found == handles_.end()) return kInvalidAllocation;
  for (const MemoryPool& known : pools_of(found->second.pool.node)) {
    PoolName name{};
    if (pool_of(known, name) && name.kind == found->second.pool.kind) pool = known;
  }
  type = found->second.type;
  return kSuccess;
}

}  // namespace strait::soft::hsa
