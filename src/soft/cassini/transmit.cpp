// SPDX-License-Identifier: Apache-2.0
// DMA commands: put, get, rendezvous, atomics. Each is done when the command is; cards call each other.
//
// flush has nothing to do: data is in memory before the answer comes. get_with_local_flag is taken and has no effect:
// no public source says what it would be.
#include "soft/cassini/transmit.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "soft/cassini/atomics.hpp"
#include "soft/cassini/faults.hpp"
#include "soft/cassini/strict.hpp"
#include "soft/cassini/translation.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini {

using wire::DmaOp;
using wire::EventType;
using wire::ReturnCode;

namespace {

template <class Event>
Event initiator_event(std::uint64_t user_ptr, const Answer& answer, EventType type, wire::EventSize size) {
  Event event{};
  event.set_user_ptr(user_ptr);
  event.set_mlength(answer.mlength);
  event.set_ptl_list(answer.list);
  event.set_rendezvous(answer.rendezvous);
  event.set_event_size(size);
  event.set_event_type(type);
  event.set_return_code(answer.code);
  return event;
}

template <class Command>
Command command_at(const std::uint64_t* words) {
  Command command;
  std::memcpy(&command, words, sizeof command);
  return command;
}

template <class Command>
Request request_of(const Command& command) {
  Request request;
  request.restricted = command.restricted();
  request.flush = command.flush();
  request.index_ext = command.index_ext();
  request.remote_offset = command.remote_offset();
  request.length = command.request_len();
  request.use_offset_for_get = command.use_offset_for_get();
  return request;
}

template <class Command>
Request full_request_of(const Command& command) {
  Request request = request_of(command);
  request.initiator = command.initiator();
  request.match_bits = command.match_bits();
  request.header_data = command.header_data();
  return request;
}

// One piece of a long put or get, if the target can take it apart from the rest. True: the command goes on at the next
// look at its queue. False: what is left is one request.
bool send_piece(const Initiator& initiator, const Request& request, std::uint32_t dfa, std::uint32_t lac,
                std::uint64_t address) {
  Cq& cq = initiator.cq;
  // A plan of faults counts requests. A trigger's command has no ring to be looked at again.
  if (!cq.may_wait || cq.faults != nullptr || request.op == DmaOp::rendezvous_put) return false;
  if (request.length - cq.moved.bytes <= kBytesPerPiece) return false;
  Request piece = request;
  piece.piece = true;
  piece.left = request.length - cq.moved.bytes;
  piece.length = kBytesPerPiece;
  piece.moved = cq.moved;
  piece.remote_offset += cq.moved.bytes;
  const bool get = request.op == DmaOp::get;
  const std::uint64_t from = address + cq.moved.bytes;
  if (translate(*cq.lni, lac, from, piece.length, get, piece.local) != ReturnCode::ok) return false;
  const Answer answer = initiator.send(piece, dfa);
  if (answer.code != ReturnCode::ok) return false;
  // Another entry than before: its owner has changed the list. Then all of it goes where the whole request does.
  if (cq.moved.bytes != 0 && !cq.moved.begins_at(answer.moved)) {
    cq.moved = {};
    return false;
  }
  cq.moved = answer.moved;
  cq.waits = true;
  initiator.card.tally.bytes.add_owner_thread(piece.length);
  return true;
}

// Puts and gets of every size: from or to this client's memory.
void transfer(const Initiator& initiator, Request& request, std::uint32_t dfa, std::uint32_t lac,
              std::uint64_t address) {
  const bool get = request.op == DmaOp::get;
  const EventType type = get ? EventType::reply : EventType::ack;
  // Of a rendezvous only the first part leaves by itself; the rest is fetched through a list entry.
  const std::uint32_t here =
      request.op == DmaOp::rendezvous_put ? std::min(request.eager_length, request.length) : request.length;
  // The command is read anew for each piece, and may not be what it was: that is its client's affair.
  if (initiator.cq.may_wait && initiator.cq.moved.bytes >= request.length) initiator.cq.moved = {};
  if (send_piece(initiator, request, dfa, lac, address)) return;
  if (initiator.cq.may_wait) request.moved = std::exchange(initiator.cq.moved, {});
  if (here != 0) {
    const ReturnCode code = initiator.reach(lac, address, here, get, request.local);
    if (code != ReturnCode::ok) return initiator.refuse(code, type);
  }
  Tally& tally = initiator.card.tally;
  (get ? tally.gets : tally.puts).add_owner_thread();
  const Answer answer = initiator.send(request, dfa);
  tally.bytes.add_owner_thread(answer.mlength - std::min<std::uint64_t>(answer.mlength, request.moved.bytes));
  initiator.finish(answer, type, true);
}

ReturnCode full_command(Card& card, Cq& cq, const std::uint64_t* words, DmaOp op) {
  const auto command = command_at<wire::FullDmaCmd>(words);
  Initiator initiator{.card = card, .cq = cq, .flags = command.flags(), .user_ptr = command.user_ptr()};
  if (const ReturnCode code = initiator.open(command.eq(), command.ct()); code != ReturnCode::ok) return code;
  Request request = full_request_of(command);
  request.op = op;
  request.eager_length = command.eager_length();
  request.rendezvous_id = static_cast<std::uint8_t>(command.rendezvous_id());
  transfer(initiator, request, command.dfa(), command.lac(), command.local_addr());
  return ReturnCode::ok;
}

ReturnCode nomatch_command(Card& card, Cq& cq, const std::uint64_t* words, DmaOp op) {
  const auto command = command_at<wire::NomatchDmaCmd>(words);
  Initiator initiator{.card = card, .cq = cq, .flags = command.flags(), .errors_only = true};
  if (const ReturnCode code = initiator.open(command.eq(), command.ct()); code != ReturnCode::ok) return code;
  Request request = request_of(command);
  request.op = op;
  request.restricted = true;
  request.no_match_command = true;
  transfer(initiator, request, command.dfa(), command.lac(), command.local_addr());
  return ReturnCode::ok;
}

ReturnCode atomic_command(Card& card, Cq& cq, const std::uint64_t* words, DmaOp op) {
  const auto command = command_at<wire::AmoDmaCmd>(words);
  Initiator initiator{.card = card, .cq = cq, .flags = command.flags(), .user_ptr = command.user_ptr()};
  if (const ReturnCode code = initiator.open(command.eq(), command.ct()); code != ReturnCode::ok) return code;
  const EventType type = op == DmaOp::atomic ? EventType::ack : EventType::reply;
  Request request = full_request_of(command);
  request.op = op;
  request.atomic_op = command.atomic_op();
  request.atomic_type = command.atomic_type();
  request.cswap_op = command.cswap_op();
  request.operand2[0] = command.op2_word1();
  request.operand2[1] = command.op2_word2();
  const std::uint32_t bytes = wire::bytes_of(request.atomic_type);
  if (bytes != 0 && request.length != bytes) {
    initiator.refuse(ReturnCode::amo_length_error, type);
    return ReturnCode::ok;
  }
  if (bytes != 0) {
    Extents operand;
    ReturnCode code = initiator.reach(command.lac(), command.local_addr(), bytes, false, operand);
    if (code == ReturnCode::ok) code = read(operand, request.operand1, bytes);
    if (code != ReturnCode::ok) {
      initiator.refuse(code, type);
      return ReturnCode::ok;
    }
  }
  send_atomic(initiator, request, command.dfa(), command.write_lac(), command.local_write_addr());
  return ReturnCode::ok;
}

}  // namespace

