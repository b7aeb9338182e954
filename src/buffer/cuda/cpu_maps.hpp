// SPDX-License-Identifier: Apache-2.0
// CpuMaps: device memory under addresses the CPU can use, by mapping the dma-buf (driver 13.3 and later) or by gdrcopy.
//
// Reads through the window are uncached and slow, writes are combined and fast: what is mapped is also used for copies,
// up to a size that depends on the direction and is timed when a device has its first mapping.
//
// For copies CpuMaps also makes windows of its own, where small copies keep coming: pieces of allocations, few, the
// least recently used goes. A window belongs to one allocation, by its buffer id, and goes when another one is found in
// its place. A mapped dma-buf would keep memory alive that its owner has freed. So where the driver lets them be mapped
// there are windows only on what strait itself allocated, whose free is known; gdrcopy's module lets go of freed
// memory.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>

#include "base/error.hpp"
#include "buffer/config.hpp"
#include "buffer/cpu_limits.hpp"
#include "buffer/cuda/gdrcopy.hpp"
#include "buffer/cuda/gpu.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer::cuda {

class CpuMaps {
 public:
  // gdrcopy is opened now, or not at all.
  CpuMaps(const Driver& driver, std::size_t page_bytes, CpuMapWay way, const CpuCopies& copies);
  ~CpuMaps();
  CpuMaps(const CpuMaps&) = delete;
  CpuMaps& operator=(const CpuMaps&) = delete;

  // The range has been checked. Called with a context of `gpu` current. `buffer_id`: 0 for memory that can be remapped.
  [[nodiscard]] Result<void*> map(Gpu& gpu, Pointer address, std::uint64_t length_bytes, std::uint64_t buffer_id,
                                  bool rdma_capable);
  // Is there a way for memory like this? gdrcopy takes what the driver calls RDMA capable.
  [[nodiscard]] bool can_map(const Gpu& gpu, bool rdma_capable) const;
  // False: nothing is mapped there.
  bool unmap(void* cpu_address);

  // True: done, by the CPU, because it is small and a mapping of the device side exists. `buffer_id` is the
  // allocation's as it is now: a mapping outlives a free, and must not be taken for what lies at the same address
  // since.
  [[nodiscard]] bool copy_small(Pointer to, Pointer from, std::uint64_t length_bytes, bool to_device,
                                std::uint64_t buffer_id);
  // A copy that found no window. True: there have been enough like it that a window should be opened.
  struct Place {
    Pointer base = 0;  // of the allocation
    std::uint64_t length_bytes = 0;
    std::uint64_t buffer_id = 0;
    bool rdma_capable = false;
  };
  [[nodiscard]] bool pays(const Gpu& gpu, const Place& place, Pointer address, std::uint64_t length_bytes,
                          bool to_device);
  // Called with a context of `gpu` current. Without success the next copies do not try again for a while.
  void open_window(Gpu& gpu, const Place& place, Pointer address);
  // Strait allocated it, and is about to free it.
  void owns(Pointer base);
  void disowns(Pointer base, std::uint64_t length_bytes);
  [[nodiscard]] std::size_t live() const;     // that callers asked for
  [[nodiscard]] std::size_t windows() const;  // of its own
  // Of device `ordinal`, for people.
  [[nodiscard]] std::string limits_text(int ordinal) const;
  // How many devices were timed, and the largest limits of all that have had a mapping.
  struct Timed {
    std::size_t devices = 0;
    CpuLimits most{0, 0};
  };
  [[nodiscard]] Timed timed() const;
  // "" when gdrcopy is there, else why not.
  [[nodiscard]] const std::string& no_gdrcopy_because() const { return no_gdrcopy_because_; }

 private:
  struct Mapped {
    std::uint64_t length_bytes = 0;
    std::uint64_t buffer_id = 0;
    std::byte* cpu = nullptr;
    sys::Mapping window;  // of a dma-buf
    Gdrcopy::Pinned pinned;
    const DeviceCpuLimits* limits = nullptr;
  };
  struct Window {
    Mapped mapped;
    std::atomic<std::uint64_t> used{0};
  };
  // Few and small: what peers can map of a device (BAR1) may be 256 MiB in all.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;
  static constexpr std::size_t kMostWindows = 32;
  // Copies by the engine after which the next ones are worth a mapping, which takes as long as some of them.
  static constexpr std::uint32_t kPaysAfter = 4;
  [[nodiscard]] const DeviceCpuLimits* known_limits(const Gpu& gpu) const;
  void drop_window(std::map<Pointer, Window>::iterator at);  // under the lock
  [[nodiscard]] Result<Mapped> map_dmabuf(Pointer address, std::uint64_t length_bytes);
  [[nodiscard]] Result<Mapped> map_some_way(const Gpu& gpu, Pointer address, std::uint64_t length_bytes,
                                            bool rdma_capable);
  [[nodiscard]] DeviceCpuLimits& limits_of(const Gpu& gpu);
  void time_window(Gpu& gpu, DeviceCpuLimits& limits);
  [[nodiscard]] bool engine_copy(Gpu& gpu, Pointer device, void* host, bool to_device,
                                 std::uint64_t length_bytes) const;
  void window_copy(const Mapped& mapped, std::uint64_t offset, void* host, bool to_device,
                   std::uint64_t length_bytes) const;
  [[nodiscard]] bool by_dmabuf(const Gpu& gpu) const {
    return (way_ == CpuMapWay::automatic || way_ == CpuMapWay::dmabuf) && gpu.maps_dmabuf();
  }

  const Driver& driver_;
  const std::size_t page_bytes_;
  const CpuMapWay way_;
  const CpuCopies copies_;
  mutable std::shared_mutex mutex_;
  std::map<Pointer, Mapped> maps_;
  std::map<int, DeviceCpuLimits> limits_;  // by ordinal, from the first mapping on; stay where they are
  std::atomic<std::size_t> count_{0};      // of both kinds; the usual case, none, costs one load
  std::map<Pointer, Window> windows_;      // by their first byte
  std::set<Pointer> own_;                  // what strait allocated
  std::atomic<std::uint64_t> clock_{0};    // of uses of windows
  // What small copies by the engine were for: so many of them, by a piece of an allocation each.
  struct Asked {
    std::uint64_t buffer_id = 0;
    Pointer first = 0;
    std::uint32_t times = 0;
  };
  std::mutex asking_;
  std::array<Asked, 64> asked_{};
  std::int64_t no_window_before_ns_ = 0;  // under the same lock
  std::string no_gdrcopy_because_;
  std::unique_ptr<Gdrcopy> gdrcopy_;
};

}  // namespace strait::buffer::cuda
