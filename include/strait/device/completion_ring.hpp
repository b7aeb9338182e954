// SPDX-License-Identifier: Apache-2.0
// Reads completions: 64- and 128-byte entries, normal rings and collapsed ones (the device writes every CQE to entry
// 0).
//
// A normal ring has one consumer: poll() is for one thread at a time. A collapsed ring is only read, so any number of
// threads may look at it. The device hands an entry over by its last byte (normal) or its last four bytes (collapsed:
// counter and op_own must be seen together, because the entry is overwritten while we look).
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

struct CompletionRing {
  std::uint32_t abi_version;
  std::uint32_t struct_size;
  std::uint8_t* entries;
  std::uint32_t* record;  // consumer word of the CQ's record, memory image; may be null if overrun is ignored
  std::uint32_t log_entries;
  std::uint32_t log_entry_bytes;  // 6 or 7
  std::uint64_t consumed;         // entries taken since the ring was made
};

struct CompletionRingMemory {
  void* entries = nullptr;
  std::uint32_t log_entries = 0;
  std::uint32_t entry_bytes = 64;
  wire::mlx5::CqRecord* record = nullptr;
  std::uint64_t first_index = 0;
};

inline constexpr std::uint32_t kMaxLogCqes = 22;

// The entries must have been initialised to kCqeInvalid in their last byte, by whoever made the memory.
[[nodiscard]] STRAIT_HD inline bool open_completion_ring(CompletionRing& ring, const CompletionRingMemory& m) {
  if (m.entries == nullptr || m.log_entries > kMaxLogCqes) return false;
  if (m.entry_bytes != sizeof(wire::mlx5::Cqe) && m.entry_bytes != sizeof(wire::mlx5::Cqe128)) return false;
  if (reinterpret_cast<std::uintptr_t>(m.entries) % sizeof(wire::mlx5::Cqe) != 0) return false;
  ring.abi_version = kDeviceAbiVersion;
  ring.struct_size = sizeof(CompletionRing);
  ring.entries = static_cast<std::uint8_t*>(m.entries);
  ring.record = m.record == nullptr ? nullptr : reinterpret_cast<std::uint32_t*>(&m.record->consumer);
  ring.log_entries = m.log_entries;
  ring.log_entry_bytes = m.entry_bytes == 64 ? 6 : 7;
  ring.consumed = m.first_index;
  return true;
}

enum class Polled : std::uint8_t {
  empty,
  done,
  error,  // the operation failed: syndrome says why. Never a word for "nothing there".
};

struct Completion {
  wire::mlx5::CqeOpcode opcode;
  wire::mlx5::Opcode send_opcode;  // requester only
  wire::mlx5::Syndrome syndrome;   // none unless the poll said error
  std::uint8_t vendor_syndrome;
  std::uint16_t wqe_counter;  // low 16 bits of the WQE's or receive's index
  std::uint8_t format;        // not plain: the payload lies in the CQE, which queues of ours never ask for
  bool solicited;
  std::uint32_t qpn;
  std::uint32_t user_index;
  std::uint32_t byte_count;
  wire::be32 imm;  // immediate as the sender gave it, or the invalidated rkey

  STRAIT_HD constexpr bool is_requester() const {
    return opcode == wire::mlx5::CqeOpcode::requester || opcode == wire::mlx5::CqeOpcode::requester_error;
  }
};

STRAIT_HD_INLINE wire::mlx5::Cqe* cqe_at(const CompletionRing& ring, std::uint64_t index) {
  const std::uint64_t slot = index & ((std::uint64_t{1} << ring.log_entries) - 1);
  std::uint8_t* const entry = ring.entries + (slot << ring.log_entry_bytes);
  return reinterpret_cast<wire::mlx5::Cqe*>(entry + (std::uint64_t{1} << ring.log_entry_bytes) -
                                            sizeof(wire::mlx5::Cqe));
}

STRAIT_HD_INLINE Polled read_cqe(const wire::mlx5::Cqe& cqe, std::uint8_t op_own, Completion& out) {
  out.opcode = static_cast<wire::mlx5::CqeOpcode>(op_own >> 4);
  out.format = op_own & wire::mlx5::kCqeFormatMask;
  out.solicited = (op_own & wire::mlx5::kCqeSolicited) != 0;
  out.send_opcode = cqe.send_opcode();
  out.qpn = cqe.qpn();
  out.user_index = cqe.user_index();
  out.wqe_counter = cqe.wqe_counter.value();
  out.byte_count = cqe.byte_cnt.value();
  out.imm = cqe.imm_inval_pkey;
  out.syndrome = wire::mlx5::Syndrome::none;
  out.vendor_syndrome = 0;
  if (out.opcode >= wire::mlx5::CqeOpcode::signature_error) {
    out.syndrome = cqe.syndrome();
    out.vendor_syndrome = cqe.vendor_syndrome();
    return Polled::error;
  }
  return out.format == wire::mlx5::kCqeFormatPlain ? Polled::done : Polled::error;
}

