// SPDX-License-Identifier: Apache-2.0
// ExportBook: one export of an allocation, shared by every registration made from it while any of them lives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "export/reach.hpp"

namespace strait::node {

class ExportBook {
 public:
  using Shared = std::shared_ptr<exports::Exported>;

  // The export of the whole allocation: the one that lives already, or a new one.
  [[nodiscard]] Result<Shared> get(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                   const exports::Policy& policy);
  // The one that lives already, or null: for the registration cache, which is only told the allocation.
  [[nodiscard]] Shared find(std::uint64_t base, std::uint64_t length_bytes, std::uint64_t identity);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<exports::Exported>> entries_;
  std::size_t sweep_at_ = 64;
};

}  // namespace strait::node
