// SPDX-License-Identifier: Apache-2.0
// A command queue with one owner, held in registers: taken out of the CommandRing and given back to it, which is stale
// meanwhile. Counts in slots of 32 bytes, so that two small commands share a block; a command starts at a multiple of
// its own size, and what is skipped is filled with NOOPs.
//
// Invariants: next is in [8, 2 * count). One block is always empty, so next == the device's place means that it has
// taken everything. room never exceeds what is free; it is looked up again only when it does not suffice.
#pragma once

#include <cstdint>

#include "strait/device/cxi/ring.hpp"

namespace strait::device::cxi {

// K: known at compile time, because what fills a gap depends on it.
template <RingKind K>
class OwnCommands {
 public:
  static constexpr bool kShared = false;

  STRAIT_HD_INLINE void open(CommandRing& ring) {
    ring_ = &ring;
    blocks_ = ring.blocks;
    write_pointer_ = ring.write_pointer;
    slots_ = ring.count * 2;
    reach_ = ring.reach;
    next_ = ring.next;
    shown_ = ring.shown;
    room_ = 0;  // the first claim looks
  }
  STRAIT_HD_INLINE void give_back() {
    ring_->next = next_;
    ring_->shown = shown_;
    room_ = 0;  // nothing is ready any more
  }

  // A command of one block in two steps, since the first is a single test nearly always: it is ready if there is room
  // and the last command ended where a block does.
  STRAIT_HD_INLINE bool block_ready() const { return (room_ >= 2) & ((next_ & 1) == 0); }
  STRAIT_HD_INLINE bool make_block_ready() { return make_ready(2); }
  STRAIT_HD_INLINE std::uint8_t* take_block() {
    // The hint keeps g++ from working out the address of every store anew.
    auto* const here = static_cast<std::uint8_t*>(__builtin_assume_aligned(at(next_), wire::cxi::kSlotBytes));
    room_ -= 2;
    step(2);
    return here;
  }

  // Where a command of `Slots` slots (1, 2, 4 or 8) goes, or null: no room, and nothing has changed.
  template <std::uint32_t Slots>
  STRAIT_HD_INLINE std::uint8_t* claim() {
    static_assert(Slots == 1 || Slots == 2 || Slots == 4 || Slots == 8);
    // A block needs no gap before it where only whole blocks are written.
    if constexpr (K == RingKind::transmit || Slots != 2) {
      const std::uint32_t gap = padding(next_, Slots);
      if (room_ < gap + Slots && !look(gap + Slots)) return nullptr;
      if (gap != 0) {
        room_ -= gap;
        if constexpr (K == RingKind::triggered) {
          fill_block(at(next_), K);  // one block at most: there are only 64 and 128 bytes
        } else {
          for (std::uint32_t i = 0; i < gap; ++i) fill_slot(at(next_ + i));
        }
        step(gap);
      }
    } else if (room_ < Slots && !look(Slots)) {
      return nullptr;
    }
    room_ -= Slots;
    std::uint8_t* const here = at(next_);
    step(Slots);
    return here;
  }

  // `blocks` whole blocks one behind the other, perhaps on both sides of the wrap: block_after() steps through them.
  STRAIT_HD_INLINE bool claim_blocks(std::uint32_t blocks, std::uint32_t& first) {
    static_assert(K == RingKind::transmit);
    if (!make_ready(blocks * 2)) return false;
    room_ -= blocks * 2;
    first = next_ / 2;
    next_ += blocks * 2;
    if (next_ >= slots_) next_ -= slots_ - wire::cxi::kFirstSlot;
    return true;
  }
  STRAIT_HD_INLINE bool has_room(std::uint32_t slots) { return room_ >= slots || look(slots); }
  STRAIT_HD_INLINE std::uint8_t* at_block(std::uint32_t block) const {
    return blocks_ + std::uint64_t{block} * wire::cxi::kBlockBytes;
  }
  STRAIT_HD_INLINE std::uint32_t block_after(std::uint32_t block, std::uint32_t n) const {
    const std::uint32_t to = block + n;
    return to < slots_ / 2 ? to : to - slots_ / 2 + wire::cxi::kFirstBlock;
  }

  // Shows the device everything that was claimed, which must be written by now. Nothing new: nothing happens.
  STRAIT_HD_INLINE void ring() {
    if (next_ == shown_) return;
    if (K == RingKind::transmit && (next_ & 1) != 0) {
      fill_slot(at(next_));  // room for it is left over: what is free and what is claimed are odd together
      if (room_ != 0) --room_;
      step(1);
    }
    shown_ = next_;
    show_write_pointer(write_pointer_, reach_, next_ / 2);
  }

  // The same behind a claim of whole blocks: there is something new, and it ends where a block does.
  STRAIT_HD_INLINE void ring_whole() {
    shown_ = next_;
    show_write_pointer(write_pointer_, reach_, next_ / 2);
  }

  // The device has taken everything that was shown to it.
  STRAIT_HD_INLINE bool drained() const { return status_of(blocks_).rd_ptr() == shown_ / 2; }
  STRAIT_HD_INLINE wire::cxi::QueueStatus status() const { return status_of(blocks_); }
  STRAIT_HD_INLINE std::uint32_t next() const { return next_; }

 private:
  STRAIT_HD_INLINE std::uint8_t* at(std::uint32_t slot) const {
    return blocks_ + std::uint64_t{slot} * wire::cxi::kSlotBytes;
  }
  // For whole blocks: room for them, and the other half of a block that was begun. False: nothing has changed.
  STRAIT_HD_INLINE bool make_ready(std::uint32_t slots) {
    const std::uint32_t gap = next_ & 1;
    if (!has_room(gap + slots)) return false;
    if (gap != 0) {
      fill_slot(at(next_));
      --room_;
      step(1);
    }
    return true;
  }
  // To the end of the ring at most.
  STRAIT_HD_INLINE void step(std::uint32_t slots) {
    next_ += slots;
    if (next_ == slots_) next_ = wire::cxi::kFirstSlot;
  }
  STRAIT_HD_INLINE bool look(std::uint32_t need) {
    if (blocks_ == nullptr) return false;  // it was never opened
    const std::uint32_t taken = status_of(blocks_).rd_ptr() * 2;
    // Slots are written again only after the device said that it has read them.
    order_cqe_reads();
    const std::uint32_t ahead =
        next_ >= taken ? next_ - taken : next_ + slots_ - wire::cxi::kFirstSlot - taken;  // claimed, not yet taken
    room_ = slots_ - wire::cxi::kFirstSlot - 2 - ahead;
    // A device that says something outside the ring has no say: nothing is free.
    if (taken < wire::cxi::kFirstSlot || taken >= slots_) room_ = 0;
    return room_ >= need;
  }

  CommandRing* ring_ = nullptr;
  std::uint8_t* blocks_ = nullptr;
  std::uint64_t* write_pointer_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t shown_ = 0;
  std::uint32_t room_ = 0;
  Reach reach_ = Reach::system;
};

}  // namespace strait::device::cxi
