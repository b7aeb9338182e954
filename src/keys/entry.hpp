// SPDX-License-Identifier: Apache-2.0
// The entries of the registration cache, and where they lie.
//
// Readers take no lock: they may look at an entry that is just being given to another allocation. So every field is
// atomic, an entry's memory stays an entry until the cache goes, and who uses one announces it first and looks at
// `state` afterwards (see cache.cpp).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sys/aligned.hpp"

namespace strait::keys {

inline constexpr std::size_t kMaxRails = 4;
// Of a NIC that has not registered the memory: no NIC gives out this one.
inline constexpr std::uint32_t kNoKey = 0xffffffff;
inline constexpr auto kRelaxed = std::memory_order_relaxed;

enum class EntryState : std::uint32_t {
  free,    // nobody's
  dead,    // was found once; deregistered when its last lease has ended
  lonely,  // never could be found: registered for one lease
  live,    // can be found
};

// What a hit reads, and while one thread uses the cache, writes: one cache line.
struct alignas(64) Entry {
  std::atomic<std::uint64_t> base{0};
  std::atomic<std::uint64_t> length_bytes{0};
  std::atomic<std::uint64_t> identity{0};
  std::array<std::atomic<std::uint32_t>, kMaxRails> lkeys{};
  std::atomic<std::uint32_t> access{0};
  std::atomic<std::uint32_t> uses{0};  // leases of the first thread; those of others are in their Shard
  std::atomic<std::uint32_t> tick{0};  // when it was last used: by the cache's clock, not by time
  std::atomic<EntryState> state{EntryState::free};
  std::uint32_t number = 0;            // never changes
  std::atomic<std::uint32_t> away{0};  // of `uses`, those that ended on other threads: counted down from 0
};
static_assert(sizeof(Entry) == 64);

// Beside the entry: only registering, deregistering and evicting need it. Under the lock.
struct Cold {
  std::shared_ptr<void> keep;
  std::array<std::uint32_t, kMaxRails> rkeys{};
  std::uint32_t generation = 0;  // which allocation's this entry is, counted
  std::uint32_t fds = 0;
  std::uint32_t next = UINT32_MAX;  // in the list of those just hidden, or to deregister
};

// Each chunk is twice as long as the one before: one region costs little, and the numbers of 10^7 fit into 20 chunks.
inline constexpr std::uint32_t kFirstChunk = 64;
inline constexpr std::size_t kChunks = 20;
[[nodiscard]] inline std::uint32_t chunk_of(std::uint32_t number) {
  return static_cast<std::uint32_t>(std::bit_width(number / kFirstChunk + 1)) - 1;
}
[[nodiscard]] inline std::uint32_t first_of(std::uint32_t chunk) {
  return (kFirstChunk << chunk) - kFirstChunk;
}

class Slab {
 public:
  [[nodiscard]] Entry& entry(std::uint32_t i) const { return entries_[chunk_of(i)][i - first_of(chunk_of(i))]; }
  [[nodiscard]] Cold& cold(const Entry& e) const {
    return colds_[chunk_of(e.number)][e.number - first_of(chunk_of(e.number))];
  }

  // Null when there are kChunks chunks of them.
  [[nodiscard]] Entry* take() {
    if (free_.empty()) {
      const auto chunk = static_cast<std::uint32_t>(entries_.size());
      if (chunk == kChunks) return nullptr;
      const std::uint32_t count = kFirstChunk << chunk;
      entries_.push_back(sys::make_large_array<Entry>(count));
      colds_.push_back(std::make_unique<Cold[]>(count));
      free_.reserve(first_of(chunk) + count);
      for (std::uint32_t i = count; i-- > 0;) {
        entries_[chunk][i].number = first_of(chunk) + i;
        free_.push_back(first_of(chunk) + i);
      }
    }
    Entry& e = entry(free_.back());
    free_.pop_back();
    return &e;
  }
  void give_back(const Entry& e) { free_.push_back(e.number); }  // has room: reserved by take()
  [[nodiscard]] std::uint32_t capacity() const { return first_of(static_cast<std::uint32_t>(entries_.size())); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return capacity() * (sizeof(Entry) + sizeof(Cold)) + free_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::vector<sys::LargeArray<Entry>> entries_;
  std::vector<std::unique_ptr<Cold[]>> colds_;
  std::vector<std::uint32_t> free_;
};

}  // namespace strait::keys
