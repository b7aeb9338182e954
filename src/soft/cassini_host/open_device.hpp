// SPDX-License-Identifier: Apache-2.0
// OpenDevice: one open of /dev/cxiN as this process sees it: its commands are read from its own memory, device memory
// is found here, and what is mapped is kept account of. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "soft/cassini_host/channel.hpp"
#include "soft/cassini_host/device_memory.hpp"
#include "soft/cassini_host/own_memory.hpp"
#include "soft/cassini_host/start.hpp"
#include "soft/cassini_host/strict_watch.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::cassini {

struct OpenSettings {
  std::uint32_t device = 0;
  bool local = false;
  ServerPlace server;  // an empty name: server_name()
  DeviceMemorySettings memory;
  TrialSettings trial;
  StrictWatch::Told told;  // how many findings there are, when there is another
};

class OpenDevice {
 public:
  [[nodiscard]] static Result<std::unique_ptr<OpenDevice>> open(OpenSettings settings);
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice();

  // As write(2) of the driver: the length, or -errno.
  [[nodiscard]] long write(const void* command, std::size_t length);

  // As mmap(2): the address, or -errno. `trap`: doorbells of counters are shown read-only, and stores to them decoded.
  [[nodiscard]] std::int64_t map(void* address, std::size_t length, int protect, int flags, std::uint64_t offset,
                                 bool trap);
  // After munmap(2) of that range.
  void unmapped(void* address, std::size_t length);

  // As DeviceMemories::lend.
  [[nodiscard]] int lend(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port) {
    return device_memory_.lend(address, bytes, port);
  }
  // Lent memory, or a file that the channel was told of.
  [[nodiscard]] int unshare(std::uint64_t address) {
    const int taken = device_memory_.take_back(address);
    return taken == -ENOENT ? channel_->unshare(address) : taken;
  }
  [[nodiscard]] Channel& channel() { return *channel_; }
  // The kernel that its device memory comes from.
  [[nodiscard]] kernel::Kernel& kernel() { return device_memory_.kernel(); }
  // What was found in this program and told; null: nobody is strict.
  [[nodiscard]] StrictWatch* watch() { return watch_.get(); }

 private:
  OpenDevice(std::unique_ptr<Channel> channel, DeviceMemorySettings memory)
      : channel_(std::move(channel)), device_memory_(std::move(memory), *channel_) {}

  struct Mapped {
    std::uint64_t offset = 0;
    std::size_t length = 0;
    std::size_t left = 0;  // still mapped
    sys::Mapping alias;    // of a doorbell
  };
  std::unique_ptr<Channel> channel_;
  OwnMemory memory_;
  DeviceMemories device_memory_;
  std::mutex mutex_;  // of what follows
  std::map<std::uint64_t, Mapped> mapped_;
  std::unique_ptr<StrictWatch> watch_;  // last: it asks the channel
};

}  // namespace strait::soft::cassini
