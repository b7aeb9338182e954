// SPDX-License-Identifier: Apache-2.0
// The commonest operation of all, in as few instructions as its checks take: a word put to, got from or changed in
// memory of a peer that this process has mapped, on a lane with one owner, with nothing asked for beside.
//
// Flags and counters are most of what neighbours exchange, and how many of their cache misses a CPU has under way at a
// time depends on how few instructions lie between them. Every check of the general way is made here too; where one
// does not hold nothing has happened, and the general way starts from the beginning and has the sentence.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include "node/local.hpp"
#include "node/near.hpp"

namespace strait::node {

// Who only ever moves bytes by itself still has a NIC that others wait for. The mark counts: by two for each operation.
inline constexpr std::uint64_t kTurnsPerDrive = 64;
[[nodiscard]] constexpr bool is_turn_to_drive(std::uint64_t mark_afterwards) {
  return mark_afterwards % (2 * kTurnsPerDrive) < 2;
}

[[nodiscard]] inline bool target_allows(const strait_target& target, std::uint64_t offset, std::uint64_t length_bytes,
                                        std::uint32_t right) {
  return offset <= target.length_bytes && length_bytes <= target.length_bytes - offset &&
         (target.access & right) == right;
}

// In one store: the caller's next act is to move both words at once, and a CPU that has to gather them from two stores
// still under way waits longer than the operation took.
inline void hand_out_op(strait_op* out, strait_lane* lane, std::uint64_t id) {
  typedef std::uint64_t Both __attribute__((vector_size(16)));
  static_assert(sizeof(strait_op) == sizeof(Both) && offsetof(strait_op, id) == sizeof id);
  const Both both = {reinterpret_cast<std::uint64_t>(lane), id};
  std::memcpy(out, &both, sizeof both);
}

// Of the id of an operation by map: the rest is a number in Near::fetched.
inline constexpr std::uint64_t kFetchedWord = STRAIT_OP_BY_MAP >> 1;

enum class Word : std::uint8_t { put, get, fetch_add, compare_swap };

constexpr std::uint32_t right_for(Word way) {
  return way == Word::put ? STRAIT_REMOTE_WRITE : way == Word::get ? STRAIT_REMOTE_READ : STRAIT_REMOTE_ATOMIC;
}

// The lane's part of it. Null: the general way. What may be null is looked at one by one, with a load in between: put
// together, the compiler would make numbers of the answers first.
[[nodiscard, gnu::always_inline]] inline Near* near_for_words(strait_lane* lane, const strait_target* remote,
                                                              const strait_op_options* options, const strait_op* out) {
  if (lane == nullptr) return nullptr;
  Near* const near = lane->words.load(std::memory_order_acquire);
  if (near == nullptr || remote == nullptr || lane->core.broken() || out == nullptr || near->fork.in_child())
    return nullptr;
  if ((options != nullptr && options->flags != 0) || !right_thread(*lane)) return nullptr;
  return near;
}

// Is there room for a word at `offset` of so many bytes?
[[nodiscard, gnu::always_inline]] inline bool holds_word(std::uint64_t length_bytes, std::uint64_t offset) {
  std::uint64_t room = 0;
  return !__builtin_sub_overflow(length_bytes, offset, &room) && room >= sizeof(std::uint64_t);
}

// Inside only. Null: the general way. A target that says what was granted is checked with the window.
// kAsk: what was not found before is looked up.
template <Word kWay, bool kAsk>
[[nodiscard, gnu::always_inline]] inline const grant::Window* window_for(Near& near, const grant::Mark& mark,
                                                                         const strait_target& remote,
                                                                         std::uint64_t offset) {
  const grant::Window* found = near.found_before(mark, remote.region_id);
  if (found == nullptr) {
    if constexpr (!kAsk) return nullptr;
    found = look_up(near, remote);
    if (found == nullptr || found->memory == nullptr) return nullptr;
  }
  const grant::Window& window = *found;
  const grant::Subject& granted = window.subject;
  if (granted.epoch != remote.epoch || granted.address != remote.address || granted.rkey != remote.rkey ||
      granted.length_bytes != remote.length_bytes)
    return nullptr;
  if (!holds_word(granted.length_bytes, offset) || (granted.access & right_for(kWay)) == 0 ||
      (remote.access & right_for(kWay)) == 0 || !window.is_good())
    return nullptr;
  return &window;
}

// Of a region that is not null.
template <Word kWay, bool kAsk>
[[nodiscard, gnu::always_inline]] inline bool move_word(strait_lane* lane, Near& near, const strait_slice& local,
                                                        const strait_target& remote, std::uint64_t offset,
                                                        strait_op* out) {
  constexpr std::uint64_t kBytes = sizeof(std::uint64_t);
  const strait_region& region = *local.region;
  if (!holds_word(region.length_bytes, local.offset) ||
      region.state.load(std::memory_order_relaxed) != RegionState::live)
    return false;
  if constexpr (kWay == Word::get) {
    if (!region.writable) return false;
  }
  std::byte* here = region.view.load(std::memory_order_acquire);
  if (here == nullptr) return false;
  here += local.offset;
  // Read before the mark: fewer registers are needed at a time.
  std::uint64_t word = 0;
  if constexpr (kWay == Word::put) std::memcpy(&word, here, kBytes);
  grant::Mark& mark = *near.mark;
  const std::uint64_t before = mark.word.load(std::memory_order_relaxed);
  if (is_turn_to_drive(before + 2)) return false;
  const grant::Inside inside(mark, before, false);
  const grant::Window* const window = window_for<kWay, kAsk>(near, mark, remote, offset);
  if (window == nullptr) return false;
  if constexpr (kWay == Word::put)
    std::memcpy(window->memory + offset, &word, kBytes);
  else
    std::memcpy(here, window->memory + offset, kBytes);
  hand_out_op(out, lane, STRAIT_OP_COMPLETE | kBytes);
  return true;
}

template <Word kWay>
[[nodiscard, gnu::always_inline]] inline bool word_near(strait_lane* lane, const strait_slice* local,
                                                        const strait_target* remote, std::uint64_t offset,
                                                        const strait_op_options* options, strait_op* out) {
  Near* const near = near_for_words(lane, remote, options, out);
  if (near == nullptr || local == nullptr || local->length_bytes != sizeof(std::uint64_t) || local->region == nullptr)
    return false;
  return move_word<kWay, false>(lane, *near, *local, *remote, offset, out);
}

// The same on any lane, for what was not found before. Nothing is null.
template <Word kWay>
[[nodiscard, gnu::always_inline]] inline bool any_word_near(strait_lane* lane, const strait_slice* local,
                                                            const strait_target* remote, std::uint64_t offset,
                                                            const strait_op_options* options, strait_op* out) {
  Near* const near = lane->near.load(std::memory_order_acquire);
  if (near == nullptr || local->length_bytes != sizeof(std::uint64_t) || near->needs_fence) return false;
  if ((options != nullptr && options->flags != 0) || !near->host->has_maps()) return false;
  const Using use(*lane);
  return !lane->core.broken() && move_word<kWay, true>(lane, *near, *local, *remote, offset, out);
}

// fetch_add: `operand` is added; compare_swap: it is stored if `compare` was there.
template <Word kWay>
[[nodiscard, gnu::always_inline]] inline bool atomic_word_near(strait_lane* lane, const strait_target* remote,
                                                               std::uint64_t offset, std::uint64_t operand,
                                                               std::uint64_t compare, const strait_op_options* options,
                                                               strait_op* out) {
  constexpr std::uint64_t kBytes = sizeof(std::uint64_t);
  Near* const near = near_for_words(lane, remote, options, out);
  if (near == nullptr) return false;
  Near::Fetched& place = near->fetched[(near->fetches + 1) % std::size(near->fetched)];
  grant::Mark& mark = *near->mark;
  const std::uint64_t before = mark.word.load(std::memory_order_relaxed);
  if (place.number != 0 || is_turn_to_drive(before + 2)) return false;
  const grant::Inside inside(mark, before, false);
  const grant::Window* const window = window_for<kWay, false>(*near, mark, *remote, offset);
  if (window == nullptr) return false;
  std::byte* const there = window->memory + offset;
  const auto bits = reinterpret_cast<std::uintptr_t>(there) | (remote->address + offset);
  if (bits % kBytes != 0) return false;
  place.number = ++near->fetches;
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(there));
  if constexpr (kWay == Word::fetch_add) {
    place.value = word.fetch_add(operand);
  } else {
    place.value = compare;
    (void)word.compare_exchange_strong(place.value, operand);
  }
  hand_out_op(out, lane, STRAIT_OP_BY_MAP | kFetchedWord | place.number);
  return true;
}

// What such an operation fetched, once.
[[nodiscard]] inline bool take_fetched(Near& near, std::uint64_t id, std::uint64_t& value) {
  const std::uint64_t number = id & (kFetchedWord - 1);
  Near::Fetched& place = near.fetched[number % std::size(near.fetched)];
  if (number == 0 || place.number != number) return false;
  value = place.value;
  place.number = 0;
  return true;
}

}  // namespace strait::node