// The next entry, not taken yet; `cqe` is null when there is none. For consumers that need little of it: read what you
// want, then take_entry().
struct Entry {
  const wire::mlx5::Cqe* cqe;
  std::uint8_t op_own;
  std::uint16_t wqe_counter;

  // A work request of ours that succeeded: all there is to know is its wqe_counter.
  STRAIT_HD constexpr bool is_plain_success() const {
    constexpr std::uint8_t mask = 0xf0 | wire::mlx5::kCqeFormatMask;
    return (op_own & mask) == static_cast<std::uint8_t>(wire::mlx5::CqeOpcode::requester) << 4;
  }
};

STRAIT_HD_INLINE Entry next_entry(const CompletionRing& ring) {
  const wire::mlx5::Cqe* const cqe = cqe_at(ring, ring.consumed);
#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
  // One look across the bus brings the counter as well.
  const std::uint32_t tail = peek(reinterpret_cast<const std::uint32_t*>(&cqe->wqe_counter));
  const auto op_own = static_cast<std::uint8_t>(tail >> 24);
  const std::uint16_t counter = wire::swap_bytes(static_cast<std::uint16_t>(tail));
#else
  const std::uint8_t op_own = peek(&cqe->op_own);
#endif
  // Valid means: ever written, and in this lap. The owner bit alternates lap by lap.
  const auto phase = static_cast<std::uint8_t>(ring.consumed >> ring.log_entries & 1);
  if (op_own >> 4 == static_cast<std::uint8_t>(wire::mlx5::CqeOpcode::invalid)) return {nullptr, op_own, 0};
  if ((op_own & wire::mlx5::kCqeOwnerMask) != phase) return {nullptr, op_own, 0};
  order_cqe_reads();
#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
  return {cqe, op_own, counter};
#else
  return {cqe, op_own, cqe->wqe_counter.value()};
#endif
}

// Tells the device that the slot of the next entry is free.
STRAIT_HD_INLINE void take_entry(CompletionRing& ring) {
  ++ring.consumed;
  if (ring.record == nullptr) return;
  const auto consumer = static_cast<std::uint32_t>(ring.consumed & wire::mlx5::kConsumerMask);
  order_stores_before_dma(Reach::system);  // our reads come before the slot's reuse
  store_record(ring.record, wire::be32{consumer}.raw());
}

// Takes the next entry if there is one.
STRAIT_HD_INLINE Polled poll(CompletionRing& ring, Completion& out) {
  const Entry entry = next_entry(ring);
  if (entry.cqe == nullptr) return Polled::empty;
  const Polled polled = read_cqe(*entry.cqe, entry.op_own, out);
  take_entry(ring);
  return polled;
}

// Collapsed ring: brings `send` up to the newest completion. done: it moved; empty: nothing new; error: the newest
// completion is an error, and stays one for every caller, since the queue pair is dead. The device may already have
// replaced the first error by a flush. Only opcode, counter and syndromes of `out` are filled.
template <Sharing S>
STRAIT_HD inline Polled poll_collapsed(SendRing& send, const CompletionRing& ring, Completion& out) {
  const wire::mlx5::Cqe* const cqe = cqe_at(ring, 0);
  const std::uint64_t completed = completed_of<S>(send.slots);  // before the CQE: see complete_since()
  const std::uint32_t tail = peek(reinterpret_cast<const std::uint32_t*>(&cqe->wqe_counter));
  order_cqe_reads();
  out = Completion{};
  out.opcode = static_cast<wire::mlx5::CqeOpcode>(tail >> 28);
  out.wqe_counter = wire::swap_bytes(static_cast<std::uint16_t>(tail));
  out.qpn = qpn_of(send);
  if (out.opcode == wire::mlx5::CqeOpcode::invalid) return Polled::empty;
  if (out.opcode >= wire::mlx5::CqeOpcode::signature_error) {
    // One word, so that the bytes belong together: hw, hw type, vendor, syndrome.
    const std::uint32_t raw = peek(reinterpret_cast<const std::uint32_t*>(&cqe->timestamp) + 1);
    out.syndrome = static_cast<wire::mlx5::Syndrome>(raw >> 24);
    out.vendor_syndrome = static_cast<std::uint8_t>(raw >> 16);
    return Polled::error;
  }
  return complete_since<S>(send, completed, out.wqe_counter).known ? Polled::done : Polled::empty;
}

}  // namespace strait::device
