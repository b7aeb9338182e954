// SPDX-License-Identifier: Apache-2.0
// Device memory: allocated, mapped, exported, carved.
#include <algorithm>
#include <cerrno>

#include "soft/accel/window.hpp"
#include "soft/gaudi/driver.hpp"
#include "soft/kernel/driver.h"
#include "sys/file_hold.hpp"

namespace strait::soft::gaudi {
namespace {

constexpr std::int64_t kExportPatience = 10'000'000'000;
constexpr std::uint32_t kExportFlags = 02 | 02000000;  // O_RDWR, O_CLOEXEC
constexpr std::uint64_t kCarveBytes = 128;             // SynapseAI's alignment: buffers do not begin at page borders

std::uint64_t next_gaudi_identity() {
  static std::atomic<std::uint64_t> last{0};
  return (std::uint64_t{STRAIT_SOFT_VENDOR_GAUDI} << 56) + last.fetch_add(1) + 1;
}

}  // namespace

std::uint64_t Driver::used_locked(const Context& context) const {
  std::uint64_t used = 0;
  for (const auto& [handle, allocation] : context.allocations) used += allocation.length_bytes;
  return used;
}

std::uint64_t Driver::allocate_locked(Context& context, std::uint64_t length_bytes) {
  const std::uint64_t most = view_.segment_bytes() - used_locked(context);
  if (length_bytes == 0 || length_bytes > most) return 0;
  Allocation made;
  made.length_bytes = sys::round_up(length_bytes, kDramPageBytes);
  if (made.length_bytes > most) return 0;
  for (made.segment = 0; made.segment < kSegments; ++made.segment) {
    bool taken = false;
    for (const auto& [handle, other] : context.allocations) taken = taken || other.segment == made.segment;
    if (!taken) break;
  }
  if (made.segment == kSegments) return 0;
  if (!sys::drop_file_pages(context.files.hbm[made.segment].get(), 0, view_.segment_bytes())) return 0;
  made.handle = ++last_handle_;
  counts_.allocations.add();
  return context.allocations.emplace(made.handle, std::move(made)).first->first;
}

std::uint64_t Driver::allocate(int fd, std::uint64_t length_bytes) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  Context* context = context_of(fd, error);
  return context == nullptr ? 0 : allocate_locked(*context, length_bytes);
}

int Driver::free(int fd, std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  Context* context = context_of(fd, error);
  if (context == nullptr) return error;
  const auto found = context->allocations.find(handle);
  if (found == context->allocations.end()) return -EINVAL;
  const sys::Fd& file = context->files.hbm[found->second.segment];
  drop_windows_locked();
  if (found->second.address != 0 || sys::is_held_elsewhere(file.get())) return -EINVAL;  // mapped, or exported
  (void)sys::drop_file_pages(file.get(), 0, view_.segment_bytes());
  context->allocations.erase(found);
  counts_.frees.add();
  return 0;
}

std::uint64_t Driver::map_locked(std::uint32_t slot, Context& context, std::uint64_t handle) {
  const auto found = context.allocations.find(handle);
  if (found == context.allocations.end() || found->second.address != 0) return 0;
  Allocation& allocation = found->second;
  const sys::Fd& file = context.files.hbm[allocation.segment];
  auto bytes = sys::map_file(file.get(), 0, allocation.length_bytes, sys::Protect::read_write);
  if (!bytes) return 0;
  const std::uint64_t address = dram_base(slot) + allocation.segment * kSegmentStride;
  strait_soft_driver_memory memory{};
  memory.struct_size = sizeof memory;
  memory.vendor = STRAIT_SOFT_VENDOR_GAUDI;
  memory.device = slot;
  memory.base = address + allocation.reserve;
  memory.length_bytes = allocation.length_bytes - allocation.reserve;
  memory.identity = next_gaudi_identity();
  memory.memfd = file.get();
  if (strait_soft_driver_add(&memory) != 0) return 0;
  allocation.bytes = std::move(*bytes);
  allocation.address = address;
  allocation.identity = memory.identity;
  show_mapped(slot, allocation.segment, memory.base, memory.length_bytes);
  counts_.maps.add();
  return address;
}

