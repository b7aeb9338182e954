// SPDX-License-Identifier: Apache-2.0
// What a put, a get, an atomic, a message and a list entry consist of, as commands. Encoders of the library's own; the
// software device has decoders of its own.
#pragma once

#include <cstdint>

#include "strait/wire/cxi.hpp"

namespace strait::rail::cxi {

namespace w = wire::cxi;

// Where a command goes, and where its outcome is told.
struct Way {
  std::uint32_t dfa = 0;
  std::uint32_t index_ext = 0;
  std::uint32_t initiator = 0;  // who we are: w::match_id
  std::uint32_t event_queue = 0;
};

[[nodiscard]] constexpr Way way_to(std::uint32_t nid, std::uint32_t pid, std::uint32_t pid_bits, std::uint32_t index,
                                   std::uint32_t initiator, std::uint32_t event_queue) {
  return {w::unicast_dfa(nid, w::endpoint_of(pid, pid_bits, index)), w::index_ext_of(index), initiator, event_queue};
}

struct Transfer {
  std::uint64_t iova = 0;  // of the local bytes
  std::uint32_t lac = 0;
  std::uint32_t bytes = 0;
  std::uint64_t remote_offset = 0;  // from the beginning of the list entry
  std::uint64_t match_bits = 0;
  std::uint64_t header_data = 0;
  std::uint64_t user = 0;  // comes back in the event
};

// One event says how it ended: ACK of a put, REPLY of a get. A put's SEND event would only say that the local bytes
// have been read.
[[nodiscard]] constexpr w::FullDmaCmd encode(w::DmaOp op, const Way& way, const Transfer& what) {
  w::FullDmaCmd command{};
  command.set_header(w::CmdType::dma, w::CmdSize::b64, op);
  command.set_event_send_disable(true);
  command.set_dfa(way.dfa);
  command.set_index_ext(way.index_ext);
  command.set_initiator(way.initiator);
  command.set_eq(way.event_queue);
  command.set_lac(what.lac);
  command.set_local_addr(what.iova);
  command.set_request_len(what.bytes);
  command.set_remote_offset(what.remote_offset);
  command.set_match_bits(what.match_bits);
  command.set_header_data(what.header_data);
  command.set_user_ptr(what.user);
  return command;
}
[[nodiscard]] constexpr w::FullDmaCmd encode_put(const Way& way, const Transfer& what) {
  return encode(w::DmaOp::put, way, what);
}
[[nodiscard]] constexpr w::FullDmaCmd encode_get(const Way& way, const Transfer& what) {
  return encode(w::DmaOp::get, way, what);
}

struct Atomic {
  std::uint64_t operand_iova = 0;  // operand 1 is always read from memory
  std::uint32_t operand_lac = 0;
  std::uint64_t result_iova = 0;
  std::uint32_t result_lac = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t user = 0;
  w::AtomicOp op = w::AtomicOp::sum;
  w::AtomicType type = w::AtomicType::uint64;
  std::uint64_t compare = 0;  // of a compare-and-swap: operand 2
};

[[nodiscard]] constexpr w::AmoDmaCmd encode_fetching(const Way& way, const Atomic& what) {
  w::AmoDmaCmd command{};
  command.set_header(w::CmdType::dma, w::CmdSize::b128, w::DmaOp::fetching_atomic);
  command.set_event_send_disable(true);
  command.set_dfa(way.dfa);
  command.set_index_ext(way.index_ext);
  command.set_initiator(way.initiator);
  command.set_eq(way.event_queue);
  command.set_lac(what.operand_lac);
  command.set_local_addr(what.operand_iova);
  command.set_request_len(w::bytes_of(what.type));
  command.set_write_lac(what.result_lac);
  command.set_local_write_addr(what.result_iova);
  command.set_remote_offset(what.remote_offset);
  command.set_match_bits(what.match_bits);
  command.set_user_ptr(what.user);
  command.set_atomic_op(what.op);
  command.set_atomic_type(what.type);
  command.set_cswap_op(w::CswapOp::eq);
  command.set_op2_word1(what.compare);
  return command;
}

// What the immediate messages behind it have in common.
[[nodiscard]] constexpr w::CStateCmd encode_state(const Way& way) {
  w::CStateCmd command{};
  command.set_header(w::CmdType::idc, w::CmdSize::b32, w::DmaOp::cstate);
  command.set_length(w::kIdcMessageHeaderBytes);
  command.set_event_send_disable(true);
  command.set_index_ext(way.index_ext);
  command.set_initiator(way.initiator);
  command.set_eq(way.event_queue);
  return command;
}

// An immediate message: this header with `bytes` of payload behind it, 192 at most.
[[nodiscard]] constexpr w::IdcMsgHeader encode_message(const Way& way, std::uint32_t bytes, std::uint64_t match_bits,
                                                       std::uint64_t header_data, std::uint64_t user, w::CmdSize size) {
  w::IdcMsgHeader command{};
  command.set_header(w::CmdType::idc, size, w::DmaOp::small_message);
  command.set_length(w::kIdcMessageHeaderBytes + bytes);
  command.set_dfa(way.dfa);
  command.set_match_bits(match_bits);
  command.set_header_data(header_data);
  command.set_user_ptr(user);
  return command;
}

struct ListEntry {
  std::uint32_t portal = 0;  // its number
  std::uint32_t buffer_id = 0;
  std::uint32_t flags = 0;  // w::kLe...
  std::uint64_t iova = 0;
  std::uint32_t lac = 0;
  std::uint64_t bytes = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t ignore_bits = 0;
  std::uint32_t match_id = w::kMatchAnyone;
  w::PtlList list = w::PtlList::priority;
};

[[nodiscard]] constexpr w::TargetCmd encode_append(const ListEntry& entry) {
  w::TargetCmd command{};
  command.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::append);
  command.set_ptl_list(entry.list);
  command.set_ptlte_index(entry.portal);
  command.set_flags(entry.flags);
  command.set_buffer_id(entry.buffer_id);
  command.set_lac(entry.lac);
  command.set_start(entry.iova);
  command.set_length(entry.bytes);
  command.set_match_id(entry.match_id);
  command.set_match_bits(entry.match_bits);
  command.set_ignore_bits(entry.ignore_bits);
  return command;
}

