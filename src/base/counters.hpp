// SPDX-License-Identifier: Apache-2.0
// Counters: named 64-bit counts that any thread may add to and any thread may read, without order between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strait {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  // Only one thread ever adds: no locked instruction.
  void add_owner_thread(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t load() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Hands out counters by name; they live as long as the set. Looking one up takes a lock: keep the reference.
class Counters {
 public:
  Counter& get(std::string_view name);
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> snapshot() const;  // in order of first use

 private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, Counter>> entries_;
};

}  // namespace strait