std::uint64_t Driver::map(int fd, std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  std::uint32_t slot = 0;
  Context* context = context_of(fd, error, &slot);
  return context == nullptr ? 0 : map_locked(slot, *context, handle);
}

std::uint64_t Driver::map_host(int fd, void* pointer, std::uint64_t length_bytes) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  Context* context = context_of(fd, error);
  if (context == nullptr || pointer == nullptr || length_bytes == 0 || length_bytes > kDeviceStride) return 0;
  std::uint64_t next = kHostSpace;
  for (const HostRange& each : context->host) next = std::max(next, each.address + each.length_bytes);
  const std::uint64_t within = reinterpret_cast<std::uint64_t>(pointer) % sys::page_bytes();
  const HostRange made{sys::round_up(next, sys::page_bytes()) + within, length_bytes};
  context->host.push_back(made);
  counts_.host_maps.add();
  return made.address;
}

int Driver::unmap(int fd, std::uint64_t address) {
  Allocation gone;
  {
    const std::lock_guard lock(mutex_);
    int error = 0;
    std::uint32_t slot = 0;
    Context* context = context_of(fd, error, &slot);
    if (context == nullptr) return error;
    if (std::erase_if(context->host, [&](const HostRange& each) { return each.address == address; }) != 0) {
      counts_.host_unmaps.add();
      return 0;
    }
    Allocation* found = nullptr;
    for (auto& [handle, each] : context->allocations) {
      if (address != 0 && each.address == address) found = &each;
    }
    if (found == nullptr || found->handle == context->pool) return -EINVAL;
    drop_windows_locked();
    if (sys::is_held_elsewhere(context->files.hbm[found->segment].get())) return -EINVAL;  // exported
    show_mapped(slot, found->segment, 0, 0);
    gone.address = std::exchange(found->address, 0);
    gone.identity = std::exchange(found->identity, 0);
    gone.bytes = std::move(found->bytes);
    counts_.unmaps.add();
  }
  tell_gone(gone);
  return 0;
}

int Driver::export_locked(const Context& context, const Allocation& allocation) {
  auto out = sys::open_again(context.files.hbm[allocation.segment].get());
  if (!out) return -out.error().sys_errno;
  if (!sys::hold_file_before(out->get(), sys::Deadline::after_ns(kExportPatience))) return -EBUSY;
  counts_.exports.add();
  return out->release();
}

void Driver::drop_windows_locked() const {
  std::erase_if(windows_, [](const Window& each) { return !sys::is_held_elsewhere(each.window.get()); });
}

// What does not begin where the file does: a window on the pages.
int Driver::export_part_locked(const Context& context, const Allocation& allocation, std::uint64_t offset,
                               std::uint64_t length_bytes) {
  const auto refused = [](const Error& error) { return error.sys_errno != 0 ? -error.sys_errno : -ENOMEM; };
  drop_windows_locked();
  Window made;
  auto segment = sys::open_again(context.files.hbm[allocation.segment].get());
  if (!segment) return refused(segment.error());
  made.segment = std::move(*segment);
  if (!sys::hold_file_before(made.segment.get(), sys::Deadline::after_ns(kExportPatience))) return -EBUSY;
  // Of scal's pool the first bytes are the last ones of the file.
  const std::uint64_t left = std::min(sys::round_up(length_bytes, sys::page_bytes()), allocation.length_bytes - offset);
  const std::uint64_t front = offset < allocation.reserve ? std::min(left, allocation.reserve - offset) : 0;
  std::vector<accel::WindowPiece> pieces;
  if (front != 0) pieces.push_back({made.segment.get(), allocation.length_bytes - allocation.reserve + offset, front});
  if (left != front) pieces.push_back({made.segment.get(), offset + front - allocation.reserve, left - front});
  auto window = accel::make_window(pieces);
  if (!window) return refused(window.error());
  auto given = sys::open_again(window->get());
  if (!given) return refused(given.error());
  if (!sys::hold_file(given->get())) return -EBUSY;
  made.window = std::move(*window);
  windows_.push_back(std::move(made));
  counts_.exports.add();
  return given->release();
}

