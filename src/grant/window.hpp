// SPDX-License-Identifier: Apache-2.0
// Window: a peer's region as this process reaches it by itself, and the table in which lanes find it without a lock.
//
// Invariants
// - A lane sets its mark odd before it looks into the table and even when it is done (Inside). Windows and tables that
//   went out of use are freed, and memory is unmapped, once every mark has been seen even or has moved.
// - A window says what the owner granted. A target is a value that anybody may have written, so an operation is checked
//   against the window; where they do not fit it goes through the NIC, and the owner answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "grant/format.hpp"
#include "sys/mapping.hpp"

namespace strait::grant {

// All that a map operation needs in its first cache line.
struct alignas(64) Window {
  Subject subject;
  std::byte* memory = nullptr;  // map: where the region's first byte is here; null otherwise
  const LedgerEntry* entry = nullptr;
  std::uint64_t stamp = 0;
  SignalPage* signals = nullptr;

  Way way = Way::none;
  bool dead = false;  // revoked; under the host's lock
  sys::Mapping memory_mapping, signals_mapping;

  [[nodiscard]] bool is_good() const { return entry->load(std::memory_order_acquire) == stamp; }
  [[nodiscard]] bool allows(std::uint64_t offset, std::uint64_t length_bytes, std::uint32_t right) const {
    return offset <= subject.length_bytes && length_bytes <= subject.length_bytes - offset &&
           (subject.access & right) == right;
  }
};
static_assert(offsetof(Window, stamp) + sizeof(Window::stamp) <= 64);

// A slot is the window's address with 16 bits of the hash above it: others' windows are not touched.
class WindowTable {
 public:
  explicit WindowTable(std::size_t slots)
      : mask_(slots - 1), slots_(std::make_unique<std::atomic<std::uint64_t>[]>(slots)) {}
  [[nodiscard]] Window* find(std::uint64_t region_id, std::uint64_t address, std::uint32_t rkey) const {
    const std::uint64_t hash = hash_of(region_id, rkey);
    for (std::size_t i = home(hash);; ++i) {
      const std::uint64_t slot = slots_[i & mask_].load(std::memory_order_acquire);
      if (slot == 0) return nullptr;
      if ((slot ^ hash << 48) >> 48 != 0) continue;
      auto* const window = reinterpret_cast<Window*>(slot & kAddress);
      const Subject& subject = window->subject;
      if (subject.region_id == region_id && subject.address == address && subject.rkey == rkey) return window;
    }
  }
  // The caller sees to it that half of the slots stay free.
  void put(Window* window) {
    const std::uint64_t hash = hash_of(window->subject.region_id, window->subject.rkey);
    std::size_t i = home(hash);
    while (slots_[i & mask_].load(std::memory_order_relaxed) != 0) ++i;
    slots_[i & mask_].store(reinterpret_cast<std::uint64_t>(window) | hash << 48, std::memory_order_release);
    ++used_;
  }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t slots() const { return mask_ + 1; }

 private:
  static constexpr std::uint64_t kAddress = (std::uint64_t{1} << 48) - 1;  // of user space
  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t region_id, std::uint32_t rkey) {
    return ((region_id ^ (std::uint64_t{rkey} << 32)) * 0x9e3779b97f4a7c15u) >> 20;
  }
  // The 16 lowest bits are in the slot.
  [[nodiscard]] std::size_t home(std::uint64_t hash) const { return static_cast<std::size_t>(hash >> 16) & mask_; }
  std::size_t mask_;
  std::size_t used_ = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[]> slots_;
};

// While it lives the lane is inside: nothing it found in the table goes away. One owner thread.
class Inside {
 public:
  [[gnu::always_inline]] Inside(Mark& mark, bool fence)
      : Inside(mark, mark.word.load(std::memory_order_relaxed), fence) {}
  // Who has read the mark already.
  [[gnu::always_inline]] Inside(Mark& mark, std::uint64_t before, bool fence) : word_(mark.word), value_(before + 1) {
    word_.store(value_, std::memory_order_relaxed);
    // Who revokes makes a barrier on all CPUs; where the system has none, it is made here.
    if (fence) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    else
      std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Inside() { word_.store(value_ + 1, std::memory_order_release); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<std::uint64_t>& word_;
  std::uint64_t value_;
};

}  // namespace strait::grant
