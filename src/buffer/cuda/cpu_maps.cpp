// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/cpu_maps.hpp"

#include <cstring>
#include <mutex>

#include "sys/fd.hpp"

namespace strait::buffer::cuda {
namespace {

// Where a copy engine's start-up (some microseconds) costs more than the window: writes are combined into full lines,
// reads go word by word at some hundred MB/s.
constexpr std::uint64_t kCpuWritesUpTo = 4096;
constexpr std::uint64_t kCpuReadsUpTo = 64;

}  // namespace

CpuMaps::~CpuMaps() {
  for (auto& [address, mapped] : maps_) {
    if (mapped.pinned.valid()) gdrcopy_->unmap(mapped.pinned);
  }
}

CpuMaps::CpuMaps(const Driver& driver, std::size_t page_bytes, CpuMapWay way)
    : driver_(driver), page_bytes_(page_bytes), way_(way) {
  if (way != CpuMapWay::automatic && way != CpuMapWay::gdrcopy) {
    no_gdrcopy_because_ = "cpu_map in the provider's config says so";
    return;
  }
  auto opened = Gdrcopy::open();
  if (opened) {
    gdrcopy_ = std::move(*opened);
  } else {
    no_gdrcopy_because_ = opened.error().text;
  }
}

bool CpuMaps::can_map(const Gpu& gpu, bool rdma_capable) const {
  return by_dmabuf(gpu) || (rdma_capable && gdrcopy_ != nullptr);
}

Result<CpuMaps::Mapped> CpuMaps::map_dmabuf(Pointer address, std::uint64_t length_bytes) {
  const Pointer first = address / page_bytes_ * page_bytes_;
  const std::uint64_t whole = sys::round_up(address + length_bytes - first, page_bytes_);
  int raw = -1;
  if (const CuResult result = driver_.range_handle(&raw, first, whole, kRangeDmaBuf, 0); result != kOk)
    return driver_.failed(result, fmt::format("export {} bytes at {:#x}", whole, first));
  const sys::Fd fd(raw);  // the mapping keeps the memory
  Mapped mapped;
  STRAIT_TRY(mapped.window, sys::map_file(fd.get(), 0, whole, sys::Protect::read_write));
  mapped.cpu = mapped.window.data() + (address - first);
  mapped.length_bytes = length_bytes;
  return mapped;
}

Result<void*> CpuMaps::map(Gpu& gpu, Pointer address, std::uint64_t length_bytes, std::uint64_t buffer_id,
                           bool rdma_capable) {
  Mapped mapped;
  if (by_dmabuf(gpu)) {
    STRAIT_TRY(mapped, map_dmabuf(address, length_bytes));
  } else if (rdma_capable && gdrcopy_ != nullptr) {
    STRAIT_TRY(mapped.pinned, gdrcopy_->map(address, length_bytes));
    mapped.cpu = mapped.pinned.cpu;
    mapped.length_bytes = length_bytes;
  } else {
    return with_remedy(
        fail(Code::unsupported, "memory of {} cannot be mapped for the CPU: by dma-buf: {}; by gdrcopy: {}", gpu.name(),
             gpu.maps_dmabuf() ? "cpu_map in the provider's config says no" : gpu.no_map_because(),
             gdrcopy_ != nullptr ? "this memory is not RDMA capable" : no_gdrcopy_because_),
        "Install driver 13.3 or later, or gdrcopy with its kernel module.");
  }
  mapped.buffer_id = buffer_id;
  void* const cpu = mapped.cpu;
  const std::unique_lock lock(mutex_);
  if (maps_.contains(address)) {
    if (mapped.pinned.valid()) gdrcopy_->unmap(mapped.pinned);
    return fail(Code::invalid, "a mapping for the CPU that begins at {:#x} exists already", address);
  }
  maps_.emplace(address, std::move(mapped));
  count_.store(maps_.size(), std::memory_order_release);
  return cpu;
}

bool CpuMaps::unmap(void* cpu_address) {
  Mapped last;  // unmapped after the lock
  const std::unique_lock lock(mutex_);
  for (auto at = maps_.begin(); at != maps_.end(); ++at) {
    if (at->second.cpu != cpu_address) continue;
    last = std::move(at->second);
    maps_.erase(at);
    count_.store(maps_.size(), std::memory_order_release);
    if (last.pinned.valid()) gdrcopy_->unmap(last.pinned);
    return true;
  }
  return false;
}

bool CpuMaps::copy_small(Pointer to, Pointer from, std::uint64_t length_bytes, bool to_device,
                         std::uint64_t buffer_id) const {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  if (length_bytes > (to_device ? kCpuWritesUpTo : kCpuReadsUpTo)) return false;
  const Pointer device = to_device ? to : from;
  const std::shared_lock lock(mutex_);
  const auto after = maps_.upper_bound(device);
  if (after == maps_.begin()) return false;
  const auto& [base, mapped] = *std::prev(after);
  const std::uint64_t offset = device - base;
  if (buffer_id == 0 || mapped.buffer_id != buffer_id) return false;
  if (offset >= mapped.length_bytes || length_bytes > mapped.length_bytes - offset) return false;
  if (mapped.pinned.valid()) {
    to_device ? gdrcopy_->copy_in(mapped.pinned, offset, reinterpret_cast<const void*>(from), length_bytes)
              : gdrcopy_->copy_out(mapped.pinned, offset, reinterpret_cast<void*>(to), length_bytes);
  } else if (to_device) {
    std::memcpy(mapped.cpu + offset, reinterpret_cast<const void*>(from), length_bytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // combined writes leave the CPU
  } else {
    std::memcpy(reinterpret_cast<void*>(to), mapped.cpu + offset, length_bytes);
  }
  return true;
}

std::size_t CpuMaps::live() const {
  return count_.load(std::memory_order_acquire);
}

}  // namespace strait::buffer::cuda