[[nodiscard]] constexpr w::TargetCmd encode_unlink(std::uint32_t portal, std::uint32_t buffer_id,
                                                   w::PtlList list = w::PtlList::priority) {
  w::TargetCmd command{};
  command.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::unlink);
  command.set_ptl_list(list);
  command.set_ptlte_index(portal);
  command.set_buffer_id(buffer_id);
  return command;
}

[[nodiscard]] constexpr w::SetStateCmd encode_state_change(std::uint32_t portal, w::PteState state) {
  w::SetStateCmd command{};
  command.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::set_state);
  command.set_ptlte_index(portal);
  command.set_ptlte_state(state);
  return command;
}

[[nodiscard]] constexpr w::CtCmd encode_count(w::CtOp op, std::uint32_t counter) {
  w::CtCmd command{};
  command.set_header(w::CmdType::ct, w::CmdSize::b64, op);
  command.set_ct(counter);
  return command;
}

// Writes `counter` back (and, with an event queue, tells of it) once it has reached `threshold`.
[[nodiscard]] constexpr w::CtCmd encode_trigger_event(std::uint32_t counter, std::uint64_t threshold,
                                                      std::uint32_t event_queue = w::kEqNone) {
  w::CtCmd command = encode_count(w::CtOp::trig_event, 0);
  command.set_trig_ct(counter);
  command.set_threshold(threshold);
  command.set_eq(event_queue);
  return command;
}

}  // namespace strait::rail::cxi
