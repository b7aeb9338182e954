// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/engine_device.hpp"

namespace strait::soft::cm {

Status EngineDevice::start(Receiver receiver) {
  STRAIT_TRY(nic::Engine* const engine, settings_.engine());
  receiver_ = std::move(receiver);
  engine_ = engine;
  engine_->set_gsi_sink(this);
  return {};
}

void EngineDevice::stop() {
  if (engine_ != nullptr) engine_->set_gsi_sink(nullptr);
  engine_ = nullptr;
}

void EngineDevice::send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) {
  if (engine_ == nullptr) return;
  (void)engine_->send_gsi(sgid_index, to.gid, mad);  // what does not leave is repeated, as what is lost
}

bool EngineDevice::may_send_at_exit() {
  constexpr std::int64_t kFreeNs = 200'000'000;
  return engine_ != nullptr && engine_->free_within(kFreeNs);
}

void EngineDevice::on_gsi(const nic::GsiMessage& message) {
  receiver_({message.source}, {message.destination}, message.payload);
}

}  // namespace strait::soft::cm
