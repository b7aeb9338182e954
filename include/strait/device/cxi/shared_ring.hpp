// SPDX-License-Identifier: Apache-2.0
// A command queue that threads share: everything lies in the CommandRing, behind atomics. Counts in whole blocks, so
// that nobody's block is half another's.
//
// Invariants
//   taken <= rung <= ready <= reserved; reserved - taken <= usable blocks - 1; cursors only grow.
//   A claim covers the gap before its commands, the wrap and all blocks behind it; it is written by the thread that
//   made it, between claim and commit. A claim that fails changes nothing.
//   Claims become ready in order, whatever order their posters finish in.
//
// As in slots.hpp nobody waits for another: a poster that has written leaves a mark (the end of its claim), whoever
// rings walks the marks, and one who finds somebody ringing leaves a request behind.
#pragma once

#include <cstdint>

#include "strait/device/cxi/ring.hpp"
#include "strait/device/slots.hpp"

namespace strait::device::cxi {

template <Sharing S, RingKind K>
class SharedCommands {
 public:
  static constexpr bool kShared = true;

  struct Claim {
    Cursor from;  // the first block, of the gap if there is one
    Cursor end;
    std::uint32_t block;  // the first behind the gap
  };

  STRAIT_HD_INLINE void open(CommandRing& ring) { ring_ = &ring; }
  STRAIT_HD_INLINE void give_back() {}

  // `blocks` in one piece in the order of the ring, aligned to `align` (1, 2 or 4 blocks). They may lie on both sides
  // of the wrap: block_after() steps from one to the next. False: no room, or so much competition that the caller had
  // better try again; either way nothing has changed.
  STRAIT_HD_INLINE bool claim(std::uint32_t blocks, std::uint32_t align, Claim& out) {
    const std::uint32_t count = ring_->count;
    const std::uint32_t usable = count - wire::cxi::kFirstBlock - 1;
    Cursor at = load_relaxed<kScope<S>>(&ring_->reserved);
    for (std::uint32_t i = 0; i < kReserveAttempts; ++i) {
      const std::uint32_t need = padding(block_of(at), align) + blocks;
      // Acquire: the device is done with a block before `taken` passes it.
      Cursor taken = load_acquire<kScope<S>>(&ring_->taken);
      if (need > usable) return false;
      // A stale `at` may lie behind `taken`; the exchange then fails and brings a fresh one.
      if (at >= taken && distance_or_more(taken, at, count) + need > usable) {
        taken = look(at);
        if (at >= taken && distance_or_more(taken, at, count) + need > usable) {
          const Cursor now = load_relaxed<kScope<S>>(&ring_->reserved);
          if (now == at) return false;
          at = now;  // what was read of the device belongs to a later moment than `at`
          continue;
        }
      }
      const Cursor end = advance(at, need, count);
      if (compare_exchange_relaxed<kScope<S>>(&ring_->reserved, at, end)) {
        out.from = at;
        out.end = end;
        out.block = fill_gap(block_of(at), need - blocks);
        return true;
      }
    }
    return false;
  }
  STRAIT_HD_INLINE std::uint8_t* at_block(std::uint32_t block) const { return at(block); }
  STRAIT_HD_INLINE std::uint8_t* at(std::uint32_t block) const {
    return ring_->blocks + std::uint64_t{block} * wire::cxi::kBlockBytes;
  }
  STRAIT_HD_INLINE std::uint32_t block_after(std::uint32_t block, std::uint32_t n) const {
    const std::uint32_t to = block + n;
    return to < ring_->count ? to : to - ring_->count + wire::cxi::kFirstBlock;
  }
  // All of the claim is written.
  STRAIT_HD_INLINE void commit(const Claim& claim) {
    store_release<kScope<S>>(&ring_->marks[block_of(claim.from)], claim.end);
  }

  // Shows the device everything that is committed without a gap, now by us or presently by the thread that is at it.
  STRAIT_HD_INLINE void ring() {
    if (fetch_add<kScope<S>>(&ring_->requests, 1) != 0) return;
    std::uint64_t seen = 1;
    do {
      const Cursor ready = collect();
      if (ready != load_relaxed<kScope<S>>(&ring_->rung)) {
        store_relaxed<kScope<S>>(&ring_->rung, ready);
        show_write_pointer(ring_->write_pointer, ring_->reach, block_of(ready));
      }
      // Fails if somebody asked meanwhile, and then `seen` counts them in. Acquire: their marks are visible to us.
    } while (!compare_exchange<kScope<S>>(&ring_->requests, seen, 0));
  }

  // The device has taken everything that is claimed now. A thread between claim and ring holds it up.
  STRAIT_HD_INLINE bool drained() {
    const Cursor at = load_relaxed<kScope<S>>(&ring_->reserved);
    return look(at) == at;
  }
  STRAIT_HD_INLINE wire::cxi::QueueStatus status() const { return status_of(ring_->blocks); }

 private:
  STRAIT_HD_INLINE std::uint32_t fill_gap(std::uint32_t block, std::uint32_t gap) {
    for (std::uint32_t i = 0; i < gap; ++i, block = block_after(block, 1)) fill_block(at(block), K);
    return block;
  }

  // How far the device says it is; `at` was read before. Never beyond the truth: a place of a later lap than `at` is
  // taken for the same block of a lap before. And what is read of the device may be old, though not older than a
  // `taken` that was read before it: if that made no room for `at`, a block of a lap before could be mistaken for one
  // of this.
  STRAIT_HD_INLINE Cursor look(Cursor at) {
    Cursor taken = load_acquire<kScope<S>>(&ring_->taken);
    const std::uint32_t count = ring_->count;
    if (at >= taken && distance_or_more(taken, at, count) >= count - wire::cxi::kFirstBlock) return taken;
    const std::uint32_t block = status_of(ring_->blocks).rd_ptr();
    if (block < wire::cxi::kFirstBlock || block >= count) return taken;
    order_cqe_reads();
    const Cursor now = newest_at(at, block);
    // Ends: every failure means that another thread raised it, and it never exceeds `rung`.
    while (taken < now && !compare_exchange<kScope<S>>(&ring_->taken, taken, now)) {
    }
    return taken < now ? now : taken;
  }

  // Moves `ready` over everything that is marked. Only the thread that holds the requests.
  STRAIT_HD_INLINE Cursor collect() {
    const std::uint32_t count = ring_->count;
    Cursor ready = load_relaxed<kScope<S>>(&ring_->ready);
    const Cursor before = ready;
    bool more = true;
    // At most one lap: what lies beyond cannot be claimed before these are rung and taken.
    for (std::uint32_t looked = 0; more && looked < count; looked += kMarkWindow) {
      std::uint64_t marks[kMarkWindow];
      const Cursor base = ready;
      for (unsigned i = 0; i < kMarkWindow; ++i) {
        const std::uint32_t block = block_of(base) + i;
        marks[i] = load_mark<kScope<S>>(&ring_->marks[block < count ? block : block_of(base)]);
      }
      for (unsigned i = 0; i < kMarkWindow; ++i) {
        // Inside a claim, or behind the wrap.
        if (!more || ready != base + i || block_of(base) + i >= count) continue;
        more = marks[i] > ready;  // a mark of an earlier lap ends at or before this block
        if (more) ready = marks[i];
      }
    }
    if (ready != before) order_mark_reads<kScope<S>>();
    store_relaxed<kScope<S>>(&ring_->ready, ready);
    return ready;
  }

  CommandRing* ring_ = nullptr;
};

}  // namespace strait::device::cxi
