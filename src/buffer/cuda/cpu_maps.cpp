// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/cpu_maps.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/pause.hpp"

namespace strait::buffer::cuda {
namespace {

// Of the driver's own allocation that is timed: one page as gdrcopy pins them lies in it wherever it begins.
constexpr std::uint64_t kTimedBytes = 65536;

// After a window could not be had: the BAR is full, or memory is not as it seems.
constexpr std::int64_t kTryAgainNs = 1'000'000'000;

}  // namespace

CpuMaps::~CpuMaps() {
  for (auto& [address, mapped] : maps_) {
    if (mapped.pinned.valid()) gdrcopy_->unmap(mapped.pinned);
  }
  while (!windows_.empty()) drop_window(windows_.begin());
}

CpuMaps::CpuMaps(const Driver& driver, std::size_t page_bytes, CpuMapWay way, const CpuCopies& copies)
    : driver_(driver), page_bytes_(page_bytes), way_(way), copies_(copies) {
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

Result<CpuMaps::Mapped> CpuMaps::map_some_way(const Gpu& gpu, Pointer address, std::uint64_t length_bytes,
                                              bool rdma_capable) {
  if (by_dmabuf(gpu)) return map_dmabuf(address, length_bytes);
  if (rdma_capable && gdrcopy_ != nullptr) {
    Mapped mapped;
    STRAIT_TRY(mapped.pinned, gdrcopy_->map(address, length_bytes));
    mapped.cpu = mapped.pinned.cpu;
    mapped.length_bytes = length_bytes;
    return mapped;
  }
  return with_remedy(
      fail(Code::unsupported, "memory of {} cannot be mapped for the CPU: by dma-buf: {}; by gdrcopy: {}", gpu.name(),
           gpu.maps_dmabuf() ? "cpu_map in the provider's config says no" : gpu.no_map_because(),
           gdrcopy_ != nullptr ? "this memory is not RDMA capable" : no_gdrcopy_because_),
      "Install driver 13.3 or later, or gdrcopy with its kernel module.");
}

Result<void*> CpuMaps::map(Gpu& gpu, Pointer address, std::uint64_t length_bytes, std::uint64_t buffer_id,
                           bool rdma_capable) {
  STRAIT_TRY(Mapped mapped, map_some_way(gpu, address, length_bytes, rdma_capable));
  DeviceCpuLimits& limits = limits_of(gpu);
  // Without a context there are no streams to time; the next mapping may have one.
  if (gpu.context() != nullptr && limits.take_turn()) time_window(gpu, limits);
  mapped.buffer_id = buffer_id;
  mapped.limits = &limits;
  void* const cpu = mapped.cpu;
  const std::unique_lock lock(mutex_);
  if (maps_.contains(address)) {
    if (mapped.pinned.valid()) gdrcopy_->unmap(mapped.pinned);
    return fail(Code::invalid, "a mapping for the CPU that begins at {:#x} exists already", address);
  }
  maps_.emplace(address, std::move(mapped));
  count_.store(maps_.size() + windows_.size(), std::memory_order_release);
  return cpu;
}

const DeviceCpuLimits* CpuMaps::known_limits(const Gpu& gpu) const {
  const std::shared_lock lock(mutex_);
  const auto found = limits_.find(gpu.ordinal());
  return found == limits_.end() ? nullptr : &found->second;
}

bool CpuMaps::pays(const Gpu& gpu, const Place& place, Pointer address, std::uint64_t length_bytes, bool to_device) {
  if (place.buffer_id == 0 || !can_map(gpu, place.rdma_capable)) return false;
  const DeviceCpuLimits* const limits = known_limits(gpu);
  const CpuLimits& untimed = copies_.limits;
  if (length_bytes > (limits != nullptr ? limits->of(to_device) : to_device ? untimed.in : untimed.out)) return false;
  const Pointer first = address / kWindowBytes * kWindowBytes;
  if (address + length_bytes - first > kWindowBytes) return false;
  if (gpu.maps_dmabuf()) {  // by us or by gdrcopy
    const std::shared_lock lock(mutex_);
    if (!own_.contains(place.base)) return false;
  }
  const std::lock_guard lock(asking_);
  Asked& asked = asked_[(first / kWindowBytes + place.buffer_id) % asked_.size()];
  if (asked.buffer_id != place.buffer_id || asked.first != first) asked = {place.buffer_id, first, 0};
  if (++asked.times <= kPaysAfter) return false;
  asked.times = 0;
  return sys::now_ns() >= no_window_before_ns_;
}

void CpuMaps::open_window(Gpu& gpu, const Place& place, Pointer address) {
  const Pointer first = std::max(address / kWindowBytes * kWindowBytes, place.base);
  const Pointer end = std::min(first / kWindowBytes * kWindowBytes + kWindowBytes, place.base + place.length_bytes);
  auto mapped = map_some_way(gpu, first, end - first, place.rdma_capable);
  if (!mapped) {
    const std::lock_guard lock(asking_);
    no_window_before_ns_ = sys::now_ns() + kTryAgainNs;
    return;
  }
  DeviceCpuLimits& limits = limits_of(gpu);
  if (gpu.context() != nullptr && limits.take_turn()) time_window(gpu, limits);
  mapped->buffer_id = place.buffer_id;
  mapped->limits = &limits;
  const std::unique_lock lock(mutex_);
  if (const auto old = windows_.find(first); old != windows_.end()) drop_window(old);
  if (gpu.maps_dmabuf() && !own_.contains(place.base)) {  // freed meanwhile: nobody would say it again
    if (mapped->pinned.valid()) gdrcopy_->unmap(mapped->pinned);
    return;
  }
  while (windows_.size() >= kMostWindows) {
    drop_window(std::min_element(windows_.begin(), windows_.end(), [](const auto& a, const auto& b) {
      return a.second.used.load(std::memory_order_relaxed) < b.second.used.load(std::memory_order_relaxed);
    }));
  }
  Window& window = windows_[first];
  window.mapped = std::move(*mapped);
  window.used.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_.store(maps_.size() + windows_.size(), std::memory_order_release);
}

void CpuMaps::drop_window(std::map<Pointer, Window>::iterator at) {
  if (at->second.mapped.pinned.valid()) gdrcopy_->unmap(at->second.mapped.pinned);
  windows_.erase(at);
  count_.store(maps_.size() + windows_.size(), std::memory_order_release);
}

void CpuMaps::owns(Pointer base) {
  const std::unique_lock lock(mutex_);
  own_.insert(base);
}

void CpuMaps::disowns(Pointer base, std::uint64_t length_bytes) {
  const std::unique_lock lock(mutex_);
  own_.erase(base);
  for (auto at = windows_.lower_bound(base); at != windows_.end() && at->first - base < length_bytes;)
    drop_window(at++);
}

DeviceCpuLimits& CpuMaps::limits_of(const Gpu& gpu) {
  const std::unique_lock lock(mutex_);
  return limits_.try_emplace(gpu.ordinal(), copies_).first->second;
}

// On memory of its own, mapped the same way: nobody's bytes are written.
void CpuMaps::time_window(Gpu& gpu, DeviceCpuLimits& limits) {
  Pointer scratch = 0;
  if (driver_.alloc(&scratch, 2 * kTimedBytes) != kOk) return limits.cannot_time("no device memory was free");
  const Pointer whole_page = sys::round_up(scratch, kTimedBytes);
  if (auto mapped = map_some_way(gpu, whole_page, kTimedBytes, true)) {
    std::array<std::byte, kLongCopy> host{};
    limits.time(
        [&](bool to_device, std::uint64_t length_bytes) {
          window_copy(*mapped, 0, host.data(), to_device, length_bytes);
          return true;
        },
        [&](bool to_device, std::uint64_t length_bytes) {
          return engine_copy(gpu, whole_page, host.data(), to_device, length_bytes);
        });
    if (mapped->pinned.valid()) gdrcopy_->unmap(mapped->pinned);
  } else {
    limits.cannot_time(mapped.error().text);
  }
  (void)driver_.free(scratch);
}

// As Copies does it.
bool CpuMaps::engine_copy(Gpu& gpu, Pointer device, void* host, bool to_device, std::uint64_t length_bytes) const {
  const auto event = gpu.take_event();
  if (!event) return false;
  const Stream stream = gpu.stream(to_device ? Direction::in : Direction::out);
  CuResult result = to_device ? driver_.copy_in(device, host, length_bytes, stream)
                              : driver_.copy_out(host, device, length_bytes, stream);
  if (result == kOk) result = driver_.event_record(*event, stream);
  for (std::uint32_t turn = 0; result == kOk; ++turn) {
    const CuResult state = driver_.event_query(*event);
    if (state == kOk) break;
    if (state != kNotReady) result = state;
    sys::pause_turn(turn % 64);
  }
  gpu.give_event(*event);
  return result == kOk;
}

void CpuMaps::window_copy(const Mapped& mapped, std::uint64_t offset, void* host, bool to_device,
                          std::uint64_t length_bytes) const {
  if (mapped.pinned.valid()) {
    to_device ? gdrcopy_->copy_in(mapped.pinned, offset, host, length_bytes)
              : gdrcopy_->copy_out(mapped.pinned, offset, host, length_bytes);
  } else if (to_device) {
    std::memcpy(mapped.cpu + offset, host, length_bytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // combined writes leave the CPU
  } else {
    std::memcpy(host, mapped.cpu + offset, length_bytes);
  }
}

bool CpuMaps::unmap(void* cpu_address) {
  Mapped last;  // unmapped after the lock
  const std::unique_lock lock(mutex_);
  for (auto at = maps_.begin(); at != maps_.end(); ++at) {
    if (at->second.cpu != cpu_address) continue;
    last = std::move(at->second);
    maps_.erase(at);
    count_.store(maps_.size() + windows_.size(), std::memory_order_release);
    if (last.pinned.valid()) gdrcopy_->unmap(last.pinned);
    return true;
  }
  return false;
}

bool CpuMaps::copy_small(Pointer to, Pointer from, std::uint64_t length_bytes, bool to_device,
                         std::uint64_t buffer_id) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  if (length_bytes > kCpuCopiesMost || buffer_id == 0) return false;
  const Pointer device = to_device ? to : from;
  const auto copied = [&](Pointer base, const Mapped& mapped) {
    const std::uint64_t offset = device - base;
    if (mapped.buffer_id != buffer_id || offset >= mapped.length_bytes || length_bytes > mapped.length_bytes - offset ||
        length_bytes > mapped.limits->of(to_device))
      return false;
    window_copy(mapped, offset, reinterpret_cast<void*>(to_device ? from : to), to_device, length_bytes);
    return true;
  };
  {
    const std::shared_lock lock(mutex_);
    if (const auto after = maps_.upper_bound(device); after != maps_.begin()) {
      const auto& [base, mapped] = *std::prev(after);
      if (copied(base, mapped)) return true;
    }
    const auto after = windows_.upper_bound(device);
    if (after == windows_.begin()) return false;
    auto& [base, window] = *std::prev(after);
    if (copied(base, window.mapped)) {
      window.used.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return true;
    }
    if (window.mapped.buffer_id == buffer_id || device - base >= window.mapped.length_bytes) return false;
  }
  // Another allocation lies there now.
  const std::unique_lock lock(mutex_);
  const auto after = windows_.upper_bound(device);
  if (after == windows_.begin()) return false;
  const auto at = std::prev(after);
  if (at->second.mapped.buffer_id != buffer_id && device - at->first < at->second.mapped.length_bytes) drop_window(at);
  return false;
}

std::size_t CpuMaps::live() const {
  const std::shared_lock lock(mutex_);
  return maps_.size();
}

std::size_t CpuMaps::windows() const {
  const std::shared_lock lock(mutex_);
  return windows_.size();
}

std::string CpuMaps::limits_text(int ordinal) const {
  const std::shared_lock lock(mutex_);
  const auto found = limits_.find(ordinal);
  return found != limits_.end() ? found->second.text() : DeviceCpuLimits(copies_).text();
}

CpuMaps::Timed CpuMaps::timed() const {
  Timed all;
  const std::shared_lock lock(mutex_);
  for (const auto& [ordinal, limits] : limits_) {
    all.devices += limits.was_timed() ? 1 : 0;
    all.most.in = std::max(all.most.in, limits.of(true));
    all.most.out = std::max(all.most.out, limits.of(false));
  }
  return all;
}

}  // namespace strait::buffer::cuda