ReturnCode Initiator::open(std::uint32_t eq_number, std::uint32_t ct_number) {
  if (eq_number != wire::kEqNone && (eq = find_eq(card, cq, eq_number)) == nullptr) return ReturnCode::invalid_event;
  const bool counts = (flags & (wire::kEventCtSend | wire::kEventCtAck | wire::kEventCtReply)) != 0;
  if (!counts || ct_number == wire::kCtNone) return ReturnCode::ok;
  ct = find_ct(card, cq, ct_number);
  return ct != nullptr ? ReturnCode::ok : ReturnCode::invalid_event;
}

ReturnCode Initiator::reach(std::uint32_t lac, std::uint64_t address, std::uint64_t bytes, bool write,
                            Extents& out) const {
  const ReturnCode code = translate(*cq.lni, lac, address, bytes, write, out);
  if (code == ReturnCode::no_translation && cq.strict != nullptr) {
    cq.strict->not_translated(*cq.lni, lac, address, bytes, Thing::transmit_queue, cq.id, cq.read_slot);
  }
  return code;
}

Answer Initiator::send(Request& request, std::uint32_t dfa) const {
  if (wire::is_multicast(dfa)) return {.code = ReturnCode::invalid_dfa_format};  // nothing would multiply it
  if (cq.faults != nullptr) {
    const ReturnCode code = cq.faults->on_request(cq);
    if (code != ReturnCode::ok) return {.code = code};
  }
  Card* const target = card.fabric().by_nid(wire::nid_of_dfa(dfa));
  if (target == nullptr) return {.code = ReturnCode::undeliverable};
  request.source_nid = card.settings().nid;
  request.vni = cq.lni->cps[cq.lcid]->vni;
  request.endpoint = wire::endpoint_of_dfa(dfa);
  Answer answer = target->receive(request);
  if (request.piece) return answer;
  Tally& tally = target->tally;
  if (request.flush) tally.flushes.add_owner_thread();
  if (request.restricted) tally.restricted.add_owner_thread();
  if (answer.code == ReturnCode::ok) tally.landed.add_owner_thread();
  return answer;
}

