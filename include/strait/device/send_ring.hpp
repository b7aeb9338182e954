// SPDX-License-Identifier: Apache-2.0
// The send queue of one RC queue pair: its memory, its counters, doorbell and completion. post.hpp writes into it.
//
// Owner: whoever opened the queue pair; the ring code never allocates or frees. A kernel gets a pointer to this struct
// in memory that all posters reach, since the counters in it are shared state. Blocks: never. One CPU thread or GPU
// lane uses it as one_thread, several as one_block or many_threads; the modes are not mixed on one ring.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/request.hpp"
#include "strait/device/slots.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

struct SendRing {
  std::uint32_t abi_version;
  std::uint32_t struct_size;
  std::uint8_t* blocks;     // (1 << log_blocks) * 64 bytes, 64-byte aligned
  std::uint32_t* record;    // send word of the doorbell record, memory image
  std::uint64_t* doorbell;  // doorbell register, or plain memory if the consumer is software
  std::uint32_t log_blocks;
  std::uint32_t qpn_shifted;   // qpn << 8, as the control segment wants it
  std::uint64_t last_control;  // one_thread: memory image of the newest control segment's first 8 bytes
  Reach reach;
  std::uint32_t reserved;
  Slots slots;  // counted in blocks
};

struct SendRingMemory {
  void* blocks = nullptr;
  std::uint32_t log_blocks = 0;
  std::uint32_t qpn = 0;
  wire::mlx5::QueueRecord* record = nullptr;
  void* doorbell = nullptr;
  std::uint64_t* marks = nullptr;  // 1 << log_blocks zeroed words; needed where threads share
  std::uint64_t first_index = 0;   // low 16 bits as the device has them: 0 after a reset
  Reach reach = Reach::system;
};

// False, and `ring` untouched, if the memory cannot be a send ring (too many blocks, misaligned, missing, qpn too big).
[[nodiscard]] STRAIT_HD inline bool open_send_ring(SendRing& ring, const SendRingMemory& m) {
  if (m.blocks == nullptr || m.record == nullptr || m.doorbell == nullptr) return false;
  if (m.log_blocks > wire::mlx5::kMaxLogBlocks || m.qpn > wire::mlx5::kMaxQpn) return false;
  if (reinterpret_cast<std::uintptr_t>(m.blocks) % wire::mlx5::kBlockBytes != 0) return false;
  if (reinterpret_cast<std::uintptr_t>(m.doorbell) % 8 != 0) return false;
  ring.abi_version = kDeviceAbiVersion;
  ring.struct_size = sizeof(SendRing);
  ring.blocks = static_cast<std::uint8_t*>(m.blocks);
  ring.record = reinterpret_cast<std::uint32_t*>(&m.record->send);
  ring.doorbell = static_cast<std::uint64_t*>(m.doorbell);
  ring.log_blocks = m.log_blocks;
  ring.qpn_shifted = m.qpn << 8;
  ring.last_control = 0;
  ring.reach = m.reach;
  ring.reserved = 0;
  open_slots(ring.slots, std::uint64_t{1} << m.log_blocks, m.marks, m.first_index);
  return true;
}

STRAIT_HD_INLINE std::uint32_t qpn_of(const SendRing& ring) {
  return ring.qpn_shifted >> 8;
}

STRAIT_HD_INLINE std::uint8_t* block_at(const SendRing& ring, std::uint64_t index) {
  return ring.blocks + (index & (ring.slots.capacity - 1)) * wire::mlx5::kBlockBytes;
}

// Blocks that can be posted right now. With many posters the answer may be old when it arrives.
template <Sharing S>
STRAIT_HD inline std::uint64_t free_blocks(const SendRing& ring) {
  return free_slots<S>(ring.slots);
}

// Record first, then the doorbell: a NIC that drops the doorbell's contents reads the record.
STRAIT_HD_INLINE void show_to_device(SendRing& ring, std::uint64_t next, std::uint64_t control) {
  order_stores_before_dma(ring.reach);
  store_record(ring.record, wire::be32{static_cast<std::uint32_t>(next & wire::mlx5::kIndexMask)}.raw());
  order_before_doorbell(ring.reach);
  store_doorbell(ring.doorbell, control);
  order_after_doorbell(ring.reach);
}

