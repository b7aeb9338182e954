// SPDX-License-Identifier: Apache-2.0
// The set of named counters: found by walking, since a Node has a few dozen and nobody looks them up twice.
#include "base/counters.hpp"

#include <tuple>

namespace strait {

Counter& Counters::get(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  for (auto& [key, counter] : entries_) {
    if (key == name) return counter;
  }
  // A deque never moves its elements: references handed out earlier stay good.
  return entries_.emplace_back(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple()).second;
}

std::vector<std::pair<std::string, std::uint64_t>> Counters::snapshot() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::pair<std::string, std::uint64_t>> values;
  values.reserve(entries_.size());
  for (const auto& [key, counter] : entries_) values.emplace_back(key, counter.load());
  return values;
}

}  // namespace strait
