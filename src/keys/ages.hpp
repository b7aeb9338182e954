// SPDX-License-Identifier: Apache-2.0
// Ages: which entry has not been used for longest. Under the cache's lock; a hit never comes here.
//
// A heap of (tick, entry). A hit writes its tick beside the entry only, so what the heap says may be too old: whoever
// evicts brings the top up to date until the top is right. What has been forgotten is recognised by its generation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "keys/entry.hpp"

namespace strait::keys {

class Ages {
 public:
  struct Aged {
    std::uint64_t tick = 0;
    Entry* entry = nullptr;
    std::uint32_t generation = 0;
  };

  // Newer than all others, mostly: then nothing moves.
  void push(Aged aged) {
    heap_.push_back(aged);
    std::push_heap(heap_.begin(), heap_.end(), older_first);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Aged& oldest() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), older_first);
    heap_.pop_back();
  }
  // The oldest was used after all.
  void renew(std::uint64_t tick) {
    Aged aged = heap_.front();
    pop();
    aged.tick = tick;
    push(aged);
  }
  // Drops what `forgotten` says, once that may be half of it.
  template <class Forgotten>
  void tidy(std::size_t live, Forgotten forgotten) {
    if (heap_.size() < 2 * live + 64) return;
    std::erase_if(heap_, forgotten);
    std::make_heap(heap_.begin(), heap_.end(), older_first);
  }
  [[nodiscard]] std::size_t memory_bytes() const { return heap_.capacity() * sizeof(Aged); }

 private:
  static bool older_first(const Aged& a, const Aged& b) { return a.tick > b.tick; }
  std::vector<Aged> heap_;
};

}  // namespace strait::keys
