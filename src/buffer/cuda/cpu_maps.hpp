// SPDX-License-Identifier: Apache-2.0
// CpuMaps: device memory under addresses the CPU can use, by mapping the dma-buf (driver 13.3 and later) or by gdrcopy.
//
// Reads through the window are uncached and slow, writes are combined and fast: what is mapped is also used for copies,
// up to a size that depends on the direction and is timed when a device has its first mapping. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
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
                                std::uint64_t buffer_id) const;
  [[nodiscard]] std::size_t live() const;
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
  std::atomic<std::size_t> count_{0};      // the usual case, none, costs one load
  std::string no_gdrcopy_because_;
  std::unique_ptr<Gdrcopy> gdrcopy_;
};

}  // namespace strait::buffer::cuda
