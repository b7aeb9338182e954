// SPDX-License-Identifier: Apache-2.0
// Extents: where the bytes of one access lie, piece by piece. Nearly always one piece, so four of them need no heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "soft/cassini/user_memory.hpp"

namespace strait::soft::cassini {

// Consecutive bytes of one memory. With `direct` the device loads and stores them itself.
struct Extent {
  UserMemory* memory = nullptr;  // null: plain bytes of the device, at `direct`
  std::uint64_t address = 0;
  std::byte* direct = nullptr;
  std::uint64_t bytes = 0;
};

class Extents {
 public:
  void push_back(const Extent& extent) {
    if (many_.empty() && size_ < few_.size()) {
      few_[size_++] = extent;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(extent);
    ++size_;
  }
  void clear() {
    many_.clear();
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const Extent* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] const Extent* end() const { return begin() + size_; }
  [[nodiscard]] const Extent& operator[](std::size_t i) const { return begin()[i]; }
  [[nodiscard]] const Extent& front() const { return *begin(); }

 private:
  std::array<Extent, 4> few_{};
  std::vector<Extent> many_;  // all of them, once there are more than four
  std::size_t size_ = 0;
};

}  // namespace strait::soft::cassini
