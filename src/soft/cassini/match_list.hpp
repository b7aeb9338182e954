// SPDX-License-Identifier: Apache-2.0
// MatchList: things in order, each with what it is matched by. Walking 16384 of them is the hot path of a busy target,
// so what a walk reads lies together (16 bytes a thing) and apart from the rest, and a thing that leaves is only
// marked: nothing behind it moves until half of the list is marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strait::soft::cassini {

// Where `care` has a bit, the two sides must agree.
struct MatchKey {
  std::uint64_t bits = 0;
  std::uint64_t care = ~std::uint64_t{0};
  std::uint32_t who = 0;
  std::uint32_t who_care = ~std::uint32_t{0};
};

template <class T>
class MatchList {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] std::size_t size() const { return live_; }
  [[nodiscard]] bool empty() const { return live_ == 0; }

  void append(const MatchKey& key, T thing) {
    if (first_ == bits_.size()) clear();
    bits_.push_back(key.bits);
    care_.push_back(key.care);
    rest_.push_back({key.who, key.who_care, true});
    things_.push_back(std::move(thing));
    ++live_;
  }

  // The first from position `from` on that agrees with the key; kNone. A position holds until the next remove or
  // append.
  [[nodiscard]] std::size_t find(const MatchKey& key, std::size_t from = 0) const {
    std::size_t i = from < first_ ? first_ : from;
    const std::size_t end = bits_.size();
    while (i < end) {
      // No early way out inside a block: the compiler makes vector code of it.
      while (i + kBlock <= end && !block_hits(i, key)) i += kBlock;
      const std::size_t stop = i + kBlock < end ? i + kBlock : end;
      for (; i < stop; ++i) {
        if (((bits_[i] ^ key.bits) & care_[i] & key.care) != 0) continue;
        const Rest& rest = rest_[i];
        if (rest.live && ((rest.who ^ key.who) & rest.who_care & key.who_care) == 0) return i;
      }
    }
    return kNone;
  }

  template <class Is>
  [[nodiscard]] std::size_t find_if(Is is) const {
    for (std::size_t i = first_; i < things_.size(); ++i) {
      if (rest_[i].live && is(things_[i])) return i;
    }
    return kNone;
  }

  [[nodiscard]] T& at(std::size_t position) { return things_[position]; }
  [[nodiscard]] const T& at(std::size_t position) const { return things_[position]; }

  void remove(std::size_t position) {
    rest_[position].live = false;
    things_[position] = T{};
    --live_;
    while (first_ < rest_.size() && !rest_[first_].live) ++first_;
    if (live_ == 0) {
      clear();
    } else if (bits_.size() > 64 && live_ < bits_.size() / 2) {
      pack();
    }
  }

  void clear() {
    bits_.clear();
    care_.clear();
    rest_.clear();
    things_.clear();
    first_ = live_ = 0;
  }

  template <class Call>
  void each(Call call) const {
    for (std::size_t i = first_; i < things_.size(); ++i) {
      if (rest_[i].live) call(things_[i]);
    }
  }

 private:
  static constexpr std::size_t kBlock = 16;
  struct Rest {
    std::uint32_t who = 0;
    std::uint32_t who_care = 0;
    bool live = false;
  };

  [[nodiscard]] bool block_hits(std::size_t at, const MatchKey& key) const {
    const std::uint64_t* bits = bits_.data() + at;
    const std::uint64_t* care = care_.data() + at;
    std::uint64_t hit = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::uint64_t differs = (bits[i] ^ key.bits) & care[i] & key.care;
      hit |= (differs - 1) & ~differs;  // the top bit, if nothing differs: every vector unit can do that
    }
    return hit >> 63 != 0;
  }

  void pack() {
    std::size_t to = 0;
    for (std::size_t i = first_; i < bits_.size(); ++i) {
      if (!rest_[i].live) continue;
      bits_[to] = bits_[i];
      care_[to] = care_[i];
      rest_[to] = rest_[i];
      if (to != i) things_[to] = std::move(things_[i]);
      ++to;
    }
    bits_.resize(to);
    care_.resize(to);
    rest_.resize(to);
    things_.resize(to);
    first_ = 0;
  }

  std::vector<std::uint64_t> bits_, care_;
  std::vector<Rest> rest_;
  std::vector<T> things_;
  std::size_t first_ = 0;  // everything before it is a mark
  std::size_t live_ = 0;
};

}  // namespace strait::soft::cassini