int Driver::export_mapped(int fd, std::uint64_t address, std::uint64_t length_bytes, std::uint64_t offset,
                          std::uint32_t flags) {
  const std::uint64_t page = sys::page_bytes();
  if (address % page != 0 || offset % page != 0 || length_bytes < page || (flags & ~kExportFlags) != 0) return -EINVAL;
  const std::lock_guard lock(mutex_);
  int error = 0;
  const Context* context = context_of(fd, error);
  if (context == nullptr) return error;
  for (const auto& [handle, each] : context->allocations) {
    if (address == 0 || each.address != address) continue;
    if (offset > each.length_bytes || length_bytes > each.length_bytes - offset) return -EINVAL;
    if (first_generation_ && offset != 0) return -EINVAL;
    return offset == each.reserve ? export_locked(*context, each)
                                  : export_part_locked(*context, each, offset, length_bytes);
  }
  return -EINVAL;  // exactly what map gave, nothing inside it
}

int Driver::export_handle(int fd, std::uint64_t handle, std::uint64_t length_bytes) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const Context* context = context_of(fd, error);
  if (context == nullptr) return error;
  const auto found = context->allocations.find(handle);
  if (found == context->allocations.end() || length_bytes < sys::page_bytes() ||
      length_bytes > found->second.length_bytes || found->second.reserve != 0)
    return -EINVAL;
  return export_locked(*context, found->second);
}

int Driver::usage(int fd, std::uint64_t& free_bytes, std::uint64_t& own_bytes) {
  if (mark_.in_child()) return -EPERM;
  const std::lock_guard lock(mutex_);
  const auto node = node_locked(fd);
  if (!node) return sys::is_open_fd(fd) ? -ENOTTY : -EBADF;
  const auto found = contexts_.find(node->slot);
  own_bytes = found == contexts_.end() ? 0 : used_locked(*found->second);
  free_bytes = view_.segment_bytes() - own_bytes;
  return 0;
}

Pool Driver::pool_locked(const Context& context) const {
  const Allocation& whole = context.allocations.at(context.pool);
  Pool pool;
  pool.allocated_base = whole.address;
  pool.base = whole.address + whole.reserve;
  pool.total_bytes = pool.free_bytes = whole.length_bytes - whole.reserve;
  for (const auto& [base, length] : whole.carved) pool.free_bytes -= length;
  return pool;
}

int Driver::make_pool(int fd, Pool& out) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  std::uint32_t slot = 0;
  Context* context = context_of(fd, error, &slot);
  if (context == nullptr) return error;
  if (context->pool == 0) {
    const std::uint64_t left = (view_.segment_bytes() - used_locked(*context)) / kDramPageBytes * kDramPageBytes;
    if (left <= kPoolReserve) return -ENOMEM;
    const std::uint64_t handle = allocate_locked(*context, left);
    if (handle == 0) return -ENOMEM;
    context->allocations.at(handle).reserve = kPoolReserve;
    if (map_locked(slot, *context, handle) == 0) {
      context->allocations.erase(handle);
      return -ENOMEM;
    }
    context->pool = handle;
  }
  out = pool_locked(*context);
  return 0;
}

int Driver::pool(int fd, Pool& out) {
  const std::lock_guard lock(mutex_);
  int error = 0;
  const Context* context = context_of(fd, error);
  if (context == nullptr) return error;
  if (context->pool == 0) return -ENOENT;
  out = pool_locked(*context);
  return 0;
}

