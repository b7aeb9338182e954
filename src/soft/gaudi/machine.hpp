// SPDX-License-Identifier: Apache-2.0
// Machine: the Gaudis of one run as files that every process of the run opens: nodes and memory.
//
// Hardware outlives the processes that use it, and so do these files: `strait run` makes them, keeps them open until
// the run ends, and leaves links to them in the run's root (ROOT/gaudi/hbm0.0 -> /proc/PID/fd/N). Who holds which is
// told by shared locks on descriptions (sys/file_hold.hpp): a compute node has one owner process, and an exported piece
// of memory keeps its device busy wherever the descriptor went. Without a run a process makes a machine of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "soft/accel/spec.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::gaudi {

inline constexpr std::uint32_t kMostDevices = 64;
// Each allocation of the driver is a file of its own, so that byte 0 of its dma-buf is byte 0 of the allocation.
inline constexpr std::uint32_t kSegments = 8;
inline constexpr std::uint64_t kDramPageBytes = 65536;

struct DeviceFiles {
  sys::Fd compute;
  sys::Fd control;
  std::array<sys::Fd, kSegments> hbm;
};

// What all processes of the run see of the links between all pairs of devices: counters, and which memory is at their
// far ends.
struct LinkWords {
  struct Pair {
    std::atomic<std::uint64_t> bytes, transfers;
  };
  // Memory that its owner has mapped. Written by the owner only; the version is odd meanwhile.
  struct Mapped {
    std::atomic<std::uint64_t> version, base, length_bytes;
  };
  Pair pairs[kMostDevices][kMostDevices];
  std::atomic<std::uint64_t> resets[kMostDevices];
  Mapped mapped[kMostDevices][kSegments];
};

// The keeper's side.
class Machine {
 public:
  // `root`: a folder of the run; empty: no links are made, for a process that keeps its own.
  [[nodiscard]] static Result<Machine> create(const std::string& root, const accel::VendorSpec& spec);
  [[nodiscard]] const DeviceFiles& device(std::uint32_t slot) const { return devices_[slot]; }
  [[nodiscard]] const sys::Fd& links() const { return links_; }

 private:
  std::vector<DeviceFiles> devices_;
  sys::Fd links_;
};

// What one process sees. It keeps no descriptor open of its own accord: who looks for leaks finds none.
class View {
 public:
  // The machine of the run that STRAIT_HOST_ROOT names, or one of this process's own, made device by device.
  [[nodiscard]] static Result<View> open(const accel::VendorSpec& spec);
  [[nodiscard]] std::uint32_t devices() const { return devices_; }
  [[nodiscard]] LinkWords& links() const { return *reinterpret_cast<LinkWords*>(links_.data()); }
  [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }

  // New descriptions of all files of a device, none of them a holder.
  [[nodiscard]] Result<DeviceFiles> device(std::uint32_t slot);
  [[nodiscard]] Result<sys::Fd> control(std::uint32_t slot);
  // Which file a descriptor has to be of; nothing: that node was never opened here.
  [[nodiscard]] std::optional<sys::FileId> compute_id(std::uint32_t slot) const { return ids_[slot].compute; }
  [[nodiscard]] std::optional<sys::FileId> control_id(std::uint32_t slot) const { return ids_[slot].control; }
  // The device may go if nobody holds a file of it any more: one of this process's own does.
  void forget(std::uint32_t slot);

 private:
  struct Ids {
    std::optional<sys::FileId> compute, control;
  };
  [[nodiscard]] Status make_own(std::uint32_t slot);
  std::string root_;                           // empty: the machine is our own
  std::vector<std::unique_ptr<Machine>> own_;  // one for each device
  std::vector<Ids> ids_;
  sys::Mapping links_;
  std::uint32_t devices_ = 0;
  std::uint64_t segment_bytes_ = 0;
};

}  // namespace strait::soft::gaudi
