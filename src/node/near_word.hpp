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

// Who only ever moves bytes by itself still has a NIC that others wait for.
inline constexpr std::uint64_t kTurnsPerDrive = 64;

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

// The lane's part of it. Null: the general way.
[[nodiscard, gnu::always_inline]] inline Near* near_for_words(strait_lane& lane) {
  Near* const near = lane.near.load(std::memory_order_acquire);
  if (near == nullptr || lane.shared || !lane_usable(lane) || lane.core.broken()) return nullptr;
  return (near->turns + 1) % kTurnsPerDrive != 0 ? near : nullptr;  // the general way counts this turn, and drives
}

// Inside only. Null: the general way.
template <Word kWay>
[[nodiscard, gnu::always_inline]] inline std::byte* word_of(const Near& near, const strait_target& remote,
                                                            std::uint64_t offset) {
  constexpr std::uint64_t kBytes = sizeof(std::uint64_t);
  const grant::Window* const window = near.known(remote);
  if (window == nullptr || window->way != grant::Way::map || !window->is_good() ||
      window->subject.epoch != remote.epoch || !window->allows(offset, kBytes, right_for(kWay)))
    return nullptr;
  return window->memory + offset;
}

template <Word kWay>
[[nodiscard, gnu::always_inline]] inline bool word_near(strait_lane& lane, const strait_slice& local,
                                                        const strait_target& remote, std::uint64_t offset,
                                                        strait_op* out) {
  constexpr std::uint64_t kBytes = sizeof(std::uint64_t);
  Near* const near = near_for_words(lane);
  if (near == nullptr || local.length_bytes != kBytes) return false;
  const strait_region& region = *local.region;
  std::byte* const view = region.view.load(std::memory_order_acquire);
  if (view == nullptr || !slice_good(local) || !target_allows(remote, offset, kBytes, right_for(kWay))) return false;
  if constexpr (kWay == Word::get) {
    if (!region.writable) return false;
  }
  const grant::Inside inside(*near->mark, near->host->needs_fence());
  std::byte* const there = word_of<kWay>(*near, remote, offset);
  if (there == nullptr) return false;
  ++near->turns;
  if constexpr (kWay == Word::put)
    std::memcpy(there, view + local.offset, kBytes);
  else
    std::memcpy(view + local.offset, there, kBytes);
  hand_out_op(out, &lane, STRAIT_OP_COMPLETE | kBytes);
  return true;
}

// fetch_add: `operand` is added; compare_swap: it is stored if `compare` was there.
template <Word kWay>
[[nodiscard, gnu::always_inline]] inline bool atomic_word_near(strait_lane& lane, const strait_target& remote,
                                                               std::uint64_t offset, std::uint64_t operand,
                                                               std::uint64_t compare, strait_op* out) {
  constexpr std::uint64_t kBytes = sizeof(std::uint64_t);
  Near* const near = near_for_words(lane);
  if (near == nullptr || !target_allows(remote, offset, kBytes, right_for(kWay))) return false;
  Near::Fetched& place = near->fetched[(near->fetches + 1) % std::size(near->fetched)];
  if (place.number != 0) return false;
  const grant::Inside inside(*near->mark, near->host->needs_fence());
  std::byte* const there = word_of<kWay>(*near, remote, offset);
  const auto bits = reinterpret_cast<std::uintptr_t>(there) | (remote.address + offset);
  if (there == nullptr || bits % kBytes != 0) return false;
  ++near->turns;
  place.number = ++near->fetches;
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(there));
  if constexpr (kWay == Word::fetch_add) {
    place.value = word.fetch_add(operand);
  } else {
    place.value = compare;
    (void)word.compare_exchange_strong(place.value, operand);
  }
  hand_out_op(out, &lane, STRAIT_OP_BY_MAP | kFetchedWord | place.number);
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
