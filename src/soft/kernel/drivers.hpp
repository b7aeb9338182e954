// SPDX-License-Identifier: Apache-2.0
// Drivers: the device memory that vendors' drivers announced, by address and by file.
//
// A DeviceMemory outlives its place in the table while somebody holds it; it is then `freed`. Who uses the memory by
// its address watches it: the watchers run before remove() returns, outside every lock, and can drop their watch
// themselves.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "soft/kernel/driver.h"
#include "sys/fd.hpp"
#include "sys/files.hpp"

namespace strait::soft::kernel {

class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  DeviceMemory(const strait_soft_driver_memory& said, sys::Fd file, sys::FileId id);

  [[nodiscard]] const strait_soft_driver_memory& said() const { return said_; }
  [[nodiscard]] int file() const { return file_.get(); }
  // Lives as long as this, also when the memory was freed meanwhile.
  [[nodiscard]] std::shared_ptr<const sys::Fd> shared_file() const { return {shared_from_this(), &file_}; }
  [[nodiscard]] sys::FileId file_id() const { return file_id_; }
  [[nodiscard]] std::uint64_t end() const { return said_.base + said_.length_bytes; }
  [[nodiscard]] bool covers(std::uint64_t address, std::uint64_t length_bytes) const {
    return address >= said_.base && address - said_.base <= said_.length_bytes &&
           length_bytes <= said_.length_bytes - (address - said_.base);
  }
  // Where the byte at a device address is in the file.
  [[nodiscard]] std::uint64_t file_offset(std::uint64_t address) const {
    return said_.memfd_offset + (address - said_.base);
  }

  // Runs once, when the memory is freed, unless it is dropped first. 0: it is freed already.
  [[nodiscard]] std::uint64_t watch(std::function<void()> on_free);
  // False: its function runs, or has run; it is not waited for.
  bool unwatch(std::uint64_t watch);
  void run_watchers();

 private:
  const strait_soft_driver_memory said_;
  const sys::Fd file_;
  const sys::FileId file_id_;
  std::mutex mutex_;
  bool freed_ = false;
  std::uint64_t next_watch_ = 1;
  std::map<std::uint64_t, std::function<void()>> watchers_;
};

class Drivers {
 public:
  // 0 or -errno, as driver.h says.
  [[nodiscard]] int add(const strait_soft_driver_memory& memory);
  [[nodiscard]] int remove(std::uint64_t base, std::uint64_t identity);

  [[nodiscard]] std::shared_ptr<DeviceMemory> find(std::uint64_t address) const;
  // The piece of the file that `offset` lies in: one file can hold several allocations.
  [[nodiscard]] std::shared_ptr<DeviceMemory> find_file(sys::FileId id, std::uint64_t offset) const;
  [[nodiscard]] std::shared_ptr<DeviceMemory> find_file(sys::FileId id) const;  // any piece of it
  // The first memory with a byte in [first, end).
  [[nodiscard]] std::shared_ptr<DeviceMemory> find_overlap(std::uint64_t first, std::uint64_t end) const;
  [[nodiscard]] std::size_t live() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<DeviceMemory>> by_base_;
  std::multimap<sys::FileId, std::shared_ptr<DeviceMemory>> by_file_;
};

// What strait_soft_driver_* talk to: a machine has one kernel. Never destroyed: drivers free memory at process exit.
[[nodiscard]] Drivers& machine_drivers();

}  // namespace strait::soft::kernel
