// SPDX-License-Identifier: Apache-2.0
// Several NICs as the communication manager sees them: one device whose addresses are shared out among the NICs.
//
// Every software ConnectX of a process has every address of the host, under the same index. A kernel's rdma_cm goes
// from an address to one NIC, so here each has one: of the IPv4 addresses the first belongs to the first NIC, the
// second to the second and so on round and round, and of the IPv6 addresses likewise.
#pragma once

#include <memory>

#include "soft/cm/device.hpp"

namespace strait::soft::cm {

// To which of `nics` each of the addresses belongs.
[[nodiscard]] std::vector<std::size_t> share_out(const std::vector<GidInfo>& gids, std::size_t nics);

class SeveralDevices final : public Device {
 public:
  // Not empty; all with the same addresses.
  explicit SeveralDevices(std::vector<std::shared_ptr<Device>> nics);

  [[nodiscard]] std::uint64_t node_guid() const override { return nics_.front()->node_guid(); }
  [[nodiscard]] const std::vector<GidInfo>& gids() const override { return gids_; }
  [[nodiscard]] Status start(Receiver receiver) override;
  void stop() override;
  void send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) override;
  [[nodiscard]] bool may_send_at_exit() override;

 private:
  std::vector<std::shared_ptr<Device>> nics_;
  std::vector<GidInfo> gids_;
  std::vector<std::size_t> owner_;  // of gids_
};

}  // namespace strait::soft::cm
