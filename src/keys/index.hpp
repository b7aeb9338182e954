// SPDX-License-Identifier: Apache-2.0
// Index: the hash table under the cache. One cache line for the bucket, one for the entry it points to.
//
// A bucket is one cache line: a word of seven 8-bit tags and a mark, and seven entries' addresses with 16 more bits of
// the hash above each. All tags are compared at once, without a branch to mispredict, and a bucket is decided without
// looking at any entry but the right one (a wrong one about once in 10^7 lookups). What does not fit goes to the next
// bucket and leaves the mark. At most 3.25 in seven: of evenly spaced bases (a test has six spacings, 106 496 of each,
// as full as it gets) fewer than 1 in 100 live outside their own bucket, none further than five buckets on.
//
// find() takes no lock. It may miss what is there while the table grows (whoever then looks again under the cache's
// lock finds it), and it may return an entry that has just been given to somebody else (the caller checks). Tables that
// were outgrown stay until the end, together no larger than the last one: a reader may still be in one.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "keys/entry.hpp"
#include "sys/aligned.hpp"

namespace strait::keys {

class Index {
 public:
  Index() { grow(0); }

  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t base, std::uint64_t length_bytes, std::uint32_t access) {
    // Bases come evenly spaced, and one product would space them evenly again: then whole stretches of them share a
    // few buckets. So the halves of the product meet, and are multiplied once more. What does not wait for the base
    // is multiplied beside it. The upper bits of a product are the good ones: all that is used of it is from there.
    std::uint64_t hash = base * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash ^= length_bytes * 0x2d358dccaa6c78a5u ^ access;
    return hash * 0xd6e8feb86659fd93u;
  }

  // Calls same(entry) for every candidate until it says yes. Null when none does. Nearly always it is the first.
  template <class Same>
  [[nodiscard, gnu::always_inline]] Entry* find(std::uint64_t hash, Same same) const {
    const Table table(table_.load(std::memory_order_acquire));
    const Bucket& bucket = table.buckets()[table.home(hash)];
    const std::uint64_t equal = equal_tags(bucket.tags.load(std::memory_order_acquire), hash);
    if (equal != 0) [[likely]] {
      const std::uint64_t held = bucket.held[slot_of(equal)].load(std::memory_order_acquire);
      Entry* const e = entry_of(held);
      if (held >> 48 == more_of(hash) && same(*e)) [[likely]]
        return e;
    }
    return find_thoroughly(hash, same, nullptr);
  }
  // From the beginning. `lines` counts cache lines.
  template <class Same>
  [[nodiscard, gnu::noinline]] Entry* find_thoroughly(std::uint64_t hash, Same same, std::size_t* lines) const {
    const Table table(table_.load(std::memory_order_acquire));
    std::size_t at = table.home(hash);
    for (std::size_t turn = 0; turn < table.count(); ++turn, at = (at + 1) & (table.count() - 1)) {
      const Bucket& bucket = table.buckets()[at];
      if (lines != nullptr) ++*lines;
      const std::uint64_t tags = bucket.tags.load(std::memory_order_acquire);
      for (std::uint64_t equal = equal_tags(tags, hash); equal != 0; equal &= equal - 1) {
        const std::uint64_t held = bucket.held[slot_of(equal)].load(std::memory_order_acquire);
        if (held >> 48 != more_of(hash)) continue;
        if (lines != nullptr) ++*lines;
        Entry* const e = entry_of(held);
        if (same(*e)) return e;
      }
      if ((tags & kMark) == 0) return nullptr;
    }
    return nullptr;
  }

  // The rest under the cache's lock.
  void insert(std::uint64_t hash, Entry* e) {
    if ((live_ + 1) * 4 > current().count() * 13) grow(current().log_count() + 1);
    place(current(), hash, e);
    ++live_;
  }

  void remove(std::uint64_t hash, const Entry* e) {
    const Table table = current();
    std::size_t at = table.home(hash);
    for (std::size_t turn = 0; turn < table.count(); ++turn, at = (at + 1) & (table.count() - 1)) {
      Bucket& bucket = table.buckets()[at];
      const std::uint64_t tags = bucket.tags.load(std::memory_order_relaxed);
      for (std::uint64_t equal = equal_tags(tags, hash); equal != 0; equal &= equal - 1) {
        const std::size_t i = slot_of(equal);
        if (entry_of(bucket.held[i].load(std::memory_order_relaxed)) != e) continue;
        bucket.tags.store(tags & ~(std::uint64_t{0xff} << (8 * i)), std::memory_order_release);
        --live_;
        return;
      }
      if ((tags & kMark) == 0) return;
    }
  }

