// SPDX-License-Identifier: Apache-2.0
// Index: the hash table under the cache. One cache line for the bucket, one for the entry it points to.
//
// Buckets of eight slots, one cache line each; a slot holds the 32-bit hash and the entry's number, so a bucket is
// decided without looking at any entry but the right one (a wrong one about once in 10^4 lookups). What does not fit
// goes to the next bucket. At most 3/8 full: fewer than 1 in 100 keys live outside their own bucket. Removing leaves a
// mark that the next rebuild clears.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strait::keys {

class Index {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  // Calls same(entry) for every candidate until it says yes. kNone when none does. `lines` counts cache lines.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint32_t hash, Same same, std::size_t* lines = nullptr) const {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      if (lines != nullptr) ++*lines;
      for (const Slot& slot : buckets_[at].slots) {
        if (slot.entry == kNone) return kNone;  // slots fill in order: nothing lies behind a free one
        if (slot.hash != hash || slot.entry == kRemoved) continue;
        if (lines != nullptr) ++*lines;
        if (same(slot.entry)) return slot.entry;
      }
    }
  }

  void insert(std::uint32_t hash, std::uint32_t entry) {
    if (used_ + 1 > buckets_.size() * 3) rebuild();
    place(hash, entry);
    ++live_;
  }

  void remove(std::uint32_t hash, std::uint32_t entry) {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      for (Slot& slot : buckets_[at].slots) {
        if (slot.entry == kNone) return;
        if (slot.entry != entry) continue;
        slot.entry = kRemoved;
        --live_;
        return;
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return live_; }
  [[nodiscard]] std::size_t memory_bytes() const { return buckets_.size() * sizeof(Bucket); }

  [[nodiscard]] static std::uint32_t hash_of(std::uint64_t base, std::uint32_t access) {
    // The low bits of a base are mostly zero and the high ones mostly equal: multiply and fold until both halves
    // matter.
    std::uint64_t x = base ^ (std::uint64_t{access} << 1);
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::uint32_t>(x >> 32);
  }

 private:
  static constexpr std::uint32_t kRemoved = 0xfffffffe;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t entry = kNone;
  };
  struct alignas(64) Bucket {
    std::array<Slot, 8> slots;
  };
  static_assert(sizeof(Bucket) == 64);

  void place(std::uint32_t hash, std::uint32_t entry) {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      for (Slot& slot : buckets_[at].slots) {
        if (slot.entry != kNone) continue;
        slot = {hash, entry};
        ++used_;
        return;
      }
    }
  }

  // Twice the room what lives needs, so that the next rebuild is as far away as this one was long.
  void rebuild() {
    std::size_t count = 1;
    while (count * 3 < (live_ + 1) * 2) count *= 2;
    std::vector<Bucket> old(count);
    old.swap(buckets_);
    mask_ = count - 1;
    used_ = 0;
    for (const Bucket& bucket : old) {
      for (const Slot& slot : bucket.slots) {
        if (slot.entry < kRemoved) place(slot.hash, slot.entry);
      }
    }
  }

  std::vector<Bucket> buckets_{1};
  std::size_t mask_ = 0;
  std::size_t live_ = 0;
  std::size_t used_ = 0;  // live and removed
};

}  // namespace strait::keys
