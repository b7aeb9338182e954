// SPDX-License-Identifier: Apache-2.0
// Who may write which ring slots, and what may be shown to the device: reserved -> ready -> rung -> completed.
//
// Invariants
//   completed <= rung <= ready <= reserved <= completed + capacity; every counter is 64 bits and only grows.
//   A slot is written only between its reservation and its commit, by the thread that reserved it.
//   Slots become ready in order, without gaps, whatever order their posters finish in.
//   A reservation that fails changes nothing.
//
// Where threads share a ring none of them waits for another. A poster that finished leaves a mark (the end of its
// entry) in the side array; whoever rings walks the marks from `ready` on. One thread at a time walks and rings; the
// others leave a request behind, which the walker answers before it goes: no doorbell is lost, and no slow poster can
// hold up a fast one.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/space.hpp"

namespace strait::device {

// Counters written by different parties lie on different cache lines.
struct Slots {
  std::uint64_t capacity;  // in slots, a power of two
  std::uint64_t* marks;    // `capacity` words, zeroed at the start; where threads share
  alignas(64) std::uint64_t reserved;
  alignas(64) std::uint64_t ready;
  std::uint64_t rung;
  std::uint64_t requests;  // to ring; 0 when nobody is ringing
  alignas(64) std::uint64_t completed;
};

STRAIT_HD inline void open_slots(Slots& s, std::uint64_t capacity, std::uint64_t* marks, std::uint64_t first) {
  s.capacity = capacity;
  s.marks = marks;
  s.requests = 0;
  s.reserved = s.ready = s.rung = s.completed = first;
}

inline constexpr std::uint32_t kReserveAttempts = 1u << 16;

// Reserves `count` slots and gives the first. False: no room, or (shared) so much competition that the caller had
// better try again; either way the counters are as before.
template <Sharing S>
STRAIT_HD_INLINE bool reserve(Slots& s, std::uint64_t count, std::uint64_t& first) {
  if constexpr (S == Sharing::one_thread) {
    first = s.reserved;
    if (first + count - s.completed > s.capacity) return false;
    s.reserved = first + count;
    return true;
  } else {
    std::uint64_t at = load_relaxed<kScope<S>>(&s.reserved);
    for (std::uint32_t i = 0; i < kReserveAttempts; ++i) {
      // Acquire: the device is done with a slot before its completion is counted, and we write only after reading that.
      // `completed` may have overtaken a stale `at`; the exchange then fails and brings a fresh one.
      const std::uint64_t completed = load_acquire<kScope<S>>(&s.completed);
      if (at >= completed && at + count - completed > s.capacity) return false;
      // Relaxed: whose slots these were before is ordered by `completed` alone.
      if (compare_exchange_relaxed<kScope<S>>(&s.reserved, at, at + count)) {
        first = at;
        return true;
      }
    }
    return false;
  }
}

// The entry [first, first + count) is written.
template <Sharing S>
STRAIT_HD_INLINE void commit(Slots& s, std::uint64_t first, std::uint64_t count) {
  if constexpr (S == Sharing::one_thread)
    s.ready = first + count;
  else
    store_release<kScope<S>>(&s.marks[first & (s.capacity - 1)], first + count);
}

// Shared: moves `ready` over everything that is marked. Only the thread that holds the requests may call it.
template <Sharing S>
STRAIT_HD inline std::uint64_t collect_marks(Slots& s) {
  std::uint64_t ready = load_relaxed<kScope<S>>(&s.ready);
  const std::uint64_t before = ready;
  bool more = true;
  // At most one lap: an entry beyond it cannot be reserved before one of these is rung and completed.
  for (std::uint64_t looked = 0; more && looked < s.capacity; looked += kMarkWindow) {
    // Several at once: where memory is far away the looks are under way together.
    std::uint64_t marks[kMarkWindow];
    const std::uint64_t base = ready;
    for (unsigned i = 0; i < kMarkWindow; ++i) marks[i] = load_mark<kScope<S>>(&s.marks[(base + i) & (s.capacity - 1)]);
    for (unsigned i = 0; i < kMarkWindow; ++i) {
      if (!more || ready != base + i) continue;  // inside an entry, or beyond the window
      more = marks[i] > ready;                   // a mark of an earlier lap ends at or before this slot
      if (more) ready = marks[i];
    }
  }
  if (ready != before) order_mark_reads<kScope<S>>();
  store_relaxed<kScope<S>>(&s.ready, ready);
  return ready;
}

// Shared: runs `show(ready)` for everything that is ready, now by us or presently by the thread that is at
// it already. Another round happens only if another thread asked while we were showing.
template <Sharing S, class Show>
STRAIT_HD_INLINE void show_ready(Slots& s, Show&& show) {
  if (fetch_add<kScope<S>>(&s.requests, 1) != 0) return;
  std::uint64_t seen = 1;
  do {
    const std::uint64_t ready = collect_marks<S>(s);
    if (ready != load_relaxed<kScope<S>>(&s.rung)) {
      // Before showing: the completion may be reaped before show() returns. Relaxed: whoever reaps it has read a CQE
      // that the device wrote after it was shown this, and show() begins with a fence.
      store_relaxed<kScope<S>>(&s.rung, ready);
      show(ready);
    }
    // Fails if somebody asked meanwhile, and then `seen` counts them in. Acquire: their marks are visible to us.
  } while (!compare_exchange<kScope<S>>(&s.requests, seen, 0));
}

template <Sharing S>
STRAIT_HD_INLINE std::uint64_t rung_of(const Slots& s) {
  if constexpr (S == Sharing::one_thread)
    return s.rung;
  else
    return load_relaxed<kScope<S>>(&s.rung);  // for those who have read a CQE: see show_ready()
}

template <Sharing S>
STRAIT_HD_INLINE std::uint64_t completed_of(const Slots& s) {
  if constexpr (S == Sharing::one_thread)
    return s.completed;
  else
    return load_acquire<kScope<S>>(&s.completed);
}

template <Sharing S>
STRAIT_HD_INLINE std::uint64_t free_slots(const Slots& s) {
  if constexpr (S == Sharing::one_thread) {
    return s.capacity - (s.reserved - s.completed);
  } else {
    const std::uint64_t completed =
        load_acquire<kScope<S>>(&s.completed);  // first: `reserved` read later is never below it
    const std::uint64_t used = load_relaxed<kScope<S>>(&s.reserved) - completed;
    return used > s.capacity ? 0 : s.capacity - used;
  }
}

// Raises `completed`; a lower value than the present one changes nothing.
template <Sharing S>
STRAIT_HD_INLINE void raise_completed(Slots& s, std::uint64_t end) {
  if constexpr (S == Sharing::one_thread) {
    if (end > s.completed) s.completed = end;
  } else {
    std::uint64_t at = load_relaxed<kScope<S>>(&s.completed);
    // Ends: every failure means that another thread raised it, and it never exceeds `rung`.
    while (at < end && !compare_exchange<kScope<S>>(&s.completed, at, end)) {
    }
  }
}

// The 64-bit index whose low 16 bits the device reported: the only one in [completed, completed + 65536). Whether it
// was ever rung is for the caller to check.
STRAIT_HD constexpr std::uint64_t widen(std::uint64_t completed, std::uint16_t counter) {
  return completed + static_cast<std::uint16_t>(counter - static_cast<std::uint16_t>(completed));
}

}  // namespace strait::device
