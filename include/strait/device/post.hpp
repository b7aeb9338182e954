// SPDX-License-Identifier: Apache-2.0
// Every operation of an RC send queue. Each writes one WQE and returns its index, or says why not and changes nothing;
// none rings: post as many as you like, then ring_doorbell(). Nothing here blocks.
#pragma once

#include <cstdint>

#include "strait/device/segments.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/slots.hpp"

namespace strait::device {

// ---- Shared steps -------------------------------------------------------------------------------------------------

struct Head {
  wire::mlx5::Opcode opcode;
  std::uint8_t opmod;
  Flags flags;
  wire::be32 imm;
};

// A reserved WQE whose control segment is written.
struct OpenWqe {
  std::uint8_t* block;
  std::uint64_t start;
  std::uint32_t blocks;
  Posted posted;
};

template <Sharing S>
STRAIT_HD_INLINE OpenWqe open_wqe(SendRing& ring, const Head& head, std::uint32_t ds) {
  OpenWqe wqe{nullptr, 0, wire::mlx5::blocks_of(ds), Posted::ok};
  if ((head.flags & ~kKnownFlags) != 0) {
    wqe.posted = Posted::invalid;
    return wqe;
  }
  if (!reserve<S>(ring.slots, wqe.blocks, wqe.start)) {
    wqe.posted = wqe.blocks > ring.slots.capacity ? Posted::too_long : Posted::full;
    return wqe;
  }
  wqe.block = block_at(ring, wqe.start);
  const std::uint64_t low = control_low(head.opcode, head.opmod, wqe.start, ring.qpn_shifted, ds);
  store_segment(wqe.block, low, control_high(head.flags, head.imm));
  if constexpr (S == Sharing::one_thread) ring.last_control = low;
  return wqe;
}

template <Sharing S>
STRAIT_HD_INLINE Pending close_wqe(SendRing& ring, const OpenWqe& wqe) {
  commit<S>(ring.slots, wqe.start, wqe.blocks);
  return {wqe.start, Posted::ok};
}

STRAIT_HD_INLINE SegmentCursor cursor_at(const SendRing& ring, std::uint8_t* at) {
  return {at, ring.blocks, ring.blocks + ring.slots.capacity * wire::mlx5::kBlockBytes};
}

template <Sharing S>
STRAIT_HD_INLINE Pending post_pieces(SendRing& ring, const Head& head, const Remote* remote, const Piece* pieces,
                                     std::uint32_t count) {
  const std::uint32_t fixed = remote != nullptr ? 2 : 1;
  std::uint32_t data = 0;
  const Posted measured = measure(pieces, count, wire::mlx5::kMaxSegments - fixed, wire::mlx5::kMaxMessageBytes, data);
  if (measured != Posted::ok) return {0, measured};
  const OpenWqe wqe = open_wqe<S>(ring, head, fixed + data);
  if (wqe.posted != Posted::ok) return {0, wqe.posted};
  if (remote != nullptr) store_remote(wqe.block + 16, *remote);
  SegmentCursor cursor = cursor_at(ring, wqe.block + 16 * fixed);
  for (std::uint32_t i = 0; i < count; ++i)
    if (pieces[i].length != 0) store_data(cursor.next(), pieces[i].addr, pieces[i].length, pieces[i].lkey);
  return close_wqe<S>(ring, wqe);
}

template <Sharing S>
STRAIT_HD_INLINE Pending post_inline(SendRing& ring, const Head& head, const Remote* remote, const void* payload,
                                     std::uint64_t length) {
  const std::uint32_t fixed = remote != nullptr ? 2 : 1;
  if (length > (remote != nullptr ? kMaxInlineWrite : kMaxInlineSend)) return {0, Posted::too_long};
  if (length != 0 && payload == nullptr) return {0, Posted::invalid};
  const auto bytes = static_cast<std::uint32_t>(length);
  const OpenWqe wqe = open_wqe<S>(ring, head, fixed + wire::mlx5::inline_segments(bytes));
  if (wqe.posted != Posted::ok) return {0, wqe.posted};
  if (remote != nullptr) store_remote(wqe.block + 16, *remote);
  std::uint8_t* const first = wqe.block + 16 * fixed;
  if (bytes != 0) store_inline(first, cursor_at(ring, first + 16), static_cast<const std::uint8_t*>(payload), bytes);
  return close_wqe<S>(ring, wqe);
}

// One-block atomics: the operand segment is given as its two words in memory order.
template <Sharing S>
STRAIT_HD_INLINE Pending post_atomic(SendRing& ring, const Head& head, const Remote& remote, std::uint32_t width,
                                     const Piece& result, std::uint64_t low, std::uint64_t high) {
  if (result.length != width || remote.addr % width != 0) return {0, Posted::invalid};
  const OpenWqe wqe = open_wqe<S>(ring, head, 4);
  if (wqe.posted != Posted::ok) return {0, wqe.posted};
  store_remote(wqe.block + 16, remote);
  store_segment(wqe.block + 32, low, high);
  store_data(wqe.block + 48, result.addr, width, result.lkey);
  return close_wqe<S>(ring, wqe);
}

// ---- Send ---------------------------------------------------------------------------------------------------------

template <Sharing S>
STRAIT_HD_INLINE Pending post_send(SendRing& ring, const Piece* pieces, std::uint32_t count, Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::send, 0, flags, wire::be32{0}}, nullptr, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_send(SendRing& ring, const Piece& piece, Flags flags) {
  return post_send<S>(ring, &piece, 1, flags);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_imm(SendRing& ring, const Piece* pieces, std::uint32_t count, wire::be32 imm,
                                       Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::send_imm, 0, flags, imm}, nullptr, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_imm(SendRing& ring, const Piece& piece, wire::be32 imm, Flags flags) {
  return post_send_imm<S>(ring, &piece, 1, imm, flags);
}
// The receiver's device drops `rkey` when the message arrives.
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_invalidate(SendRing& ring, const Piece* pieces, std::uint32_t count,
                                              std::uint32_t rkey, Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::send_inval, 0, flags, wire::be32{rkey}}, nullptr, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_invalidate(SendRing& ring, const Piece& piece, std::uint32_t rkey, Flags flags) {
  return post_send_invalidate<S>(ring, &piece, 1, rkey, flags);
}
// Inline: the payload is copied into the ring now and may be reused at once.
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_inline(SendRing& ring, const void* payload, std::uint64_t length, Flags flags) {
  return post_inline<S>(ring, {wire::mlx5::Opcode::send, 0, flags, wire::be32{0}}, nullptr, payload, length);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_send_imm_inline(SendRing& ring, const void* payload, std::uint64_t length, wire::be32 imm,
                                              Flags flags) {
  return post_inline<S>(ring, {wire::mlx5::Opcode::send_imm, 0, flags, imm}, nullptr, payload, length);
}

// ---- RDMA ---------------------------------------------------------------------------------------------------------

template <Sharing S>
STRAIT_HD_INLINE Pending post_write(SendRing& ring, const Remote& to, const Piece* pieces, std::uint32_t count,
                                    Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::rdma_write, 0, flags, wire::be32{0}}, &to, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_write(SendRing& ring, const Remote& to, const Piece& piece, Flags flags) {
  return post_write<S>(ring, to, &piece, 1, flags);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_write_imm(SendRing& ring, const Remote& to, const Piece* pieces, std::uint32_t count,
                                        wire::be32 imm, Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::rdma_write_imm, 0, flags, imm}, &to, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_write_imm(SendRing& ring, const Remote& to, const Piece& piece, wire::be32 imm,
                                        Flags flags) {
  return post_write_imm<S>(ring, to, &piece, 1, imm, flags);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_write_inline(SendRing& ring, const Remote& to, const void* payload, std::uint64_t length,
                                           Flags flags) {
  return post_inline<S>(ring, {wire::mlx5::Opcode::rdma_write, 0, flags, wire::be32{0}}, &to, payload, length);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_write_imm_inline(SendRing& ring, const Remote& to, const void* payload,
                                               std::uint64_t length, wire::be32 imm, Flags flags) {
  return post_inline<S>(ring, {wire::mlx5::Opcode::rdma_write_imm, 0, flags, imm}, &to, payload, length);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_read(SendRing& ring, const Remote& from, const Piece* pieces, std::uint32_t count,
                                   Flags flags) {
  return post_pieces<S>(ring, {wire::mlx5::Opcode::rdma_read, 0, flags, wire::be32{0}}, &from, pieces, count);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_read(SendRing& ring, const Remote& from, const Piece& piece, Flags flags) {
  return post_read<S>(ring, from, &piece, 1, flags);
}

// ---- Atomics: the old value goes to `result`, whose length must be the operation's width ----------------------------

template <Sharing S>
STRAIT_HD_INLINE Pending post_compare_swap(SendRing& ring, const Remote& at, std::uint64_t compare, std::uint64_t swap,
                                           const Piece& result, Flags flags) {
  return post_atomic<S>(ring, {wire::mlx5::Opcode::atomic_cs, 0, flags, wire::be32{0}}, at, 8, result,
                        wire::be64{swap}.raw(), wire::be64{compare}.raw());
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_fetch_add(SendRing& ring, const Remote& at, std::uint64_t add, const Piece& result,
                                        Flags flags) {
  return post_atomic<S>(ring, {wire::mlx5::Opcode::atomic_fa, 0, flags, wire::be32{0}}, at, 8, result,
                        wire::be64{add}.raw(), 0);
}
// Adds without carry out of the bits set in `boundary`: 0 is an ordinary add, all ones is XOR.
template <Sharing S>
STRAIT_HD_INLINE Pending post_masked_fetch_add4(SendRing& ring, const Remote& at, std::uint32_t add,
                                                std::uint32_t boundary, const Piece& result, Flags flags) {
  return post_atomic<S>(ring, {wire::mlx5::Opcode::atomic_masked_fa, wire::mlx5::kOpmodMasked4, flags, wire::be32{0}},
                        at, 4, result, be_pair(add, boundary), 0);
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_masked_fetch_add8(SendRing& ring, const Remote& at, std::uint64_t add,
                                                std::uint64_t boundary, const Piece& result, Flags flags) {
  return post_atomic<S>(ring, {wire::mlx5::Opcode::atomic_masked_fa, wire::mlx5::kOpmodMasked8, flags, wire::be32{0}},
                        at, 8, result, wire::be64{add}.raw(), wire::be64{boundary}.raw());
}
// Compares under compare_mask and, if equal, replaces the bits of swap_mask. compare_mask 0 sets unconditionally.
template <Sharing S>
STRAIT_HD_INLINE Pending post_masked_compare_swap4(SendRing& ring, const Remote& at, const MaskedSwap4& op,
                                                   const Piece& result, Flags flags) {
  return post_atomic<S>(ring, {wire::mlx5::Opcode::atomic_masked_cs, wire::mlx5::kOpmodMasked4, flags, wire::be32{0}},
                        at, 4, result, be_pair(op.swap, op.compare), be_pair(op.swap_mask, op.compare_mask));
}
template <Sharing S>
STRAIT_HD_INLINE Pending post_masked_compare_swap8(SendRing& ring, const Remote& at, const MaskedSwap8& op,
                                                   const Piece& result, Flags flags) {
  if (result.length != 8 || at.addr % 8 != 0) return {0, Posted::invalid};
  const Head head{wire::mlx5::Opcode::atomic_masked_cs, wire::mlx5::kOpmodMasked8, flags, wire::be32{0}};
  const OpenWqe wqe = open_wqe<S>(ring, head, 5);
  if (wqe.posted != Posted::ok) return {0, wqe.posted};
  store_remote(wqe.block + 16, at);
  store_segment(wqe.block + 32, wire::be64{op.swap}.raw(), wire::be64{op.compare}.raw());
  store_segment(wqe.block + 48, wire::be64{op.swap_mask}.raw(), wire::be64{op.compare_mask}.raw());
  SegmentCursor second = cursor_at(ring, wqe.block + wire::mlx5::kBlockBytes);
  store_data(second.next(), result.addr, 8, result.lkey);
  return close_wqe<S>(ring, wqe);
}

template <Sharing S>
STRAIT_HD_INLINE Pending post_nop(SendRing& ring, Flags flags) {
  const OpenWqe wqe = open_wqe<S>(ring, {wire::mlx5::Opcode::nop, 0, flags, wire::be32{0}}, 1);
  if (wqe.posted != Posted::ok) return {0, wqe.posted};
  return close_wqe<S>(ring, wqe);
}

}  // namespace strait::device
