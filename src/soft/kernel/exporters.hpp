// SPDX-License-Identifier: Apache-2.0
// The vendors' exporters, each with its own manners:
//
//   nv_dmabuf   static, never moves; refuses the attach with 524 when the topology or the importer takes no peer memory
//   amdgpu      pins and moves; without a peer path, or for a static importer, the buffer goes to system memory
//   habanalabs  static, never moves; attach only notes that there is no path, map then answers EPERM; EBUSY in reset
//   soft_accel  content with everybody; pins and moves when it is told to move
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "soft/kernel/dma_buf.hpp"
#include "sys/fd.hpp"

namespace strait::soft::kernel {

// What of an accelerator's BAR is taken by mappings; by vendor and device.
class BarSpace {
 public:
  // False: not so many bytes are left. 0 limit: there is always room.
  [[nodiscard]] bool take(std::uint64_t which, std::uint64_t bytes, std::uint64_t limit);
  void give_back(std::uint64_t which, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t used(std::uint64_t which) const;
  [[nodiscard]] static std::uint64_t of(std::uint32_t vendor, std::uint32_t device) {
    return std::uint64_t{vendor} << 32 | device;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> used_;
};

struct FilePiece {
  std::shared_ptr<const sys::Fd> file;  // the driver's own where it announced the memory: a kernel needs no descriptor
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

struct ExporterNeeds {
  std::vector<FilePiece> files;  // one behind the other
  std::uint64_t size_bytes = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  KernelFaults* faults = nullptr;  // these outlive the exporter
  BarSpace* bar = nullptr;
};
[[nodiscard]] std::unique_ptr<Exporter> make_exporter(ExporterNeeds needs);

}  // namespace strait::soft::kernel
