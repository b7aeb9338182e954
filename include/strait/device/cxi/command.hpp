// SPDX-License-Identifier: Apache-2.0
// Commands as words in registers, and their way into a ring: stores of 16 bytes, none narrower.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::device::cxi {

template <std::size_t Words>
STRAIT_HD_INLINE void store_command(std::uint8_t* at, const std::uint64_t (&words)[Words]) {
  static_assert(Words % 2 == 0);
  STRAIT_UNROLL
  for (std::size_t i = 0; i < Words; i += 2) store_segment(at + i * 8, words[i], words[i + 1]);
}

// A command of 64 bytes that lies in memory already, with the low half of its first byte replaced by `kind`.
STRAIT_HD_INLINE void copy_block(std::uint8_t* at, const void* command, unsigned kind) {
#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
  std::uint64_t words[8];
  __builtin_memcpy(words, command, sizeof words);
  words[0] = (words[0] & ~std::uint64_t{0xf}) | kind;
  store_command(at, words);
#else
  // A CPU copies in its widest registers, and a byte behind it costs nothing.
  __builtin_memcpy(at, command, 64);
  at[0] = static_cast<std::uint8_t>((*static_cast<const std::uint8_t*>(command) & 0xf0) | kind);
#endif
}

// Where a command goes and whom it tells.
struct Destination {
  std::uint32_t dfa;
  std::uint32_t index_ext;
  std::uint64_t remote_offset;
};
struct Telling {
  std::uint32_t flags;  // wire::cxi::kEvent...
  std::uint32_t initiator;
  std::uint64_t whom;  // told_by_...()
};
// Counter and event queue, where DMA commands and the state of immediate ones have them: in word 3. 0: nobody counts,
// nobody is told.
STRAIT_HD_INLINE std::uint64_t told_by_event(std::uint32_t eq) {
  wire::cxi::FullDmaCmd c{};
  c.set_eq(eq);
  return c.words[3];
}
// The same, with another counter.
STRAIT_HD_INLINE std::uint64_t told_by_counter(std::uint64_t told, std::uint32_t ct) {
  wire::cxi::FullDmaCmd c{};
  c.words[3] = told;
  c.set_ct(ct);
  return c.words[3];
}

template <class Cmd>
STRAIT_HD_INLINE void fill_dma(Cmd& c, wire::cxi::CmdSize size, wire::cxi::DmaOp op, const Destination& to,
                               std::uint64_t local, std::uint32_t lac, std::uint32_t bytes, const Telling& tell) {
  c.set_header(wire::cxi::CmdType::dma, size, op);
  c.set_index_ext(to.index_ext);
  c.set_lac(lac);
  c.set_flags(tell.flags);
  c.set_dfa(to.dfa);
  c.set_remote_offset(to.remote_offset);
  c.set_local_addr(local);
  c.set_request_len(bytes);
  c.words[3] |= tell.whom;
  c.set_initiator(tell.initiator);
}

// PUT or GET of memory: 64 bytes.
STRAIT_HD_INLINE wire::cxi::FullDmaCmd full_dma(wire::cxi::DmaOp op, const Destination& to, std::uint64_t local,
                                                std::uint32_t lac, std::uint32_t bytes, const Telling& tell,
                                                std::uint64_t match_bits, std::uint64_t user_ptr) {
  wire::cxi::FullDmaCmd c{};
  fill_dma(c, wire::cxi::CmdSize::b64, op, to, local, lac, bytes, tell);
  c.set_match_bits(match_bits);
  c.set_user_ptr(user_ptr);
  return c;
}

struct AtomicResult {
  std::uint64_t address = 0;
  std::uint32_t lac = 0;
};
struct AtomicKind {
  wire::cxi::AtomicOp op;
  wire::cxi::AtomicType type;
  wire::cxi::CswapOp compare = wire::cxi::CswapOp::eq;
};

// An atomic whose operand lies in memory: 96 bytes that are given 128. The only one that can be triggered.
STRAIT_HD_INLINE wire::cxi::AmoDmaCmd amo_dma(bool fetching, const Destination& to, std::uint64_t operand,
                                              std::uint32_t lac, const AtomicKind& kind, const AtomicResult& result,
                                              const Telling& tell, std::uint64_t match_bits, std::uint64_t user_ptr) {
  wire::cxi::AmoDmaCmd c{};
  fill_dma(c, wire::cxi::CmdSize::b128, fetching ? wire::cxi::DmaOp::fetching_atomic : wire::cxi::DmaOp::atomic, to,
           operand, lac, wire::cxi::bytes_of(kind.type), tell);
  c.set_match_bits(match_bits);
  c.set_user_ptr(user_ptr);
  c.set_local_write_addr(result.address);
  c.set_atomic_op(kind.op);
  c.set_atomic_type(kind.type);
  c.set_cswap_op(kind.compare);
  c.set_write_lac(result.lac);
  return c;
}

// What the immediate commands behind it have in common.
STRAIT_HD_INLINE wire::cxi::CStateCmd c_state(std::uint32_t index_ext, std::uint32_t write_lac, const Telling& tell,
                                              std::uint64_t user_ptr) {
  wire::cxi::CStateCmd c{};
  c.set_header(wire::cxi::CmdType::idc, wire::cxi::CmdSize::b32, wire::cxi::DmaOp::cstate);
  c.set_length(sizeof(wire::cxi::CStateCmd));
  c.set_write_lac(write_lac);
  c.set_flags(tell.flags);
  c.set_initiator(tell.initiator);
  c.set_index_ext(index_ext);
  c.set_user_ptr(user_ptr);
  c.words[3] |= tell.whom;
  return c;
}

