// SPDX-License-Identifier: Apache-2.0
// The registers of a card that are kept up: how many triggered entries each pool has in use, and had at most. Who maps
// them has a page of its own, in which stores stay: clearing a maximum clears it for that client.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "strait/wire/cxi.hpp"

namespace strait::soft::cassini {

namespace wire = strait::wire::cxi;

class Registers {
 public:
  // `page` (4096 bytes, zero) is kept up from now on, until it is hidden.
  void show(std::uint64_t* page) {
    for (std::uint32_t pool = 0; pool < most_.size(); ++pool) {
      put(page, wire::kCsrTlesInUse, pool, in_use_[pool]);
      put(page, wire::kCsrMostTlesInUse, pool, most_[pool]);
    }
    pages_.push_back(page);
  }
  void hide(const std::uint64_t* page) { std::erase(pages_, page); }

  void triggers(std::uint32_t pool, std::uint32_t in_use) {
    in_use_[pool] = in_use;
    most_[pool] = std::max(most_[pool], in_use);
    for (std::uint64_t* page : pages_) {
      put(page, wire::kCsrTlesInUse, pool, in_use);
      if (in_use > get(page, wire::kCsrMostTlesInUse, pool)) put(page, wire::kCsrMostTlesInUse, pool, in_use);
    }
  }

 private:
  static std::uint64_t get(const std::uint64_t* page, std::uint32_t offset, std::uint32_t pool) {
    return __atomic_load_n(page + offset / 8 + pool, __ATOMIC_RELAXED);
  }
  static void put(std::uint64_t* page, std::uint32_t offset, std::uint32_t pool, std::uint64_t value) {
    __atomic_store_n(page + offset / 8 + pool, value, __ATOMIC_RELAXED);
  }
  std::array<std::uint32_t, wire::kTlePools> in_use_{}, most_{};
  std::vector<std::uint64_t*> pages_;
};

}  // namespace strait::soft::cassini
