// SPDX-License-Identifier: Apache-2.0
// DeviceMemories: accelerators' memory that commands name by a dma-buf or by its address, as the CXI driver would get
// it from the kernel of the software machine. Lives in the client's process, where that kernel is.
//
// What was found goes with the command; what holds it stays until the object that was made of it is freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "soft/cassini_host/channel.hpp"
#include "soft/cassini_host/lent_ports.hpp"
#include "soft/kernel/kernel.hpp"
#include "sys/fork.hpp"

namespace strait::soft::cassini {

struct DeviceMemorySettings;

// Options peer_memory, kernel_faults and cassini_moves; empty: nobody said anything.
struct DeviceMemoryWords {
  std::string ways, faults, moves;
  [[nodiscard]] static DeviceMemoryWords from_environment();
  [[nodiscard]] Result<DeviceMemorySettings> settings() const;
};

struct DeviceMemorySettings {
  enum class Pages : std::uint8_t { none, persistent, callback };
  Pages pages = Pages::persistent;  // the driver's module parameter, and whether NVIDIA's driver is there at all
  bool remap = false;               // a dma-buf that moved is mapped again; the driver tears its descriptor down
  kernel::KernelSettings kernel;

  // From the environment: STRAIT_PEER_MEMORY, STRAIT_KERNEL_FAULTS, STRAIT_CASSINI_MOVES.
  [[nodiscard]] static Result<DeviceMemorySettings> from_environment();
};

class DeviceMemories {
 public:
  DeviceMemories(DeviceMemorySettings settings, Channel& channel);
  ~DeviceMemories();

  // One piece, held until it is let go.
  class Hold;
  struct Found {
    std::vector<NamedMemory> memory;
    std::vector<std::shared_ptr<Hold>> holds;
  };
  // What of a command is device memory; mostly nothing.
  [[nodiscard]] Found find(std::span<const std::byte> command);
  // After it was carried out: what was made keeps what was found; what was freed lets go.
  void done(std::span<const std::byte> command, Found found, std::uint32_t made);

  // Memory that is reached through a port of this process, from now on until it is taken back: 0 or -errno.
  [[nodiscard]] int lend(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port);
  [[nodiscard]] int take_back(std::uint64_t address);

  [[nodiscard]] kernel::Kernel& kernel() { return kernel_; }

 private:
  void by_descriptor(int fd, Found& found);
  void by_address(std::uint64_t address, std::uint64_t bytes, Found& found);
  // Through a port, under a number of its own; `kept` stays as long.
  void lend_for(NamedMemory named, const strait_memory_port* port, std::shared_ptr<const void> kept, Found& found);
  void keep(NamedMemory named, std::shared_ptr<Hold> hold, Found& found);
  [[nodiscard]] bool is_device_memory(std::uint64_t address, std::uint64_t bytes);

  enum class Kind : std::uint8_t { md, cq, ct };
  const sys::ForkMark mark_;
  DeviceMemorySettings settings_;
  Channel& channel_;
  kernel::Kernel kernel_;
  std::mutex mutex_;
  LentPorts lent_;
  std::uint32_t next_memory_ = 1;
  std::multimap<std::pair<Kind, std::uint32_t>, std::shared_ptr<Hold>> held_;
};

}  // namespace strait::soft::cassini
