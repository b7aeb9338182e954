// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/several.hpp"

#include <algorithm>

namespace strait::soft::cm {

std::vector<std::size_t> share_out(const std::vector<GidInfo>& gids, std::size_t nics) {
  std::vector<std::size_t> out;
  std::size_t seen[2] = {0, 0};
  for (const GidInfo& gid : gids) out.push_back(seen[gid.address.is_v4() ? 0 : 1]++ % nics);
  return out;
}

SeveralDevices::SeveralDevices(std::vector<std::shared_ptr<Device>> nics)
    : nics_(std::move(nics)), gids_(nics_.front()->gids()), owner_(share_out(gids_, nics_.size())) {
  for (std::size_t i = 0; i < gids_.size(); ++i) gids_[i].node_guid = nics_[owner_[i]]->node_guid();
}

Status SeveralDevices::start(Receiver receiver) {
  for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
    // A message to an address comes to all NICs that have it: one of them may answer.
    const Status started = nics_[nic]->start([this, nic, receiver](const IpAddress& from, const IpAddress& to,
                                                                   std::span<const std::byte> mad) {
      const auto at = std::find_if(gids_.begin(), gids_.end(), [&](const GidInfo& gid) { return gid.address == to; });
      if (at != gids_.end() && owner_[static_cast<std::size_t>(at - gids_.begin())] == nic) receiver(from, to, mad);
    });
    if (started) continue;
    for (std::size_t before = 0; before < nic; ++before) nics_[before]->stop();
    return started;
  }
  return {};
}

void SeveralDevices::stop() {
  for (const auto& nic : nics_) nic->stop();
}

void SeveralDevices::send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) {
  if (sgid_index < owner_.size()) nics_[owner_[sgid_index]]->send(sgid_index, to, mad);
}

bool SeveralDevices::may_send_at_exit() {
  return std::ranges::all_of(nics_, [](const auto& nic) { return nic->may_send_at_exit(); });
}

}  // namespace strait::soft::cm
