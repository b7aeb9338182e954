// SPDX-License-Identifier: Apache-2.0
// Device: one software ConnectX of this process, as strait0 is seen here. All contexts that the program opens share it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "soft/nic/engine.hpp"
#include "soft/uverbs/events.hpp"
#include "soft/uverbs/gids.hpp"
#include "soft/uverbs/progress.hpp"
#include "soft/uverbs/user_memory.hpp"
#include "sys/fork_mark.hpp"

namespace strait::soft::uverbs {

struct DeviceSettings {
  std::string root;                    // where the report goes; empty: nowhere
  unsigned index = 0;                  // strait0
  std::vector<GidEntry> gids;          // not empty
  nic::EngineConfig engine;            // faults, strictness, a capture, the carrier; addresses are the device's own
  const UserMemory* memory = nullptr;  // null: of this process
  // For tests: another engine than Engine::open() makes, and nobody but the caller to drive it.
  std::function<Result<std::unique_ptr<nic::Engine>>(const nic::EngineConfig&)> open_engine;
  bool alone = false;
};

class Device {
 public:
  explicit Device(DeviceSettings settings);
  ~Device();

  [[nodiscard]] unsigned index() const { return settings_.index; }
  [[nodiscard]] const std::vector<GidEntry>& gids() const { return settings_.gids; }
  [[nodiscard]] const UserMemory& memory() const { return *memory_; }
  // The largest path MTU, as a code.
  [[nodiscard]] std::uint8_t mtu() const { return mtu_code(gids().front().mtu_bytes); }
  // Opened with the first object that needs it: a program that only asks questions has no sockets and no thread.
  [[nodiscard]] Result<nic::Engine*> engine();
  // Of the engine, once there is one; null: alone.
  [[nodiscard]] Progress* progress() { return progress_.get(); }
  // The program ends: sends what is still owed, and leaves the report.
  void finish();
  void finish_at_exit();
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }

 private:
  DeviceSettings settings_;
  OwnMemory own_memory_;
  const UserMemory* memory_;
  sys::ForkMark mark_;
  std::mutex mutex_;
  EventRouter events_;
  std::unique_ptr<nic::Engine> engine_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace strait::soft::uverbs
