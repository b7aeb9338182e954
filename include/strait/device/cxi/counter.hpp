// SPDX-License-Identifier: Apache-2.0
// A counting event of a CXI device: the word it is written back to, its doorbell page, and arithmetic modulo 2^48.
//
// The device stores the whole word with its mark set, and not whenever a success is counted: only for a GET, when an
// armed TRIG_EVENT fires, on a reset, and when the first failure is counted. Whoever polls the word without having
// asked for one of these may wait for ever; lane.hpp asks.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/queue.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::device::cxi {

inline constexpr std::uint32_t kMemoryDoorbell = 1;  // Counter.flags: the doorbell page is memory, of a software device

struct Counter {
  HandleHead head;
  std::uint64_t* word;      // 8-byte aligned
  std::uint64_t* doorbell;  // first word of its page; null: there is none
  std::uint32_t number;     // as commands name it
  std::uint32_t flags;
};

// Successes are counted modulo 2^48: `at` has reached `goal` if it is less than half the circle ahead.
STRAIT_HD_INLINE constexpr bool reached(std::uint64_t at, std::uint64_t goal) {
  return ((at - goal) & wire::cxi::kCtSuccessMask) < std::uint64_t{1} << 47;
}

STRAIT_HD_INLINE wire::cxi::CtWriteback look_at(const Counter& c) {
  return {peek(c.word)};
}
// Takes the mark away, so that the next store of the device can be told from this one. Only the mark's byte is written:
// the device may be writing the word.
STRAIT_HD_INLINE void forget_written(const Counter& c) {
  store_mark_byte(reinterpret_cast<std::uint8_t*>(c.word) + 7, 0);
}

// Does the poster reach host memory across a bus? Then a look at a counter's word takes as long as a command and more,
// and an addition to memory that a CPU adds to as well may be lost.
#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
inline constexpr bool kHostIsFar = true;
#else
inline constexpr bool kHostIsFar = false;
#endif

namespace detail {
// Every store to a device's page counts, also two equal ones. In memory they would be one: there it is an addition.
STRAIT_HD_INLINE void add_by_doorbell(const Counter& c, std::uint32_t offset, std::uint64_t count) {
  if ((c.flags & kMemoryDoorbell) != 0) {
    const std::uint32_t mine = offset + (kHostIsFar ? wire::cxi::kCtSumsOffset : 0);
    (void)fetch_add<Scope::system>(c.doorbell + mine / 8, count);
  } else {
    order_before_doorbell(Reach::system);
    store_doorbell(c.doorbell + offset / 8, count);
    order_after_doorbell(Reach::system);
  }
}
STRAIT_HD_INLINE void reset_by_doorbell(const Counter& c, std::uint32_t offset) {
  order_before_doorbell(Reach::system);
  store_doorbell(c.doorbell + offset / 8, 0);  // any value will do, except all ones in memory
  order_after_doorbell(Reach::system);
}
}  // namespace detail

// Triggered operations that wait for the new count start. `count`: 48 bits, 7 bits.
STRAIT_HD_INLINE void inc_success(const Counter& c, std::uint64_t count) {
  detail::add_by_doorbell(c, wire::cxi::kCtAddSuccessOffset, count & wire::cxi::kCtSuccessMask);
}
STRAIT_HD_INLINE void inc_failure(const Counter& c, std::uint64_t count) {
  detail::add_by_doorbell(c, wire::cxi::kCtAddFailureOffset, count & wire::cxi::kCtFailureMask);
}
// To 0, and written back.
STRAIT_HD_INLINE void reset_success(const Counter& c) {
  detail::reset_by_doorbell(c, wire::cxi::kCtResetSuccessOffset);
}
STRAIT_HD_INLINE void reset_failure(const Counter& c) {
  detail::reset_by_doorbell(c, wire::cxi::kCtResetFailureOffset);
}

}  // namespace strait::device::cxi