std::uint64_t Driver::carve(std::uint32_t slot, std::uint64_t length_bytes, std::uint64_t wanted) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(slot);
  if (found == contexts_.end() || found->second->reset || found->second->pool == 0 || length_bytes == 0) return 0;
  Allocation& whole = found->second->allocations.at(found->second->pool);
  const Pool pool = pool_locked(*found->second);
  if (length_bytes > pool.total_bytes) return 0;
  const std::uint64_t room = sys::round_up(length_bytes, kCarveBytes);
  std::uint64_t at = wanted != 0 ? wanted : pool.base;
  if (at < pool.base || at % kCarveBytes != 0) return 0;
  for (const auto& [base, length] : whole.carved) {
    if (base + length <= at) continue;
    if (base >= at + room) break;
    if (wanted != 0) return 0;
    at = base + length;
  }
  if (at - pool.base > pool.total_bytes || room > pool.total_bytes - (at - pool.base)) return 0;
  whole.carved.emplace(at, room);
  return at;
}

int Driver::uncarve(std::uint32_t slot, std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(slot);
  if (found == contexts_.end() || found->second->pool == 0) return -ENODEV;
  return found->second->allocations.at(found->second->pool).carved.erase(address) == 0 ? -EINVAL : 0;
}

bool Driver::reach(std::uint64_t address, std::uint64_t length_bytes, DeviceBytes& out) {
  if (address < kDeviceSpace) return false;
  const std::lock_guard lock(mutex_);
  const std::uint64_t slot = (address - kDeviceSpace) / kDeviceStride;
  const auto found = contexts_.find(static_cast<std::uint32_t>(slot));
  if (slot >= devices() || found == contexts_.end() || found->second->reset) return false;
  for (const auto& [handle, each] : found->second->allocations) {
    const std::uint64_t from = address - (each.address + each.reserve);
    const std::uint64_t whole = each.length_bytes - each.reserve;
    if (each.address == 0 || from >= whole) continue;
    if (length_bytes > whole - from) return false;
    out = {each.bytes.data() + from, static_cast<std::uint32_t>(slot)};
    return true;
  }
  return false;
}

std::string Driver::counters() {
  const Counts& all = counts_;
  std::string text = fmt::format(
      "opens={},closes={},busy={},allocations={},frees={},maps={},unmaps={},exports={},host_maps={},host_unmaps={},"
      "copies={},host_bytes={},local_bytes={},link_bytes={},copies_refused={}",
      all.opens.load(), all.closes.load(), all.busy.load(), all.allocations.load(), all.frees.load(), all.maps.load(),
      all.unmaps.load(), all.exports.load(), all.host_maps.load(), all.host_unmaps.load(), all.copies.load(),
      all.host_bytes.load(), all.local_bytes.load(), all.link_bytes.load(), all.copies_refused.load());
  const std::lock_guard lock(mutex_);
  drop_windows_locked();
  std::uint64_t used = 0, carved = 0, held = 0;
  for (const auto& [slot, context] : contexts_) {
    used += used_locked(*context);
    for (const auto& [handle, allocation] : context->allocations) carved += allocation.carved.size();
  }
  for (std::uint32_t slot = 0; slot < devices(); ++slot) {
    if (!view_.compute_id(slot)) continue;  // never opened here
    const auto files = view_.device(slot);
    if (!files) continue;
    for (const sys::Fd& segment : files->hbm) held += sys::is_held_elsewhere(segment.get()) ? 1 : 0;
  }
  text +=
      fmt::format(",open_devices={},used_bytes={},carved={},held_segments={}", contexts_.size(), used, carved, held);
  for (std::uint32_t from = 0; from < devices(); ++from) {
    for (std::uint32_t to = 0; to < devices(); ++to) {
      const LinkWords::Pair& pair = view_.links().pairs[from][to];
      if (pair.transfers.load() == 0) continue;
      text += fmt::format(",link{}to{}_bytes={},link{}to{}_transfers={}", from, to, pair.bytes.load(), from, to,
                          pair.transfers.load());
    }
  }
  return text;
}

}  // namespace strait::soft::gaudi
