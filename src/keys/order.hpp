// SPDX-License-Identifier: Apache-2.0
// Order: the findable entries by address, for invalidation. Under the cache's lock; a hit never comes here.
//
// A sorted list cut into blocks of at most kRoom, found by binary search among the blocks' first bases. Ranges may
// overlap: each block knows how far its entries reach. Removing allocates and frees nothing, so that the monitor may.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "keys/entry.hpp"

namespace strait::keys {

class Order {
 public:
  // A place found before; good until something is inserted or erased.
  struct Hint {
    std::size_t block = 0;
    std::size_t slot = 0;
    std::uint64_t version = 0;
  };

  // True: nothing touches [base, end), seen from the two neighbours alone, and `hint` is where it belongs. False: look.
  [[nodiscard]] bool alone(std::uint64_t base, std::uint64_t end, Hint& hint) const {
    if (blocks_.empty()) return true;
    const std::size_t b = block_for(base);
    const Block& block = *blocks_[b];
    const std::size_t i = first_above(block.bases.data(), block.count, base);
    if (i < block.count ? block.bases[i] < end : b + 1 < tops_.size() && tops_[b + 1].first < end) return false;
    if (i != 0 && base - block.bases[i - 1] < longest_) return false;
    if (i == 0 && b != 0 && base - blocks_[b - 1]->bases[blocks_[b - 1]->count - 1] < longest_) return false;
    hint = {b, i, version_};
    return true;
  }

  void insert(std::uint64_t base, std::uint64_t length_bytes, Entry* e) { insert(base, length_bytes, e, Hint{}); }
  void insert(std::uint64_t base, std::uint64_t length_bytes, Entry* e, const Hint& hint) {
    longest_ = std::max(longest_, length_bytes);
    const std::uint64_t end = base + length_bytes;
    if (blocks_.empty()) add_block(0);
    const bool hinted = hint.version == version_ && blocks_[hint.block]->count != kRoom;
    ++version_;
    std::size_t b = hinted ? hint.block : block_for(base);
    if (blocks_[b]->count == kRoom) {
      add_block(b + 1);
      // What comes in rising order fills its blocks; anything else halves them.
      if (b + 2 == blocks_.size() && base >= blocks_[b]->bases[kRoom - 1]) {
        ++b;
      } else {
        halve(*blocks_[b], *blocks_[b + 1]);
        summarise(b);
        summarise(b + 1);
        if (base >= tops_[b + 1].first) ++b;
      }
    }
    Block& block = *blocks_[b];
    const std::size_t i = hinted ? hint.slot : first_above(block.bases.data(), block.count, base);
    std::copy_backward(block.bases.data() + i, block.bases.data() + block.count, block.bases.data() + block.count + 1);
    std::copy_backward(block.entries.data() + i, block.entries.data() + block.count,
                       block.entries.data() + block.count + 1);
    block.bases[i] = base;
    block.entries[i] = e;
    ++block.count;
    tops_[b].first = block.bases[0];
    tops_[b].end = std::max(tops_[b].end, end);
  }

  void erase(std::uint64_t base, const Entry* e) {
    ++version_;
    for (std::size_t b = first_block(base); b < blocks_.size() && tops_[b].first <= base; ++b) {
      Block& block = *blocks_[b];
      for (std::size_t i = 0; i < block.count; ++i) {
        if (block.entries[i] != e) continue;
        std::copy(block.bases.data() + i + 1, block.bases.data() + block.count, block.bases.data() + i);
        std::copy(block.entries.data() + i + 1, block.entries.data() + block.count, block.entries.data() + i);
        if (--block.count == 0) {
          spare_.push_back(std::move(blocks_[b]));  // has room: add_block reserves it
          blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
          tops_.erase(tops_.begin() + static_cast<std::ptrdiff_t>(b));
        } else if (i == 0) {
          tops_[b].first = block.bases[0];
        }
        return;
      }
    }
  }

