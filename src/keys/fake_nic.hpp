// SPDX-License-Identifier: Apache-2.0
// What the cache's tests share: a NIC that hands out keys and knows which are registered.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "keys/cache.hpp"

namespace strait::keys::testing_nic {

inline Registration one_rail(std::uint32_t key, std::shared_ptr<void> keep = nullptr) {
  Registration made;
  made.rails[0] = {key, key | 0x80000000u};
  made.keep = std::move(keep);
  return made;
}

// Hands out keys and knows which are registered; deregistering twice, or something unknown, is a failure.
struct FakeNic {
  std::mutex mutex;
  std::map<std::uint32_t, Allocation> live;
  std::uint32_t next = 1;
  int registered = 0;
  std::size_t capacity = SIZE_MAX;
  std::function<void()> while_registering;

  Cache::Register registering() {
    return [this](const Allocation& allocation, std::uint32_t) -> Result<Registration> {
      if (while_registering) while_registering();
      const std::lock_guard lock(mutex);
      if (live.size() >= capacity) return fail(Code::limit, "no room for another key");
      ++registered;
      live[next] = allocation;
      const std::uint32_t key = next++;
      return one_rail(key);
    };
  }
  Cache::Deregister deregistering() {
    return [this](const Registration& made) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(live.erase(made.rails[0].lkey), 1u) << "key " << made.rails[0].lkey;
    };
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return live.size();
  }
};

inline Allocation device(std::uint64_t number, std::uint64_t identity) {
  return {number << 20, 1 << 20, identity, false};
}

}  // namespace strait::keys::testing_nic