  [[nodiscard]] std::size_t size() const { return live_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return (2 * current().count() - 1) * sizeof(Bucket);  // with all that were outgrown
  }

 private:
  static constexpr std::size_t kSlots = 7;
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 56;  // something that belongs here lies further on
  static constexpr std::uint64_t kEach = 0x0101010101010101;
  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> tags{0};  // of slot i in byte i, 0: empty
    std::array<std::atomic<std::uint64_t>, kSlots> held{};
  };
  static_assert(sizeof(Bucket) == 64);
  // Where the buckets are and, in the bits that are zero in that, how many: one load tells a reader both.
  class Table {
   public:
    explicit Table(std::uintptr_t word) : word_(word) {}
    [[nodiscard]] std::uintptr_t word() const { return word_; }
    [[nodiscard]] std::uint32_t log_count() const { return static_cast<std::uint32_t>(word_ & 63); }
    [[nodiscard]] std::size_t count() const { return std::size_t{1} << log_count(); }
    [[nodiscard]] Bucket* buckets() const { return reinterpret_cast<Bucket*>(word_ & ~std::uintptr_t{63}); }  // NOLINT
    [[nodiscard]] std::size_t home(std::uint64_t hash) const { return hash >> 1 >> (63 - log_count()); }

   private:
    std::uintptr_t word_;
  };
  [[nodiscard]] Table current() const { return Table(table_.load(std::memory_order_relaxed)); }

  // The bucket's number comes from the top of the hash, these from the middle.
  static std::uint64_t tag_of(std::uint64_t hash) { return (hash >> 32 & 0xff) != 0 ? hash >> 32 & 0xff : 1; }
  static std::uint64_t more_of(std::uint64_t hash) { return hash >> 16 & 0xffff; }
  // The highest bit of every one of the seven bytes that holds the tag.
  static std::uint64_t equal_tags(std::uint64_t tags, std::uint64_t hash) {
    const std::uint64_t differ = tags ^ tag_of(hash) * kEach;
    constexpr std::uint64_t kLow = 0x7f * kEach;
    return ~(((differ & kLow) + kLow) | differ | kLow) & ~(std::uint64_t{0xff} << 56);
  }
  static std::size_t slot_of(std::uint64_t equal) { return static_cast<std::size_t>(std::countr_zero(equal)) / 8; }
  static Entry* entry_of(std::uint64_t held) {
    return reinterpret_cast<Entry*>(held & ((std::uint64_t{1} << 48) - 1));  // NOLINT: user addresses have 47 bits
  }

  static void place(Table table, std::uint64_t hash, Entry* e) {
    for (std::size_t at = table.home(hash);; at = (at + 1) & (table.count() - 1)) {
      Bucket& bucket = table.buckets()[at];
      const std::uint64_t tags = bucket.tags.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < kSlots; ++i) {
        if ((tags >> (8 * i) & 0xff) != 0) continue;
        // The address before its tag: who sees the tag sees the address, or one that was here before.
        bucket.held[i].store(more_of(hash) << 48 | reinterpret_cast<std::uint64_t>(e), std::memory_order_release);
        bucket.tags.store(tags | tag_of(hash) << (8 * i), std::memory_order_release);
        return;
      }
      bucket.tags.store(tags | kMark, std::memory_order_release);
    }
  }

  void grow(std::uint32_t log_count) {
    auto buckets = sys::make_large_array<Bucket>(std::size_t{1} << log_count);
    const Table larger(reinterpret_cast<std::uintptr_t>(buckets.get()) | log_count);
    if (!tables_.empty()) {
      const Table old = current();
      for (std::size_t at = 0; at < old.count(); ++at) {
        const Bucket& bucket = old.buckets()[at];
        for (std::size_t i = 0; i < kSlots; ++i) {
          if ((bucket.tags.load(std::memory_order_relaxed) >> (8 * i) & 0xff) == 0) continue;
          Entry* const e = entry_of(bucket.held[i].load(std::memory_order_relaxed));
          place(larger,
                hash_of(e->base.load(std::memory_order_relaxed), e->length_bytes.load(std::memory_order_relaxed),
                        e->access.load(std::memory_order_relaxed)),
                e);
        }
      }
    }
    tables_.push_back(std::move(buckets));
    table_.store(larger.word(), std::memory_order_release);
  }

  std::atomic<std::uintptr_t> table_{0};
  std::vector<sys::LargeArray<Bucket>> tables_;  // the last one is in use
  std::size_t live_ = 0;
};

}  // namespace strait::keys
