// SPDX-License-Identifier: Apache-2.0
// Driver: what the habanalabs kernel driver is to one process: nodes to open, device memory to allocate, map and
// export. hl-thunk, SynapseAI and scal stand in front of it; they share this one object, in libstrait-gaudi.so.
//
// Every answer is 0 or more, or a negative errno, as an ioctl through hl-thunk gives it. A descriptor is known by its
// file: a duplicate is as good as the original. Threads: any. A forked child is refused: the engine is not there.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.hpp"
#include "soft/gaudi/machine.hpp"
#include "sys/files.hpp"
#include "sys/fork.hpp"
#include "sys/mapping.hpp"

#define STRAIT_GAUDI_API __attribute__((visibility("default")))

namespace strait::soft::gaudi {

// Device addresses: far outside of what a CPU can follow, and different for every device, so that an address says whose
// it is.
inline constexpr std::uint64_t kDeviceSpace = 0x1001'0000'0000'0000;
inline constexpr std::uint64_t kDeviceStride = std::uint64_t{1} << 43;
inline constexpr std::uint64_t kSegmentStride = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kHostSpace = 0x0fff'0000'0000'0000;  // host memory as a device sees it
// What scal keeps for itself at the start of the pool.
inline constexpr std::uint64_t kPoolReserve = kDramPageBytes;
inline constexpr std::uint64_t kNotifyReset = std::uint64_t{1} << 2;

struct Node {
  std::uint32_t slot = 0;
  bool control = false;
};

struct Pool {
  std::uint64_t allocated_base = 0;  // what the driver mapped
  std::uint64_t base = 0;            // where the program's part begins
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// Bytes of device memory where this process sees them.
struct DeviceBytes {
  std::byte* at = nullptr;
  std::uint32_t slot = 0;
};

// Bytes of a device that another process has open, for the time of one transfer over the link. They are held: the next
// owner of that device waits for the transfer's end.
struct FarBytes {
  std::byte* at = nullptr;
  std::uint32_t slot = 0;
  sys::Fd held;
  sys::Mapping window;
};

struct Counts {
  Counter opens, closes, busy, allocations, frees, maps, unmaps, exports, host_maps, host_unmaps, copies, host_bytes,
      local_bytes, link_bytes, copies_refused;
};

class STRAIT_GAUDI_API Driver {
 public:
  // The one of this process; null in a forked child, and where the machine cannot be opened.
  [[nodiscard]] static Driver* get();
  [[nodiscard]] std::uint32_t devices() const { return view_.devices(); }
  [[nodiscard]] bool first_generation() const { return first_generation_; }
  [[nodiscard]] std::uint64_t dram_bytes() const { return view_.segment_bytes(); }
  [[nodiscard]] static std::uint64_t dram_base(std::uint32_t slot) { return kDeviceSpace + slot * kDeviceStride; }
  [[nodiscard]] static std::string bus_id(std::uint32_t slot);

  [[nodiscard]] int open_compute(std::uint32_t slot);
  [[nodiscard]] int open_control(std::uint32_t slot);
  int close(int fd);
  [[nodiscard]] std::optional<Node> node_of(int fd);
  [[nodiscard]] bool is_busy(std::uint32_t slot);
  [[nodiscard]] int status(std::uint32_t slot);  // enum hl_device_status

  // 0: no memory.
  [[nodiscard]] std::uint64_t allocate(int fd, std::uint64_t length_bytes);
  [[nodiscard]] int free(int fd, std::uint64_t handle);
  [[nodiscard]] std::uint64_t map(int fd, std::uint64_t handle);
  [[nodiscard]] std::uint64_t map_host(int fd, void* pointer, std::uint64_t length_bytes);
  [[nodiscard]] int unmap(int fd, std::uint64_t address);
  [[nodiscard]] int export_mapped(int fd, std::uint64_t address, std::uint64_t length_bytes, std::uint64_t offset,
                                  std::uint32_t flags);
  [[nodiscard]] int export_handle(int fd, std::uint64_t handle, std::uint64_t length_bytes);
  [[nodiscard]] int usage(int fd, std::uint64_t& free_bytes, std::uint64_t& own_bytes);

  // scal's pool: made once for an open device, of all memory that is left.
  [[nodiscard]] int make_pool(int fd, Pool& out);
  [[nodiscard]] int pool(int fd, Pool& out);
  // SynapseAI's allocations in it. 0: none left. `wanted` 0: anywhere.
  [[nodiscard]] std::uint64_t carve(std::uint32_t slot, std::uint64_t length_bytes, std::uint64_t wanted);
  [[nodiscard]] int uncarve(std::uint32_t slot, std::uint64_t address);

