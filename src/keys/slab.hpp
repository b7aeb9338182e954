// SPDX-License-Identifier: Apache-2.0
// The entries of the registration cache, and where they lie.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace strait::keys {

// What a hit reads and writes: one cache line.
struct alignas(64) Entry {
  std::uint64_t base = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t identity = 0;
  std::uint64_t last_use = 0;   // ticks of the cache, not time
  std::uint64_t queued_at = 0;  // last_use when it was queued for eviction; 0: not queued
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint32_t access = 0;
  std::uint32_t leases = 0;
  bool findable = false;  // in index and order; otherwise it ends with its last lease
};
static_assert(sizeof(Entry) == 64);

// Entries by number, at fixed addresses. Each chunk is twice as long as the one before: one region costs little, and at
// 10^5 entries the dozen pointers to the chunks still share two cache lines.
class Slab {
 public:
  [[nodiscard]] Entry& entry(std::uint32_t i) const { return entries_[chunk_of(i)][i - first_of(chunk_of(i))]; }
  // Beside the entries: only registering and deregistering needs it.
  [[nodiscard]] std::shared_ptr<void>& keep(std::uint32_t i) const {
    return keeps_[chunk_of(i)][i - first_of(chunk_of(i))];
  }

  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) {
      const std::uint32_t chunk = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back(std::make_unique<Entry[]>(kFirst << chunk));
      keeps_.push_back(std::make_unique<std::shared_ptr<void>[]>(kFirst << chunk));
      for (std::uint32_t i = kFirst << chunk; i-- > 0;) free_.push_back(first_of(chunk) + i);
    }
    const std::uint32_t i = free_.back();
    free_.pop_back();
    return i;
  }
  void give_back(std::uint32_t i) { free_.push_back(i); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return first_of(static_cast<std::uint32_t>(entries_.size())) * (sizeof(Entry) + sizeof(std::shared_ptr<void>)) +
           free_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::uint32_t kFirst = 64;  // entries of the first chunk
  static std::uint32_t chunk_of(std::uint32_t i) {
    return static_cast<std::uint32_t>(std::bit_width(i / kFirst + 1)) - 1;
  }
  static std::uint32_t first_of(std::uint32_t chunk) { return (kFirst << chunk) - kFirst; }
  std::vector<std::unique_ptr<Entry[]>> entries_;
  std::vector<std::unique_ptr<std::shared_ptr<void>[]>> keeps_;
  std::vector<std::uint32_t> free_;
};

}  // namespace strait::keys
