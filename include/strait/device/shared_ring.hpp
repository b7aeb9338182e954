// SPDX-License-Identifier: Apache-2.0
// The send side of a queue that threads share: everything lies in the QueueState, behind atomics. Every WQE is one
// block.
#pragma once

#include <cstdint>

#include "strait/device/queue.hpp"
#include "strait/device/reap.hpp"
#include "strait/device/space.hpp"

namespace strait::device {

template <Sharing S>
class SharedRing {
 public:
  STRAIT_HD_INLINE void open(QueueState& state) { state_ = &state; }
  STRAIT_HD_INLINE void give_back() {}

  STRAIT_HD_INLINE std::uint32_t capacity() const { return static_cast<std::uint32_t>(send().slots.capacity); }
  STRAIT_HD_INLINE std::uint32_t qpn_shifted() const { return send().qpn_shifted; }
  STRAIT_HD_INLINE std::uint8_t* block(std::uint64_t at) const { return block_at(send(), at); }
  STRAIT_HD_INLINE void name_counter(std::uint64_t at, std::uint32_t number) {
    if (state_->counter_of != nullptr) state_->counter_of[at & (send().slots.capacity - 1)] = number;
  }

  STRAIT_HD_INLINE bool reserve(std::uint32_t blocks, std::uint64_t& first) {
    return device::reserve<S>(send().slots, blocks, first);
  }
  // One mark for all of them.
  STRAIT_HD_INLINE void commit(std::uint64_t first, std::uint32_t blocks, std::uint64_t) {
    device::commit<S>(send().slots, first, blocks);
  }
  STRAIT_HD_INLINE void ring() { ring_doorbell<S>(send()); }

  STRAIT_HD_INLINE bool done(std::uint64_t at) const { return completed_of<S>(send().slots) > at; }
  STRAIT_HD_INLINE std::uint64_t failure() const { return load_acquire<kScope<S>>(&state_->failure); }
  // Takes what has completed, for everybody; how many. 0 also if somebody else is at it: nobody waits.
  STRAIT_HD_INLINE unsigned reap() {
    std::uint64_t nobody = 0;
    if (!compare_exchange<kScope<S>>(&state_->send_reaper, nobody, 1)) return 0;
    const unsigned taken = take_completions(
        state_->sends, [&] { return load_relaxed<kScope<S>>(&state_->failure); },
        [&] { return completed_of<S>(send().slots); }, [&] { return rung_of<S>(send().slots); },
        [&](std::uint64_t from, std::uint64_t to, bool failed) {
          count_ended<S>(*state_, send().slots.capacity - 1, from, to, failed);
          raise_completed<S>(send().slots, to);  // last: who sees it done sees failure and counters too
        },
        [&](std::uint64_t packed) { store_release<kScope<S>>(&state_->failure, packed); });
    store_release<kScope<S>>(&state_->send_reaper, 0);
    return taken;
  }

 private:
  STRAIT_HD_INLINE SendRing& send() const { return state_->send; }

  QueueState* state_ = nullptr;
};

}  // namespace strait::device
