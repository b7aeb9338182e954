// SPDX-License-Identifier: Apache-2.0
// The send side of a queue with one owner, held in registers: what a post needs is there without a load, and few 64-bit
// operations, which a GPU makes of two each. Taken out of the QueueState and given back to it; the state is stale
// meanwhile. Every WQE is one block.
#pragma once

#include <cstdint>

#include "strait/device/queue.hpp"
#include "strait/device/reap.hpp"
#include "strait/device/space.hpp"

namespace strait::device {

class OwnRing {
 public:
  STRAIT_HD_INLINE void open(QueueState& state) {
    const SendRing& send = state.send;
    state_ = &state;
    blocks_ = send.blocks;
    record_ = send.record;
    doorbell_ = send.doorbell;
    reach_ = send.reach;
    mask_ = static_cast<std::uint32_t>(send.slots.capacity) - 1;
    qpn_shifted_ = send.qpn_shifted;
    counter_of_ = state.counter_of;
    counters_ = state.counters;
    next_ = send.slots.reserved;
    rung_ = send.slots.rung;
    room_ = static_cast<std::uint32_t>(send.slots.capacity - (send.slots.reserved - send.slots.completed));
    last_control_ = send.last_control;
    sends_.entries = state.sends.entries;
    sends_.log_entries = state.sends.log_entries;
    sends_.log_entry_bytes = state.sends.log_entry_bytes;
    sends_.consumed = state.sends.consumed;
    failure_ = state.failure;
  }
  STRAIT_HD_INLINE void give_back() {
    Slots& slots = state_->send.slots;
    slots.reserved = slots.ready = next_;
    slots.rung = rung_;
    slots.completed = completed();
    state_->send.last_control = last_control_;
    state_->sends.consumed = sends_.consumed;
    state_->failure = failure_;
  }

  STRAIT_HD_INLINE std::uint32_t capacity() const { return mask_ + 1; }
  STRAIT_HD_INLINE std::uint32_t qpn_shifted() const { return qpn_shifted_; }
  STRAIT_HD_INLINE std::uint8_t* block(std::uint64_t at) const {
    return blocks_ + std::uint64_t{static_cast<std::uint32_t>(at) & mask_} * wire::mlx5::kBlockBytes;
  }
  STRAIT_HD_INLINE void name_counter(std::uint64_t at, std::uint32_t number) {
    if (counters_ != 0) counter_of_[static_cast<std::uint32_t>(at) & mask_] = number;
  }

  STRAIT_HD_INLINE bool reserve(std::uint32_t blocks, std::uint64_t& first) {
    first = next_;
    if (blocks > room_) return false;
    room_ -= blocks;
    next_ += blocks;
    return true;
  }
  // What was reserved is written; `control` is the newest WQE's first word.
  STRAIT_HD_INLINE void commit(std::uint64_t, std::uint32_t, std::uint64_t control) { last_control_ = control; }
  STRAIT_HD_INLINE void ring() {
    if (rung_ == next_) return;
    rung_ = next_;
    order_stores_before_dma(reach_);
    store_record(record_, wire::be32{static_cast<std::uint32_t>(next_) & wire::mlx5::kIndexMask}.raw());
    order_before_doorbell(reach_);
    store_doorbell(doorbell_, last_control_);
    order_after_doorbell(reach_);
  }

  STRAIT_HD_INLINE bool done(std::uint64_t at) const { return completed() > at; }
  STRAIT_HD_INLINE std::uint64_t failure() const { return failure_; }
  // Takes what has completed; how many.
  STRAIT_HD_INLINE unsigned reap() {
    return take_completions(
        sends_, [&] { return failure_; }, [&] { return completed(); }, [&] { return rung_; },
        [&](std::uint64_t from, std::uint64_t to, bool failed) {
          count_ended<Sharing::one_thread>(*state_, mask_, from, to, failed);
          room_ += static_cast<std::uint32_t>(to - from);
        },
        [&](std::uint64_t packed) { failure_ = packed; });
  }

 private:
  STRAIT_HD_INLINE std::uint64_t completed() const { return next_ - (capacity() - room_); }

  QueueState* state_ = nullptr;
  std::uint8_t* blocks_ = nullptr;
  std::uint32_t* record_ = nullptr;
  std::uint64_t* doorbell_ = nullptr;
  Reach reach_ = Reach::system;
  std::uint32_t mask_ = 0;
  std::uint32_t qpn_shifted_ = 0;
  std::uint32_t room_ = 0;  // blocks that are free
  std::uint64_t next_ = 0;
  std::uint64_t rung_ = 0;
  std::uint64_t last_control_ = 0;
  std::uint64_t failure_ = 0;
  std::uint32_t* counter_of_ = nullptr;
  std::uint32_t counters_ = 0;
  CompletionRing sends_{};
};

}  // namespace strait::device
