// SPDX-License-Identifier: Apache-2.0
// The receive queue of one RC queue pair. A receive WQE is a list of data pointers in a fixed stride, ended by a
// terminator if it is shorter. There is no receive doorbell: the record alone shows the device what is posted.
// Owner, threads, blocking: as in send_ring.hpp.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/request.hpp"
#include "strait/device/segments.hpp"
#include "strait/device/slots.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

struct ReceiveRing {
  std::uint32_t abi_version;
  std::uint32_t struct_size;
  std::uint8_t* entries;  // (1 << log_entries) << log_stride bytes, 16-byte aligned
  std::uint32_t* record;  // receive word of the doorbell record, memory image
  std::uint32_t log_entries;
  std::uint32_t log_stride;  // 4 for one data pointer, 5 for two, ...
  Reach reach;
  std::uint32_t reserved;
  Slots slots;  // counted in receives
};

struct ReceiveRingMemory {
  void* entries = nullptr;
  std::uint32_t log_entries = 0;
  std::uint32_t log_stride = 4;
  wire::mlx5::QueueRecord* record = nullptr;
  std::uint64_t* marks = nullptr;  // 1 << log_entries zeroed words; needed by many_threads only
  std::uint64_t first_index = 0;
  Reach reach = Reach::system;
};

inline constexpr std::uint32_t kMaxLogStride = 9;  // 32 data pointers, beyond any device's limit

[[nodiscard]] STRAIT_HD inline bool open_receive_ring(ReceiveRing& ring, const ReceiveRingMemory& m) {
  if (m.entries == nullptr || m.record == nullptr) return false;
  if (m.log_entries > wire::mlx5::kMaxLogBlocks || m.log_stride < 4 || m.log_stride > kMaxLogStride) return false;
  if (reinterpret_cast<std::uintptr_t>(m.entries) % wire::mlx5::kSegmentBytes != 0) return false;
  ring.abi_version = kDeviceAbiVersion;
  ring.struct_size = sizeof(ReceiveRing);
  ring.entries = static_cast<std::uint8_t*>(m.entries);
  ring.record = reinterpret_cast<std::uint32_t*>(&m.record->receive);
  ring.log_entries = m.log_entries;
  ring.log_stride = m.log_stride;
  ring.reach = m.reach;
  ring.reserved = 0;
  open_slots(ring.slots, std::uint64_t{1} << m.log_entries, m.marks, m.first_index);
  return true;
}

// Posts one receive; an empty list takes a WRITE_IMM or an empty message. publish_receives() makes it visible.
template <Sharing S>
STRAIT_HD inline Pending post_receive(ReceiveRing& ring, const Piece* pieces, std::uint32_t count) {
  const std::uint32_t most = 1u << (ring.log_stride - 4);
  std::uint32_t used = 0;
  // A buffer may be larger than the largest message, but each length must stay clear of bit 31.
  const Posted measured = measure(pieces, count, most, ~std::uint64_t{0}, used);
  if (measured != Posted::ok) return {0, measured};
  for (std::uint32_t i = 0; i < count; ++i)
    if ((pieces[i].length & wire::mlx5::kInlineFlag) != 0) return {0, Posted::too_long};
  std::uint64_t index = 0;
  if (!reserve<S>(ring.slots, 1, index)) return {0, Posted::full};
  std::uint8_t* at = ring.entries + ((index & (ring.slots.capacity - 1)) << ring.log_stride);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (pieces[i].length == 0) continue;
    store_data(at, pieces[i].addr, pieces[i].length, pieces[i].lkey);
    at += wire::mlx5::kSegmentBytes;
  }
  if (used < most) store_data(at, 0, 0, wire::mlx5::kTerminatorLkey);
  commit<S>(ring.slots, index, 1);
  return {index, Posted::ok};
}
template <Sharing S>
STRAIT_HD inline Pending post_receive(ReceiveRing& ring, const Piece& piece) {
  return post_receive<S>(ring, &piece, 1);
}

STRAIT_HD_INLINE void show_to_device(ReceiveRing& ring, std::uint64_t next) {
  order_stores_before_dma(ring.reach);
  store_record(ring.record, wire::be32{static_cast<std::uint32_t>(next & wire::mlx5::kIndexMask)}.raw());
}

// Shows the device every receive posted so far.
template <Sharing S>
STRAIT_HD inline void publish_receives(ReceiveRing& ring) {
  if constexpr (S == Sharing::one_thread) {
    if (ring.slots.ready == ring.slots.rung) return;
    ring.slots.rung = ring.slots.ready;
    show_to_device(ring, ring.slots.ready);
  } else {
    show_ready<S>(ring.slots, [&ring](std::uint64_t ready) { show_to_device(ring, ready); });
  }
}

struct Taken {
  std::uint64_t index;  // of the receive the message consumed
  bool known;           // false: no receive in flight has this counter
};

// Turns the 16-bit counter of a responder CQE into the receive's index and frees its slot (and any before it: receives
// are consumed in order).
template <Sharing S>
STRAIT_HD inline Taken take_receive(ReceiveRing& ring, std::uint16_t wqe_counter) {
  const std::uint64_t index = widen(completed_of<S>(ring.slots), wqe_counter);
  if (index >= rung_of<S>(ring.slots)) return {index, false};
  raise_completed<S>(ring.slots, index + 1);
  return {index, true};
}

template <Sharing S>
STRAIT_HD inline std::uint64_t free_receives(const ReceiveRing& ring) {
  return free_slots<S>(ring.slots);
}

}  // namespace strait::device
