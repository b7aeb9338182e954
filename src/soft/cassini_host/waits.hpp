// SPDX-License-Identifier: Apache-2.0
// The wait objects of one client, as descriptors. One may be raised before anybody asked for its descriptor.
#pragma once

#include <cstdint>
#include <map>

#include "soft/cassini/client.hpp"
#include "sys/urgent.hpp"

namespace strait::soft::cassini {

class Waits final : public ClientHost {
 public:
  void raise(std::uint32_t wait) override {
    const auto known = flags_.find(wait);
    if (known == flags_.end()) {
      early_[wait] = true;
    } else {
      known->second.raise();
    }
  }
  // Each call another descriptor of the same flag.
  [[nodiscard]] Result<sys::Fd> open(std::uint32_t wait) {
    auto known = flags_.find(wait);
    if (known == flags_.end()) {
      if (flags_.size() >= kMost) return fail_errno(ENOSPC, "too many wait objects were opened");
      STRAIT_TRY(sys::Urgent flag, sys::Urgent::make());
      known = flags_.emplace(wait, std::move(flag)).first;
      if (early_.erase(wait) != 0) known->second.raise();
    }
    return known->second.copy();
  }
  // It was freed; its number may come again.
  void forget(std::uint32_t wait) {
    flags_.erase(wait);
    early_.erase(wait);
  }

 private:
  static constexpr std::size_t kMost = 1024;
  std::map<std::uint32_t, sys::Urgent> flags_;
  std::map<std::uint32_t, bool> early_;
};

}  // namespace strait::soft::cassini
