// SPDX-License-Identifier: Apache-2.0
// Finding and making exports.
#include "node/export_book.hpp"

namespace strait::node {

Result<ExportBook::Shared> ExportBook::get(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                           const exports::Policy& policy) {
  const Key key{claim.whole.address, claim.whole.length_bytes, claim.identity};
  // Without an identity the address may have a new owner: only a fresh export is known to be of this memory.
  if (claim.identity != 0) {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      if (Shared shared = found->second.lock()) return shared;
    }
  }
  STRAIT_TRY(exports::Exported exported, exports::make_reachable(claim, claim.whole, nic, policy));
  auto shared = std::make_shared<exports::Exported>(std::move(exported));
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_) {  // now and then, so that a hundred thousand regions do not cost their square
    std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * entries_.size() + 64;
  }
  entries_[key] = shared;
  return shared;
}

ExportBook::Shared ExportBook::find(std::uint64_t base, std::uint64_t length_bytes, std::uint64_t identity) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({base, length_bytes, identity});
  return found == entries_.end() ? nullptr : found->second.lock();
}

}  // namespace strait::node