  // The first entry at or after the place (`b`, `i`) that touches [address, end); null and the place behind all when
  // there is none. Start with start(address); after the entry was erased, ask again from the start.
  struct Place {
    std::size_t block = 0;
    std::size_t slot = 0;
  };
  [[nodiscard]] Place start(std::uint64_t address) const {
    const std::uint64_t from = address > longest_ ? address - longest_ : 0;  // nothing before reaches `address`
    const std::size_t b = first_block(from);
    if (b == blocks_.size()) return {b, 0};
    const Block& block = *blocks_[b];
    return {b, from == 0 ? 0 : first_above(block.bases.data(), block.count, from - 1)};
  }
  [[nodiscard]] Entry* next(Place& place, std::uint64_t address, std::uint64_t end) const {
    for (; place.block < blocks_.size() && tops_[place.block].first < end; ++place.block, place.slot = 0) {
      if (tops_[place.block].end <= address) continue;
      const Block& block = *blocks_[place.block];
      while (place.slot < block.count && block.bases[place.slot] < end) {
        Entry* const e = block.entries[place.slot++];
        const std::uint64_t base = block.bases[place.slot - 1];
        if (base >= address || base + e->length_bytes.load(std::memory_order_relaxed) > address) return e;
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::size_t memory_bytes() const {
    return (blocks_.size() + spare_.size()) * sizeof(Block) + tops_.capacity() * sizeof(Top) +
           (blocks_.capacity() + spare_.capacity()) * sizeof(void*);
  }

 private:
  static constexpr std::size_t kRoom = 62;
  struct Block {
    std::size_t count = 0;
    std::array<std::uint64_t, kRoom> bases{};
    std::array<Entry*, kRoom> entries{};
  };
  struct Top {
    std::uint64_t first = 0;
    std::uint64_t end = 0;  // nothing in the block reaches further; it may be less by now
  };

  static std::uint64_t base_of(const Top& top) { return top.first; }
  static std::uint64_t base_of(std::uint64_t base) { return base; }
  // Binary search for the first that is larger, without a branch that depends on what is found: random addresses would
  // mispredict every second one.
  template <class Item>
  [[nodiscard]] static std::size_t first_above(const Item* items, std::size_t count, std::uint64_t value) {
    const Item* at = items;
    while (count > 1) {
      const std::size_t half = count / 2;
      at += half & (0 - static_cast<std::size_t>(base_of(at[half - 1]) <= value));
      count -= half;
    }
    return static_cast<std::size_t>(at - items) + (count != 0 ? static_cast<std::size_t>(base_of(*at) <= value) : 0);
  }

  // The last block that begins at or before `base`, or the first.
  [[nodiscard]] std::size_t block_for(std::uint64_t base) const {
    const std::size_t after = first_above(tops_.data(), tops_.size(), base);
    return after == 0 ? 0 : after - 1;
  }
  // The first block that can hold `base`: equal bases may span several.
  [[nodiscard]] std::size_t first_block(std::uint64_t base) const {
    const std::size_t at = base == 0 ? 0 : first_above(tops_.data(), tops_.size(), base - 1);
    return at == 0 ? 0 : at - 1;
  }

  void add_block(std::size_t at) {
    std::unique_ptr<Block> block;
    if (spare_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    // Appending: the block begins where nothing has yet, so that the search leaves it alone until it has.
    const Top top{at == 0 ? 0 : UINT64_MAX, 0};
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at), std::move(block));
    tops_.insert(tops_.begin() + static_cast<std::ptrdiff_t>(at), top);
    if (spare_.capacity() < blocks_.size() + spare_.size()) spare_.reserve(2 * (blocks_.size() + spare_.size()));
  }

  static void halve(Block& from, Block& to) {
    constexpr std::size_t kHalf = kRoom / 2;
    std::copy(from.bases.begin() + kHalf, from.bases.end(), to.bases.begin());
    std::copy(from.entries.begin() + kHalf, from.entries.end(), to.entries.begin());
    to.count = kRoom - kHalf;
    from.count = kHalf;
  }

  void summarise(std::size_t b) {
    const Block& block = *blocks_[b];
    tops_[b] = {block.bases[0], 0};
    for (std::size_t i = 0; i < block.count; ++i) {
      tops_[b].end =
          std::max(tops_[b].end, block.bases[i] + block.entries[i]->length_bytes.load(std::memory_order_relaxed));
    }
  }

  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Top> tops_;
  std::vector<std::unique_ptr<Block>> spare_;
  std::uint64_t longest_ = 0;  // of all there ever were
  std::uint64_t version_ = 1;
};

}  // namespace strait::keys
