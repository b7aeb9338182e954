// SPDX-License-Identifier: Apache-2.0
// Watches: who wants to hear of an allocation's end.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "strait/plugin.h"

namespace strait::soft::accel {

// Threads: any. Callbacks run under the lock, so that none is under way once remove() has returned; they may not call
// back in here.
class Watches {
 public:
  [[nodiscard]] std::uint64_t add(std::uint64_t base, strait_freed_callback call, void* context) {
    const std::lock_guard lock(mutex_);
    all_.emplace(++last_, Watch{base, call, context});
    return last_;
  }
  void remove(std::uint64_t watch) {
    const std::lock_guard lock(mutex_);
    all_.erase(watch);
  }
  // Each is told once.
  void freed(std::uint64_t base) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const auto& each) {
      if (each.second.base != base) return false;
      each.second.call(each.second.context, base);
      return true;
    });
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  struct Watch {
    std::uint64_t base;
    strait_freed_callback call;
    void* context;
  };
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watch> all_;
};

}  // namespace strait::soft::accel
