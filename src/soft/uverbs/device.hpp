// SPDX-License-Identifier: Apache-2.0
// Device: one software ConnectX of this process, as strait0 is seen here. All contexts that the program opens share it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "soft/kernel/kernel.hpp"
#include "soft/nic/engine.hpp"
#include "soft/uverbs/events.hpp"
#include "soft/uverbs/gids.hpp"
#include "soft/uverbs/progress.hpp"
#include "soft/uverbs/user_memory.hpp"
#include "soft/uverbs/xrc_domains.hpp"
#include "sys/fork.hpp"

namespace strait::soft::uverbs {

struct DeviceSettings {
  std::string root;                    // where the report goes; empty: nowhere
  unsigned index = 0;                  // strait0
  std::vector<GidEntry> gids;          // not empty
  nic::EngineConfig engine;            // faults, strictness, a capture, the carrier; addresses are the device's own
  kernel::KernelSettings kernel;       // its ways to accelerators' memory
  const UserMemory* memory = nullptr;  // null: of this process
  // For tests: another engine than Engine::open() makes, and nobody but the caller to drive it.
  std::function<Result<std::unique_ptr<nic::Engine>>(const nic::EngineConfig&)> open_engine;
  bool alone = false;
  bool background = false;   // option of that name
  std::int64_t spin_ns = 0;  // and of that
  bool trap_doorbells = false;
};

class Device {
 public:
  explicit Device(DeviceSettings settings);
  ~Device();

  [[nodiscard]] unsigned index() const { return settings_.index; }
  [[nodiscard]] const std::vector<GidEntry>& gids() const { return settings_.gids; }
  [[nodiscard]] const UserMemory& memory() const { return *memory_; }
  // Under the RDMA driver: whose an address or a descriptor is that is no host memory.
  [[nodiscard]] kernel::Kernel& kernel() { return kernel_; }
  [[nodiscard]] kernel::DmaDevice dma_device() const;
  // The largest path MTU, as a code.
  [[nodiscard]] std::uint8_t mtu() const { return mtu_code(gids().front().mtu_bytes); }
  // Opened with the first object that needs it: a program that only asks questions has no sockets and no thread.
  [[nodiscard]] Result<nic::Engine*> engine();
  // Of the engine, once there is one; null: alone.
  [[nodiscard]] Progress* progress() { return progress_.get(); }
  [[nodiscard]] XrcDomains& xrc() { return xrc_; }
  [[nodiscard]] EventRouter& events() { return events_; }
  // The program ends: sends what is still owed, and leaves the report.
  void finish();
  void finish_at_exit();
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }

 private:
  DeviceSettings settings_;
  OwnMemory own_memory_;
  const UserMemory* memory_;
  kernel::Kernel kernel_;
  sys::ForkMark mark_;
  std::mutex mutex_;
  EventRouter events_;
  XrcDomains xrc_;
  std::unique_ptr<nic::Engine> engine_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace strait::soft::uverbs
