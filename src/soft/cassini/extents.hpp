// SPDX-License-Identifier: Apache-2.0
// Extents: where the bytes of one access lie, piece by piece. Nearly always one piece, so four of them need no heap;
// and those that are not there are not written, for every request has a list or two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "soft/cassini/user_memory.hpp"

namespace strait::soft::cassini {

// Consecutive bytes of one memory. With `direct` the device loads and stores them itself.
struct Extent {
  UserMemory* memory;  // null: plain bytes of the device, at `direct`
  std::uint64_t address;
  std::byte* direct;
  std::uint64_t bytes;
};

class Extents {
 public:
  Extents() {}  // not "= default": that would make Request{} fill few_ with zeros
  void push_back(const Extent& extent) {
    if (size_ >= few_.size()) return push_back_many(extent);
    few_[size_++] = extent;
  }
  void clear() {
    if (size_ > few_.size()) many_.clear();
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const Extent* begin() const { return size_ <= few_.size() ? few_.data() : many_.data(); }
  [[nodiscard]] const Extent* end() const { return begin() + size_; }
  [[nodiscard]] const Extent& operator[](std::size_t i) const { return begin()[i]; }
  [[nodiscard]] const Extent& front() const { return *begin(); }

 private:
  void push_back_many(const Extent& extent) {
    if (size_ == few_.size()) many_.assign(few_.begin(), few_.end());
    many_.push_back(extent);
    ++size_;
  }

  std::array<Extent, 4> few_;
  std::vector<Extent> many_;  // all of them, once there are more than four
  std::size_t size_ = 0;
};

}  // namespace strait::soft::cassini
