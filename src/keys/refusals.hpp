// SPDX-License-Identifier: Apache-2.0
// Refusals: what a NIC would not register, remembered for a while so that a loop does not ask it again and again. They
// expire: a module may be loaded, a limit raised. Under the cache's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace strait::keys {

class Refusals {
 public:
  static constexpr std::size_t kMost = 64;

  struct Key {
    std::uint64_t base = 0;
    std::uint64_t length_bytes = 0;
    std::uint64_t identity = 0;
    std::uint32_t access = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  [[nodiscard]] bool empty() const { return all_.empty(); }
  // Null when there is none, or it has expired.
  [[nodiscard]] const Error* find(const Key& key, std::int64_t now_ns) {
    std::erase_if(all_, [&](const Refusal& each) { return each.until_ns <= now_ns; });
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Refusal& each) { return each.key == key; });
    return found == all_.end() ? nullptr : &found->error;
  }
  void add(const Key& key, Error error, std::int64_t until_ns) {
    std::erase_if(all_, [&](const Refusal& each) { return each.key == key; });
    if (all_.size() == kMost) all_.erase(all_.begin());
    all_.push_back({key, std::move(error), until_ns});
  }
  // Of memory that is something else now. Frees nothing: the monitor may call it.
  void forget(std::uint64_t address, std::uint64_t end) {
    for (Refusal& each : all_) {
      if (each.key.base < end && each.key.base + each.key.length_bytes > address) each.until_ns = INT64_MIN;
    }
  }

 private:
  struct Refusal {
    Key key;
    Error error;
    std::int64_t until_ns = 0;
  };
  std::vector<Refusal> all_;
};

}  // namespace strait::keys