// A doorbell that says the index of the next WQE, and nothing of the newest.
STRAIT_HD_INLINE std::uint64_t doorbell_of_next(const SendRing& ring, std::uint64_t next) {
  const std::uint32_t index = wire::mlx5::control_word0(0, next, wire::mlx5::Opcode::nop);
  return wire::be64{static_cast<std::uint64_t>(index) << 32 | ring.qpn_shifted}.raw();
}

// Shows the device everything that is ready: one record and one doorbell for any number of posts before it. Nothing
// new: nothing happens. Of the two things a doorbell may say, one owner says what libmlx5 does, the beginning of the
// newest WQE; where threads share, it is the index of the next one, which nobody has to look up in the ring.
template <Sharing S>
STRAIT_HD_INLINE void ring_doorbell(SendRing& ring) {
  if constexpr (S == Sharing::one_thread) {
    const std::uint64_t ready = ring.slots.ready;
    if (ready == ring.slots.rung) return;
    ring.slots.rung = ready;
    show_to_device(ring, ready, ring.last_control);
  } else {
    show_ready<S>(ring.slots,
                  [&ring](std::uint64_t ready) { show_to_device(ring, ready, doorbell_of_next(ring, ready)); });
  }
}

struct Finished {
  std::uint64_t start;  // the WQE the device named
  std::uint64_t end;    // one past its last block: everything below is complete
  bool known;           // false: no WQE in flight starts there; the completion is stale or not ours
};

// complete_up_to() with `completed` as it was before the counter was read. A thread that looks at a collapsed CQE must
// read in that order: stopped between the two the other way round, it would take a counter from many laps ago for a new
// one. Read this way a late look finds either the right WQE or one whose mark is gone. Where the counter was not new, a
// thread stopped after reading it would find another WQE with the same 16 bits in flight, 65536 blocks on; but whatever
// was in flight when `completed` was read lies within the ring's length of it.
template <Sharing S>
STRAIT_HD inline Finished complete_since(SendRing& ring, std::uint64_t completed, std::uint16_t wqe_counter) {
  const std::uint64_t start = widen(completed, wqe_counter);
  const std::uint64_t rung = rung_of<S>(ring.slots);
  Finished out{start, start, false};
  if (start >= rung || start - completed >= ring.slots.capacity) return out;
  constexpr std::uint64_t longest = wire::mlx5::blocks_of(wire::mlx5::kMaxSegments);
  const std::uint64_t most = ring.slots.capacity < longest ? ring.slots.capacity : longest;
  if constexpr (S == Sharing::one_thread) {
    const auto* control = reinterpret_cast<const wire::mlx5::CtrlSeg*>(block_at(ring, start));
    if (control->index() != wqe_counter) return out;
    const std::uint32_t blocks = wire::mlx5::blocks_of(control->ds());
    out.end = start + (blocks == 0 ? 1 : blocks);
  } else {
    // The ring itself may be rewritten by a poster if another thread has completed this WQE meanwhile; its mark tells.
    // Relaxed: the CQE brought the mark along, as it did `rung`, and only its number is used.
    out.end = load_relaxed<kScope<S>>(&ring.slots.marks[start & (ring.slots.capacity - 1)]);
  }
  out.known = out.end > start && out.end - start <= most && out.end <= rung;
  if (out.known) raise_completed<S>(ring.slots, out.end);
  return out;
}

// Turns the 16-bit counter of a CQE into the WQE's index and frees every block up to its end: completion is cumulative.
// An unknown counter changes nothing. For the one thread that polls the completion ring.
template <Sharing S>
STRAIT_HD_INLINE Finished complete_up_to(SendRing& ring, std::uint16_t wqe_counter) {
  return complete_since<S>(ring, completed_of<S>(ring.slots), wqe_counter);
}

// Has the WQE that starts at this index completed, as far as completions have been reaped?
template <Sharing S>
STRAIT_HD_INLINE bool is_done(const SendRing& ring, std::uint64_t start) {
  return completed_of<S>(ring.slots) > start;
}

}  // namespace strait::device
