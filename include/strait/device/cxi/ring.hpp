// SPDX-License-Identifier: Apache-2.0
// The command queue of a CXI device: its memory, where its write pointer goes, and the arithmetic of its places.
//
// A ring is blocks of 64 bytes. The first four hold the status, so commands lie in blocks [4, count) and a wrap comes
// back to block 4. count is a multiple of 64: whatever is aligned to 2 or 4 blocks stays so across a wrap, and no
// command is ever cut in two. Two queues are made of it: own_ring.hpp for one owner, in slots of 32 bytes as the device
// allows, shared_ring.hpp for many posters, in whole blocks.
//
// Owner: whoever opened the queue; nothing here allocates or frees.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/queue.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::device::cxi {

// Which commands a ring takes; it decides what fills gaps.
enum class RingKind : std::uint32_t {
  transmit,
  triggered,  // counter commands only, of 64 and 128 bytes
  target,     // 64 bytes only: there are no gaps
};

// Where the next block is, and in which lap: lap << 16 | block. Grows with every claim, so that a stale one is found
// out and one of a lap ago is never mistaken for a new one. Laps count from 1: a device that reports a place it cannot
// have reached in the first lap is taken to be behind and not far ahead.
using Cursor = std::uint64_t;

STRAIT_HD_INLINE constexpr Cursor cursor_at(std::uint64_t lap, std::uint32_t block) {
  return lap << 16 | block;
}
STRAIT_HD_INLINE constexpr std::uint32_t block_of(Cursor c) {
  return static_cast<std::uint32_t>(c & 0xffff);
}
STRAIT_HD_INLINE constexpr std::uint64_t lap_of(Cursor c) {
  return c >> 16;
}
inline constexpr Cursor kFirstCursor = cursor_at(1, wire::cxi::kFirstBlock);

// `blocks` further on; at most one lap.
STRAIT_HD_INLINE constexpr Cursor advance(Cursor c, std::uint32_t blocks, std::uint32_t count) {
  const std::uint32_t to = block_of(c) + blocks;
  return to < count ? c + blocks : cursor_at(lap_of(c) + 1, to - count + wire::cxi::kFirstBlock);
}
// Blocks from `from` to `to`, which is at most one lap further on.
STRAIT_HD_INLINE constexpr std::uint32_t distance(Cursor from, Cursor to, std::uint32_t count) {
  const std::uint32_t blocks = block_of(to) - block_of(from);
  return lap_of(from) == lap_of(to) ? blocks : blocks + count - wire::cxi::kFirstBlock;
}
// The same where `from` may be older than that: then more than a ring has.
STRAIT_HD_INLINE constexpr std::uint32_t distance_or_more(Cursor from, Cursor to, std::uint32_t count) {
  return lap_of(to) - lap_of(from) > 1 ? count : distance(from, to, count);
}
// The newest cursor up to `at` that lies at this block: what the device reports is a block alone.
STRAIT_HD_INLINE constexpr Cursor newest_at(Cursor at, std::uint32_t block) {
  return cursor_at(lap_of(at) - (block > block_of(at) ? 1 : 0), block);
}
// How far it is from `at` to a multiple of `size`, a power of two.
STRAIT_HD_INLINE constexpr std::uint32_t padding(std::uint32_t at, std::uint32_t size) {
  return (0u - at) & (size - 1);
}

// Counters written by different parties lie on different cache lines.
struct CommandRing {
  HandleHead head;
  std::uint8_t* blocks;          // count * 64 bytes, 64-byte aligned; the status word is its first
  std::uint64_t* write_pointer;  // first word of the launch page, or plain memory if the consumer is software
  std::uint32_t count;
  RingKind kind;
  Reach reach;
  std::uint32_t reserved0;
  std::uint64_t* marks;  // `count` words, zeroed at the start; where threads share
  // One owner: what it keeps in registers while it posts. In slots of 32 bytes.
  std::uint32_t next;
  std::uint32_t shown;
  // Where threads share.
  alignas(64) Cursor reserved;
  alignas(64) Cursor ready;
  Cursor rung;
  std::uint64_t requests;    // to ring; 0 when nobody is ringing
  alignas(64) Cursor taken;  // by the device, as far as anybody has looked
};

struct CommandRingMemory {
  void* blocks = nullptr;
  std::uint32_t count = 0;
  void* launch_page = nullptr;
  std::uint64_t* marks = nullptr;
  RingKind kind = RingKind::transmit;
  Reach reach = Reach::system;
};

// For a new queue: the device's write pointer is at the first block. Only addresses are looked at; whoever brings the
// ring along stores initial_queue_status() into it. False, and `ring` untouched, if this cannot be a ring.
[[nodiscard]] STRAIT_HD inline bool open_command_ring(CommandRing& ring, const CommandRingMemory& m) {
  if (m.blocks == nullptr || m.launch_page == nullptr) return false;
  if (m.count < wire::cxi::kMinCqBlocks || m.count > wire::cxi::kMaxCqBlocks || m.count % wire::cxi::kMinCqBlocks != 0)
    return false;
  if (reinterpret_cast<std::uintptr_t>(m.blocks) % wire::cxi::kBlockBytes != 0) return false;
  if (reinterpret_cast<std::uintptr_t>(m.launch_page) % 8 != 0) return false;
  ring = CommandRing{};
  ring.head = head_of<CommandRing>();
  ring.blocks = static_cast<std::uint8_t*>(m.blocks);
  ring.write_pointer = static_cast<std::uint64_t*>(m.launch_page);
  ring.count = m.count;
  ring.kind = m.kind;
  ring.reach = m.reach;
  ring.marks = m.marks;
  ring.next = ring.shown = wire::cxi::kFirstSlot;
  ring.reserved = ring.ready = ring.rung = ring.taken = kFirstCursor;
  return true;
}

STRAIT_HD_INLINE wire::cxi::QueueStatus status_of(const std::uint8_t* blocks) {
  return {peek(reinterpret_cast<const std::uint64_t*>(blocks))};
}

// Commands are in place before the device learns of them; the page is write-combining on a host.
STRAIT_HD_INLINE void show_write_pointer(std::uint64_t* write_pointer, Reach reach, std::uint32_t block) {
  order_before_doorbell(reach);
  store_doorbell(write_pointer, block);
  order_after_doorbell(reach);
}

// The first word of a gap: a whole block on a triggered queue, two slots elsewhere.
inline constexpr std::uint64_t kTriggeredGap =
    wire::cxi::header_byte(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b64, wire::cxi::CtOp::noop);

STRAIT_HD_INLINE void fill_slot(std::uint8_t* slot) {
  store_segment(slot, 0, 0);
}
STRAIT_HD_INLINE void fill_block(std::uint8_t* block, RingKind kind) {
  if (kind == RingKind::triggered) {
    store_segment(block, kTriggeredGap, 0);
  } else {
    fill_slot(block);
    fill_slot(block + wire::cxi::kSlotBytes);
  }
}

}  // namespace strait::device::cxi
