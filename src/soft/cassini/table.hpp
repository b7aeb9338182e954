// SPDX-License-Identifier: Apache-2.0
// Table: objects under the device's own numbers. A number that was retired is not handed out before it is returned:
// the hardware may still speak of it until the resource group is cleaned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace strait::soft::cassini {

template <class T>
class Table {
 public:
  // Numbers first .. first + count - 1.
  Table(std::uint32_t first, std::uint32_t count) : first_(first), count_(count) {}

  [[nodiscard]] T* find(std::uint32_t number) const {
    return number < first_ || number - first_ >= slots_.size() ? nullptr : slots_[number - first_].object.get();
  }
  // The lowest free number, which the object is told as its first argument; null: there is none.
  template <class... Arguments>
  T* make(Arguments&&... arguments) {
    for (std::uint32_t i = lowest_; i < count_; ++i) {
      if (i == slots_.size()) slots_.emplace_back();
      if (slots_[i].taken) continue;
      lowest_ = i + 1;
      slots_[i].taken = true;
      ++taken_;
      slots_[i].object = std::make_unique<T>(first_ + i, std::forward<Arguments>(arguments)...);
      return slots_[i].object.get();
    }
    return nullptr;
  }
  // A new object under a number that was retired.
  template <class... Arguments>
  T* revive(std::uint32_t number, Arguments&&... arguments) {
    slots_[number - first_].object = std::make_unique<T>(number, std::forward<Arguments>(arguments)...);
    return slots_[number - first_].object.get();
  }
  // The object goes, its number stays taken until it is returned.
  void retire(std::uint32_t number) { slots_[number - first_].object.reset(); }
  void give_back(std::uint32_t number) {
    slots_[number - first_].object.reset();
    if (std::exchange(slots_[number - first_].taken, false)) --taken_;
    lowest_ = std::min(lowest_, number - first_);
  }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  [[nodiscard]] std::uint32_t capacity() const { return count_; }

  template <class Call>
  void each(Call call) const {
    for (const Slot& slot : slots_) {
      if (slot.object) call(*slot.object);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<T> object;
    bool taken = false;
  };
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t taken_ = 0;
  std::uint32_t lowest_ = 0;  // every slot below is taken
  std::vector<Slot> slots_;   // up to the highest that was ever taken
};

}  // namespace strait::soft::cassini
