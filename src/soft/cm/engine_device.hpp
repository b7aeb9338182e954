// SPDX-License-Identifier: Apache-2.0
// The software ConnectX as the communication manager sees it: queue pair 1 of an engine.
#pragma once

#include <functional>
#include <mutex>

#include "soft/cm/device.hpp"
#include "soft/nic/engine.hpp"

namespace strait::soft::cm {

struct EngineDeviceSettings {
  std::uint64_t node_guid = 0;
  std::vector<GidInfo> gids;  // in the order of the engine's addresses
  // Opens the engine if it is not open; it stays as long as this device, and somebody drives it.
  std::function<Result<nic::Engine*>()> engine;
};

class EngineDevice final : public Device, nic::GsiSink {
 public:
  explicit EngineDevice(EngineDeviceSettings settings) : settings_(std::move(settings)) {}
  ~EngineDevice() override { stop(); }

  [[nodiscard]] std::uint64_t node_guid() const override { return settings_.node_guid; }
  [[nodiscard]] const std::vector<GidInfo>& gids() const override { return settings_.gids; }
  [[nodiscard]] Status start(Receiver receiver) override;
  void stop() override;
  void send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) override;
  [[nodiscard]] bool may_send_at_exit() override;

 private:
  void on_gsi(const nic::GsiMessage& message) override;
  EngineDeviceSettings settings_;
  nic::Engine* engine_ = nullptr;
  Receiver receiver_;
};

}  // namespace strait::soft::cm