// Up to 16 bytes that travel in the command: 32 bytes.
struct ImmediatePut {
  std::uint64_t words[4];
};
STRAIT_HD_INLINE ImmediatePut immediate_put(const Destination& to, std::uint64_t low, std::uint64_t high,
                                            std::uint32_t bytes) {
  wire::cxi::IdcHeader h{};
  h.set_header(wire::cxi::CmdType::idc, wire::cxi::CmdSize::b32, wire::cxi::DmaOp::put);
  h.set_length(wire::cxi::kIdcHeaderBytes + bytes);
  h.set_dfa(to.dfa);
  h.set_remote_offset(to.remote_offset);
  return {{h.words[0], h.words[1], low, high}};
}

// An atomic with its operand in the command that brings nothing back: 32 bytes. Not for CSWAP, AXOR and 16-byte types.
STRAIT_HD_INLINE wire::cxi::IdcSmallAmoCmd immediate_atomic(const Destination& to, const AtomicKind& kind,
                                                            std::uint64_t operand) {
  wire::cxi::IdcSmallAmoCmd c{};
  c.set_header(wire::cxi::CmdType::idc, wire::cxi::CmdSize::b32, wire::cxi::DmaOp::atomic);
  c.set_length(sizeof c);
  c.set_dfa(to.dfa);
  c.set_remote_offset(to.remote_offset);
  c.set_atomic_op(kind.op);
  c.set_atomic_type(kind.type);
  c.set_op1_word1(operand);
  return c;
}

// The others: 64 bytes. The result goes to `result` under the LAC that the CSTATE names for writing.
STRAIT_HD_INLINE wire::cxi::IdcAmoCmd immediate_fetching(const Destination& to, const AtomicKind& kind,
                                                         std::uint64_t operand, std::uint64_t compare,
                                                         std::uint64_t result) {
  wire::cxi::IdcAmoCmd c{};
  c.set_header(wire::cxi::CmdType::idc, wire::cxi::CmdSize::b64, wire::cxi::DmaOp::fetching_atomic);
  c.set_length(sizeof c);
  c.set_dfa(to.dfa);
  c.set_remote_offset(to.remote_offset);
  c.set_local_addr(result);
  c.set_atomic_op(kind.op);
  c.set_atomic_type(kind.type);
  c.set_cswap_op(kind.compare);
  c.set_op1_word1(operand);
  c.set_op2_word1(compare);
  return c;
}

// ---- Counters: on a triggered queue -------------------------------------------------------------------------------

STRAIT_HD_INLINE void store_ct(std::uint8_t* at, const wire::cxi::CtCmd& c) {
  store_segment(at, c.words[0], c.words[1]);
  store_segment(at + 16, c.words[2], 0);
}
// The counter is written back now.
STRAIT_HD_INLINE wire::cxi::CtCmd ct_get(std::uint32_t ct) {
  wire::cxi::CtCmd c{};
  c.set_header(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b64, wire::cxi::CtOp::get);
  c.set_ct(ct);
  return c;
}
// Every triggered operation of the counter goes.
STRAIT_HD_INLINE wire::cxi::CtCmd ct_cancel(std::uint32_t ct) {
  wire::cxi::CtCmd c{};
  c.set_header(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b64, wire::cxi::CtOp::cancel);
  c.set_ct(ct);
  return c;
}
STRAIT_HD_INLINE wire::cxi::CtCmd ct_set(std::uint32_t ct, std::uint64_t success, std::uint32_t failure) {
  wire::cxi::CtCmd c{};
  c.set_header(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b64, wire::cxi::CtOp::set);
  c.set_ct(ct);
  c.set_ct_success(success);
  c.set_ct_failure(failure);
  c.set_with_success(true);
  c.set_with_failure(true);
  return c;
}
// It is written back when it reaches the threshold; at once if it has.
STRAIT_HD_INLINE wire::cxi::CtCmd trig_event(std::uint32_t ct, std::uint64_t threshold) {
  wire::cxi::CtCmd c{};
  c.set_header(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b64, wire::cxi::CtOp::trig_event);
  c.set_trig_ct(ct);
  c.set_threshold(threshold);
  return c;
}
// The atomic starts when the counter reaches the threshold: 120 bytes that are given 128.
STRAIT_HD_INLINE void store_trig_dma(std::uint8_t* at, std::uint32_t ct, std::uint64_t threshold,
                                     const wire::cxi::AmoDmaCmd& amo) {
  wire::cxi::CtCmd c{};
  c.set_header(wire::cxi::CmdType::ct, wire::cxi::CmdSize::b128, wire::cxi::CtOp::trig_dma);
  c.set_trig_ct(ct);
  c.set_threshold(threshold);
  store_segment(at, c.words[0], c.words[1]);
  store_segment(at + 16, c.words[2], amo.words[0]);
  for (std::size_t i = 1; i < 11; i += 2) store_segment(at + 24 + i * 8, amo.words[i], amo.words[i + 1]);
  store_segment(at + 112, amo.words[11], 0);
}

}  // namespace strait::device::cxi