void Initiator::tell(const Answer& answer, EventType type) const {
  if (eq == nullptr) return;
  if ((eq->flags & wire::kEqInitLong) == 0) {
    const auto event = initiator_event<wire::InitiatorShort>(user_ptr, answer, type, wire::EventSize::b16);
    card.post(*eq, &event, sizeof event);
    return;
  }
  auto event = initiator_event<wire::InitiatorLong>(user_ptr, answer, type, wire::EventSize::b32);
  const auto now = static_cast<std::uint64_t>(sys::wall_ns());
  event.set_timestamp_ns(static_cast<std::uint32_t>(now % 1'000'000'000));
  event.set_timestamp_sec(now / 1'000'000'000);
  card.post(*eq, &event, sizeof event);
}

void Initiator::finish(const Answer& answer, EventType type, bool left) const {
  if (answer.code == ReturnCode::resource_busy && cq.may_wait) {
    cq.waits = true;
    return;
  }
  const bool ok = answer.code == ReturnCode::ok;
  const bool quiet = errors_only || (flags & wire::kEventSuccessDisable) != 0;
  const std::uint64_t step = (flags & wire::kEventCtBytes) != 0 ? answer.mlength : 1;

  // The buffer is free again, whatever became of the request: sent, and told so.
  if (left && type != EventType::reply) {
    if (!quiet && (flags & wire::kEventSendDisable) == 0) {
      Answer sent;
      sent.mlength = answer.mlength;
      tell(sent, EventType::send);
    }
    if (ct != nullptr && (flags & wire::kEventCtSend) != 0) card.count(*ct, step, 0);
  }

  const std::uint32_t counts = type == EventType::reply ? wire::kEventCtReply : wire::kEventCtAck;
  if (!ok || !quiet) tell(answer, type);
  if (ct == nullptr) return;
  if (ok) {
    if ((flags & counts) != 0) card.count(*ct, step, 0);
  } else if ((flags & counts) != 0 || !left) {
    card.count(*ct, 0, 1);
  }
}

void send_atomic(const Initiator& initiator, Request& request, std::uint32_t dfa, std::uint32_t lac,
                 std::uint64_t address) {
  const bool fetching = request.op == DmaOp::fetching_atomic;
  const EventType type = fetching ? EventType::reply : EventType::ack;
  AtomicCommand atomic{.op = request.atomic_op, .type = request.atomic_type, .cswap = request.cswap_op};
  if (!has_atomic(atomic)) return initiator.refuse(ReturnCode::amo_inval_op_error, type);
  request.length = wire::bytes_of(request.atomic_type);
  if (fetching) {
    const ReturnCode code = initiator.reach(lac, address, request.length, true, request.local);
    if (code != ReturnCode::ok) return initiator.refuse(code, type);
  }
  initiator.card.tally.atomics.add_owner_thread();
  Answer answer = initiator.send(request, dfa);
  if (fetching && answer.code == ReturnCode::ok) answer.code = write(request.local, answer.fetched, request.length);
  initiator.finish(answer, type, true);
}

ReturnCode dma_command(Card& card, Cq& cq, const std::uint64_t* words) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  const auto op = static_cast<DmaOp>(wire::opcode_of_header(header));
  const wire::CmdSize size = wire::size_of_header(header);
  // A trigger fires long after its queue's profile was looked at; it may be gone.
  if (!cq.lni->cps[cq.lcid]) return ReturnCode::cmd_invalid_arg;
  if (cq.faults != nullptr && cq.faults->put_aside(cq, words)) return ReturnCode::ok;
  switch (op) {
    case DmaOp::noop:
    case DmaOp::close:  // connections are the hardware's; there are none to close here
    case DmaOp::clear: return ReturnCode::ok;
    case DmaOp::put:
    case DmaOp::get:
    case DmaOp::rendezvous_put:
      return size == wire::CmdSize::b64 ? full_command(card, cq, words, op) : ReturnCode::cmd_invalid_arg;
    case DmaOp::nomatch_put:
    case DmaOp::nomatch_get:
      return size == wire::CmdSize::b32
                 ? nomatch_command(card, cq, words, op == DmaOp::nomatch_put ? DmaOp::put : DmaOp::get)
                 : ReturnCode::cmd_invalid_arg;
    case DmaOp::atomic:
    case DmaOp::fetching_atomic:
      return size == wire::CmdSize::b128 ? atomic_command(card, cq, words, op) : ReturnCode::cmd_invalid_arg;
    // Neither a reduction tree nor an Ethernet port is configured.
    case DmaOp::reduction: return ReturnCode::hrp_config_error;
    default: return ReturnCode::illegal_op;
  }
}

}  // namespace strait::soft::cassini