  // All of [address, +length) in one mapping of an open device.
  [[nodiscard]] bool reach(std::uint64_t address, std::uint64_t length_bytes, DeviceBytes& out);
  // The same of a device of another process: what its owner has mapped now.
  [[nodiscard]] bool reach_far(std::uint64_t address, std::uint64_t length_bytes, FarBytes& out);
  // Counts a transfer between two devices on their link.
  void count_link(std::uint32_t from, std::uint32_t to, std::uint64_t length_bytes);

  [[nodiscard]] int make_notifier(int fd);
  [[nodiscard]] int drop_notifier(int fd, int handle);
  [[nodiscard]] int wait_notifier(int fd, int handle, std::uint64_t& events, std::uint64_t& count,
                                  std::uint32_t timeout_ms);
  // The device falls over: who has it open finds it gone, hears of it, and has to open it again.
  [[nodiscard]] int reset(std::uint32_t slot);
  [[nodiscard]] std::uint64_t resets(std::uint32_t slot) const { return view_.links().resets[slot].load(); }

  // For the last line of `strait run`: a name that was called and is not there.
  void count_unsupported(const char* name);

  [[nodiscard]] Counts& counts() { return counts_; }
  [[nodiscard]] std::string counters();

 private:
  struct Allocation {
    std::uint64_t handle = 0;
    std::uint32_t segment = 0;
    std::uint64_t length_bytes = 0;
    std::uint64_t address = 0;   // 0: not mapped
    std::uint64_t identity = 0;  // with which the kernel knows the mapping
    std::uint64_t reserve = 0;   // scal's: lies at the end of the file, so that the program's part begins at byte 0
    sys::Mapping bytes;
    std::map<std::uint64_t, std::uint64_t> carved;  // of the pool: base and length
  };
  // A dma-buf of a part of a segment, which it holds for as long as somebody has the window.
  struct Window {
    sys::Fd window;
    sys::Fd segment;
  };
  struct HostRange {
    std::uint64_t address = 0;
    std::uint64_t length_bytes = 0;
  };
  struct Notifier {
    int handle = 0;
    std::uint64_t events = 0;
    std::uint64_t count = 0;
  };
  // What the driver keeps for who has the compute node open.
  struct Context {
    DeviceFiles files;
    bool reset = false;
    std::map<std::uint64_t, Allocation> allocations;
    std::uint64_t pool = 0;  // handle
    std::vector<HostRange> host;
    std::vector<Notifier> notifiers;
  };

  Driver(View view, bool first_generation) : view_(std::move(view)), first_generation_(first_generation) {}
  [[nodiscard]] Context* context_of(int fd, int& error, std::uint32_t* slot = nullptr);
  [[nodiscard]] std::optional<Node> node_locked(int fd) const;
  [[nodiscard]] std::uint64_t allocate_locked(Context& context, std::uint64_t length_bytes);
  [[nodiscard]] std::uint64_t map_locked(std::uint32_t slot, Context& context, std::uint64_t handle);
  [[nodiscard]] int export_locked(const Context& context, const Allocation& allocation);
  [[nodiscard]] int export_part_locked(const Context& context, const Allocation& allocation, std::uint64_t offset,
                                       std::uint64_t length_bytes);
  // Of windows that nobody has any more. Before anybody asks whether a segment is held.
  void drop_windows_locked() const;
  [[nodiscard]] bool memory_held_locked(const DeviceFiles& files) const;
  [[nodiscard]] std::uint64_t used_locked(const Context& context) const;
  [[nodiscard]] Pool pool_locked(const Context& context) const;
  void end_context(std::uint32_t slot);
  // What links lead to, as others see it.
  void show_mapped(std::uint32_t slot, std::uint32_t segment, std::uint64_t base, std::uint64_t length_bytes);
  void show_nothing(std::uint32_t slot);
  void report_locked();
  static void tell_gone(const Allocation& allocation);

  View view_;
  const bool first_generation_;
  const sys::ForkMark mark_;

  std::mutex mutex_;
  std::condition_variable notified_;
  std::map<std::uint32_t, std::unique_ptr<Context>> contexts_;
  std::uint64_t last_handle_ = 0;
  int last_notifier_ = 0;
  mutable std::vector<Window> windows_;  // also of devices that were closed meanwhile
  std::map<std::string, std::uint64_t> unsupported_;
  std::uint64_t left_buffers_ = 0, left_bytes_ = 0;  // of SynapseAI, not freed when their device was closed
  Counts counts_;
};

}  // namespace strait::soft::gaudi
