// SPDX-License-Identifier: Apache-2.0
// Immediate commands: the payload, or the operands, lie in the command. Everything else is in the CSTATE before it.
#include <cstring>

#include "soft/cassini/translation.hpp"
#include "soft/cassini/transmit.hpp"

namespace strait::soft::cassini {

using wire::DmaOp;
using wire::EventType;
using wire::ReturnCode;

namespace {

template <class Command>
Command immediate_at(const std::uint64_t* words) {
  Command command;
  std::memcpy(&command, words, sizeof command);
  return command;
}

ReturnCode keep_state(Cq& cq, const std::uint64_t* words) {
  const auto state = immediate_at<wire::CStateCmd>(words);
  if (state.cmd_size() != wire::CmdSize::b32 || state.length() != sizeof state) return ReturnCode::cmd_invalid_arg;
  cq.state = state;
  cq.has_state = true;
  return ReturnCode::ok;
}

// A queue that never met a CSTATE has one of zeros: no events, nothing counted.
Request request_of_state(const wire::CStateCmd& state, DmaOp op) {
  Request request;
  request.op = op;
  request.restricted = state.restricted();
  request.flush = state.flush();
  request.index_ext = state.index_ext();
  request.initiator = state.initiator();
  return request;
}

void send_payload(const Initiator& initiator, Request& request, std::uint32_t dfa, const void* payload,
                  std::uint32_t bytes) {
  request.length = bytes;
  add_plain(request.local, payload, bytes);
  Tally& tally = initiator.card.tally;
  tally.puts.add_owner_thread();
  const Answer answer = initiator.send(request, dfa);
  tally.bytes.add_owner_thread(answer.mlength);
  initiator.finish(answer, EventType::ack, true);
}

ReturnCode immediate_put(Initiator& initiator, const std::uint64_t* words) {
  const auto header = immediate_at<wire::IdcHeader>(words);
  const wire::CStateCmd& state = initiator.cq.state;
  const std::uint32_t most = state.restricted() ? wire::kMaxIdcPayloadRestricted : wire::kMaxIdcPayload;
  if (header.length() < sizeof header || header.length() > wire::bytes_of(header.cmd_size()) ||
      header.length() - sizeof header > most) {
    return ReturnCode::cmd_invalid_arg;
  }
  Request request = request_of_state(state, DmaOp::put);
  request.remote_offset = header.remote_offset();
  send_payload(initiator, request, header.dfa(), words + sizeof header / 8,
               header.length() - static_cast<std::uint32_t>(sizeof header));
  return ReturnCode::ok;
}

ReturnCode small_message(Initiator& initiator, const std::uint64_t* words) {
  const auto header = immediate_at<wire::IdcMsgHeader>(words);
  if (header.cmd_size() == wire::CmdSize::b32 || header.length() < sizeof header ||
      header.length() > wire::bytes_of(header.cmd_size()) || header.length() - sizeof header > wire::kMaxIdcPayload) {
    return ReturnCode::cmd_invalid_arg;
  }
  initiator.user_ptr = header.user_ptr();
  Request request = request_of_state(initiator.cq.state, DmaOp::small_message);
  request.match_bits = header.match_bits();
  request.header_data = header.header_data();
  send_payload(initiator, request, header.dfa(), words + sizeof header / 8,
               header.length() - static_cast<std::uint32_t>(sizeof header));
  return ReturnCode::ok;
}

// The small form has no room for a result, a second operand or 16 bytes.
ReturnCode small_atomic(Initiator& initiator, const std::uint64_t* words) {
  const auto command = immediate_at<wire::IdcSmallAmoCmd>(words);
  const bool needs_more = command.atomic_op() == wire::AtomicOp::cswap || command.atomic_op() == wire::AtomicOp::axor ||
                          wire::bytes_of(command.atomic_type()) > 8;
  if (command.length() != sizeof command || needs_more) return ReturnCode::cmd_invalid_arg;
  Request request = request_of_state(initiator.cq.state, DmaOp::atomic);
  request.remote_offset = command.remote_offset();
  request.atomic_op = command.atomic_op();
  request.atomic_type = command.atomic_type();
  request.operand1[0] = command.op1_word1();
  send_atomic(initiator, request, command.dfa(), 0, 0);
  return ReturnCode::ok;
}

ReturnCode large_atomic(Initiator& initiator, const std::uint64_t* words, DmaOp op) {
  const auto command = immediate_at<wire::IdcAmoCmd>(words);
  if (command.length() != sizeof command) return ReturnCode::cmd_invalid_arg;
  Request request = request_of_state(initiator.cq.state, op);
  request.remote_offset = command.remote_offset();
  request.atomic_op = command.atomic_op();
  request.atomic_type = command.atomic_type();
  request.cswap_op = command.cswap_op();
  request.operand1[0] = command.op1_word1();
  request.operand1[1] = command.op1_word2();
  request.operand2[0] = command.op2_word1();
  request.operand2[1] = command.op2_word2();
  send_atomic(initiator, request, command.dfa(), initiator.cq.state.write_lac(), command.local_addr());
  return ReturnCode::ok;
}

}  // namespace

ReturnCode immediate_command(Card& card, Cq& cq, const std::uint64_t* words) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  const auto op = static_cast<DmaOp>(wire::opcode_of_header(header));
  const wire::CmdSize size = wire::size_of_header(header);
  if (op == DmaOp::noop) return ReturnCode::ok;
  if (op == DmaOp::cstate) return keep_state(cq, words);
  if (op == DmaOp::reduction) return ReturnCode::hrp_config_error;
  if (op != DmaOp::put && op != DmaOp::atomic && op != DmaOp::fetching_atomic && op != DmaOp::small_message) {
    return ReturnCode::illegal_op;
  }
  Initiator initiator{.card = card, .cq = cq, .flags = cq.state.flags(), .user_ptr = cq.state.user_ptr()};
  if (const ReturnCode code = initiator.open(cq.state.eq(), cq.state.ct()); code != ReturnCode::ok) return code;
  if (op == DmaOp::put) return immediate_put(initiator, words);
  if (op == DmaOp::small_message) return small_message(initiator, words);
  if (size == wire::CmdSize::b32 && op == DmaOp::atomic) return small_atomic(initiator, words);
  return size == wire::CmdSize::b64 ? large_atomic(initiator, words, op) : ReturnCode::cmd_invalid_arg;
}

}  // namespace strait::soft::cassini
