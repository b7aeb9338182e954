// SPDX-License-Identifier: Apache-2.0
// The requester on packets: work requests are cut into packets, acknowledgements and responses become completions, and
// what was lost is sent again from the oldest packet nobody has acknowledged (go-back-N).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "soft/nic/engine.hpp"
#include "soft/nic/packets.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;
namespace r = wire::roce;

namespace {

constexpr std::uint32_t kLocalWrite = STRAIT_NIC_LOCAL_WRITE;
constexpr std::uint32_t kMostPsns = 1u << 22;  // on their way at once: well inside the half circle that can be compared
constexpr std::uint32_t kSmallestWindow = 4;
constexpr std::uint32_t kTimedEvery = 8;
constexpr std::uint32_t kLargestWindow = 1024;

bool is_read(m::Opcode opcode) {
  return opcode == m::Opcode::rdma_read;
}
bool is_atomic(m::Opcode opcode) {
  return opcode == m::Opcode::atomic_cs || opcode == m::Opcode::atomic_fa;
}
bool is_write(m::Opcode opcode) {
  return opcode == m::Opcode::rdma_write || opcode == m::Opcode::rdma_write_imm;
}

// The opcode of one packet of a send or write, counted from its transport's first.
r::Opcode payload_opcode(const SendWork& work, r::Transport transport, bool first, bool last) {
  const bool imm = work.opcode == m::Opcode::send_imm || work.opcode == m::Opcode::rdma_write_imm;
  const bool inval = work.opcode == m::Opcode::send_inval;
  unsigned code = 0;
  if (last && inval) {
    return first ? r::Opcode::rc_send_only_inval : r::Opcode::rc_send_last_inval;
  } else if (first && last) {
    code = imm ? 5 : 4;
  } else if (last) {
    code = imm ? 3 : 2;
  } else {
    code = first ? 0 : 1;
  }
  if (is_write(work.opcode)) code += 6;
  return r::on_transport(static_cast<r::Opcode>(code), transport);
}

m::Syndrome syndrome_of_nak(std::uint8_t syndrome) {
  switch (syndrome) {
    case r::kSyndromeNakInvalidRequest: return m::Syndrome::remote_invalid_request;
    case r::kSyndromeNakRemoteAccess: return m::Syndrome::remote_access;
    default: return m::Syndrome::remote_operation;
  }
}

}  // namespace

int Packets::transmit(QueuePair& qp, int budget) {
  PacketState& s = *qp.packets;
  int sent = 0;
  while (sent < budget && qp.sending() && s.resume_at_ns == 0) {
    if (s.cursor_seq == qp.seq_next && !start_next(qp)) break;
    if (!qp.sending()) break;
    const Sent& record = qp.sent_at(s.cursor_seq);
    const PsnRange& range = s.range_at(s.cursor_seq);
    const bool asks = is_read(record.opcode) || is_atomic(record.opcode);
    if (record.fault != m::Syndrome::none) break;
    if (range.count == 0 || (asks && !record.awaits_answer)) {
      ++s.cursor_seq;
      s.cursor_packet = 0;
      continue;
    }
    const std::uint32_t psn = r::psn_add(range.first, s.cursor_packet);
    const auto ahead = static_cast<std::uint32_t>(r::psn_diff(psn, s.una));
    if (!asks && s.path.reliable() && ahead >= s.window) break;
    if (!send_one(qp) || !qp.sending() || record.fault != m::Syndrome::none) break;
    ++sent;
    const std::uint32_t next = asks ? r::psn_add(range.first, range.count) : r::psn_add(psn, 1);
    const bool again = r::psn_diff(psn, s.sent_end) < 0;
    counts_.packets_resent += again ? 1 : 0;
    time_packet(s, psn, again);
    if (r::psn_diff(next, s.sent_end) > 0) s.sent_end = next;
    ++s.cursor_packet;
    if (asks || s.cursor_packet >= range.count) {
      ++s.cursor_seq;
      s.cursor_packet = 0;
      // Nobody acknowledges these: they are done when they have left.
      if (!s.path.reliable()) acknowledge(qp, s.sent_end);
    }
  }
  return sent;
}

// The next work request gets its packet numbers. False: there is none, or it has to wait.
bool Packets::start_next(QueuePair& qp) {
  PacketState& s = *qp.packets;
  if (qp.state != QpState::ready || qp.stopped || qp.next == qp.producer || qp.seq_next - qp.seq_done >= qp.sent.size())
    return false;
  if (engine_.leaves_now()) return false;
  SendWork& work = work_;
  work_of_ = nullptr;
  const bool datagram = s.path.transport == r::Transport::ud;
  DecodeFault fault = decode_work(qp, qp.next, work);
  const bool read = is_read(work.opcode);
  const bool atomic = is_atomic(work.opcode);
  const bool local = is_local(work.opcode);
  const std::uint32_t count = local ? 0 : atomic ? 1 : packets_of(work.total_bytes, s.path.pmtu_bytes);
  if (!fault) {
    const bool masked = work.opcode == m::Opcode::atomic_masked_cs || work.opcode == m::Opcode::atomic_masked_fa;
    const bool reliable = s.path.reliable();
    if (masked) {
      fault = {m::Syndrome::local_qp_operation, "masked atomics have no form in RoCEv2 packets", 0};
    } else if (!reliable && (read || atomic || work.opcode == m::Opcode::send_inval)) {
      fault = {m::Syndrome::local_qp_operation, "an unreliable queue pair takes only sends and writes", 0};
    } else if (datagram && work.total_bytes > s.path.pmtu_bytes) {
      fault = {m::Syndrome::local_length, "a datagram longer than the path MTU", 0};
    } else if ((read || atomic) && s.path.max_reads_out == 0) {
      fault = {m::Syndrome::local_qp_operation, "the connection allows no reads and atomics", 0};
    } else {
      if (work.fence && qp.answers_awaited != 0) return false;
      if ((read || atomic) && qp.answers_awaited >= s.path.max_reads_out) return false;
      const auto under_way = static_cast<std::uint32_t>(r::psn_diff(s.psn_end, s.una));
      if (under_way != 0 && under_way + count > kMostPsns) return false;
      if (engine_.fails_on_purpose(qp, fault)) {
      } else if (work.opcode == m::Opcode::umr) {
        (void)engine_.change_key(qp, work.key, fault);
      } else {
        (void)engine_.check_pieces(qp, work, read || atomic ? kLocalWrite : 0, fault);
      }
    }
  }
  const std::uint64_t seq = qp.seq_next;
  if (fault) {
    engine_.push_fault(qp, work, fault);
    s.range_at(seq) = {s.psn_end, 0, 0};
    engine_.advance(qp);
    return false;
  }
  if (engine_.strict_) engine_.strict_->started(qp, qp.next, work, engine_.memory_);
  const std::uint32_t bytes = read ? work.total_bytes : atomic ? 8 : 0;
  qp.sent_at(seq) = {qp.next,
                     local ? qp.msn_next : qp.msn_next + 1,
                     bytes,
                     work.opcode,
                     work.signaled || qp.all_signaled,
                     read || atomic,
                     0,
                     m::Syndrome::none,
                     0};
  s.range_at(seq) = {s.psn_end, count, 0};
  s.psn_end = r::psn_add(s.psn_end, count);
  work_of_ = &qp;
  work_seq_ = seq;
  work_checked_ = true;
  if (!local) ++qp.msn_next;
  if (read || atomic) ++qp.answers_awaited;
  qp.next += work.blocks;
  ++qp.seq_next;
  ++engine_.counts_.work_requests;
  ++engine_.begun_;
  if (local) engine_.advance(qp);
  return true;
}

bool Packets::decode_at(const QueuePair& qp, std::uint64_t seq) {
  if (work_of_ == &qp && work_seq_ == seq) return true;
  work_of_ = nullptr;
  work_checked_ = false;
  if (decode_work(qp, qp.sent_at(seq).index, work_)) return false;
  work_of_ = &qp;
  work_seq_ = seq;
  return true;
}

// The packet at the cursor. False: the port takes no more now.
bool Packets::send_one(QueuePair& qp) {
  PacketState& s = *qp.packets;
  Sent& record = qp.sent_at(s.cursor_seq);
  const PsnRange& range = s.range_at(s.cursor_seq);
  DecodeFault fault;
  // Looked at for every packet but one that start_next has just looked at: a ring that was overwritten or a key that
  // was revoked meanwhile ends the message here.
  if (!decode_at(qp, s.cursor_seq))
    fault = {m::Syndrome::local_qp_operation, "the work request changed", kVendorMalformed};
  const SendWork& work = work_;
  if (!fault && !std::exchange(work_checked_, false))
    (void)engine_.check_pieces(qp, work, record.awaits_answer ? kLocalWrite : 0, fault);
  if (fault) {
    fail_at(qp, range.first, fault.syndrome, fault.vendor);
    return true;
  }
  if (s.path.transport == r::Transport::ud) return send_datagram(qp, work, range.first);

  roce::Headers headers = reply_headers(qp, r::Opcode::rc_send_only, r::psn_add(range.first, s.cursor_packet));
  std::uint32_t offset = 0;
  std::uint32_t n = 0;
  if (is_read(record.opcode)) {
    // After a loss only what has not arrived is asked for.
    headers.opcode = r::Opcode::rc_read_request;
    headers.psn = r::psn_add(range.first, range.landed);
    const std::uint32_t skip = range.landed * s.path.pmtu_bytes;
    headers.va = work.raddr + skip;
    headers.dma_length = work.total_bytes - skip;
    headers.rkey = work.rkey;
    headers.ack_req = true;
  } else if (is_atomic(record.opcode)) {
    headers.opcode = work.atomic.swap ? r::Opcode::rc_compare_swap : r::Opcode::rc_fetch_add;
    headers.va = work.raddr;
    headers.rkey = work.rkey;
    headers.swap_or_add = work.atomic.operand;
    headers.compare = work.atomic.swap ? work.atomic.compare : 0;
    headers.ack_req = true;
  } else {
    offset = s.cursor_packet * s.path.pmtu_bytes;
    n = std::min(work.total_bytes - offset, s.path.pmtu_bytes);
    const bool last = offset + n == work.total_bytes;
    headers.opcode = payload_opcode(work, s.path.transport, s.cursor_packet == 0, last);
    headers.va = work.raddr;
    headers.rkey = work.rkey;
    headers.dma_length = work.total_bytes;
    headers.imm_raw = work.imm_raw;
    headers.inval_rkey = wire::be32::from_raw(work.imm_raw).value();
    headers.pad = r::pad_of(n);
    const bool event = work.opcode != m::Opcode::rdma_write;
    headers.solicited = last && work.solicited && event;
    headers.ack_req = s.path.reliable() && (last || s.cursor_packet % std::max(1u, s.window / 4) == s.window / 4 - 1);
  }
  headers.opcode = r::on_transport(headers.opcode, s.path.transport);
  headers.xrc_srqn = work.xrc_srqn;
  std::byte* const out = open_packet(s, n);
  if (out == nullptr) return false;
  about_wqe_ = record.index;
  std::size_t bytes = roce::write_headers(headers, out);
  if (n != 0) {
    if (!engine_.gather(qp, work, offset, out + bytes, n)) {
      fail_at(qp, range.first, engine_.unreadable(work), 0);
      return true;
    }
    bytes += n;
    std::memset(out + bytes, 0, headers.pad);
    bytes += headers.pad;
  }
  close_packet(qp, out, bytes + r::kIcrcBytes);
  return true;
}

// The cursor goes to packet `psn`, which is under way or the next one to send.
void Packets::seek(QueuePair& qp, std::uint32_t psn) {
  PacketState& s = *qp.packets;
  for (std::uint64_t seq = qp.seq_done; seq != qp.seq_next; ++seq) {
    const PsnRange& range = s.range_at(seq);
    const std::int32_t into = r::psn_diff(psn, range.first);
    if (range.count == 0 || into >= static_cast<std::int32_t>(range.count)) continue;
    s.cursor_seq = seq;
    const m::Opcode opcode = qp.sent_at(seq).opcode;
    s.cursor_packet = into <= 0 || is_read(opcode) || is_atomic(opcode) ? 0 : static_cast<std::uint32_t>(into);
    return;
  }
  s.cursor_seq = qp.seq_next;
  s.cursor_packet = 0;
}

// The peer has executed everything before `end_psn`.
void Packets::acknowledge(QueuePair& qp, std::uint32_t end_psn) {
  PacketState& s = *qp.packets;
  if (r::psn_diff(end_psn, s.una) <= 0 || r::psn_diff(end_psn, s.sent_end) > 0) return;  // old news, or never sent
  std::uint32_t reached = end_psn;
  bool response_lost = false;
  for (std::uint64_t seq = qp.seq_done; seq != qp.seq_next; ++seq) {
    const PsnRange& range = s.range_at(seq);
    const Sent& record = qp.sent_at(seq);
    if (record.fault != m::Syndrome::none) break;
    if (record.awaits_answer) {
      // Acknowledged beyond a response that never came. Only the response itself moves a read on: had it been
      // acknowledged up to its middle, nothing could answer it any more.
      const std::uint32_t answered = r::psn_add(range.first, range.landed);
      response_lost = r::psn_diff(end_psn, answered) > 0;
      if (response_lost) reached = answered;
      break;
    }
    if (r::psn_diff(r::psn_add(range.first, range.count), end_psn) > 0) break;
    qp.msn_acked = record.msn_after;
  }
  if (r::psn_diff(reached, s.una) > 0) {
    s.window_credit += static_cast<std::uint32_t>(r::psn_diff(reached, s.una));
    if (s.window_credit >= s.window) {
      s.window_credit = 0;
      s.window = std::min(s.window + 1, kLargestWindow);
    }
    s.una = reached;
    if (s.una == s.sent_end) answered(s);
    s.retries_used = 0;
    s.rnr_used = 0;
    s.retrying = false;
    s.resend_at_ns = 0;
    if (s.timed_at_ns != 0 && r::psn_diff(reached, s.timed_psn) > 0) measure_round_trip(s);
  }
  const std::uint64_t before = qp.seq_done;
  engine_.advance(qp);
  if (!qp.sending()) return;
  const bool behind = s.cursor_seq - before < qp.seq_done - before;
  const bool inside = s.cursor_seq == qp.seq_done && s.cursor_seq != qp.seq_next &&
                      r::psn_diff(r::psn_add(s.range_at(s.cursor_seq).first, s.cursor_packet), s.una) < 0;
  if (response_lost) {
    if (!s.retrying) retry(qp, reached);
  } else if (behind || inside) {
    seek(qp, s.una);
  }
}

// Something before `psn` arrived and `psn` did not. One sequence of retries at a time: until there is progress, further
// signs of the same loss are not counted again, the timer is.
void Packets::retry(QueuePair& qp, std::uint32_t psn) {
  PacketState& s = *qp.packets;
  if (++s.retries_used > s.path.retries) {
    engine_.fail_oldest(qp, m::Syndrome::transport_retry_exceeded, kVendorNoAnswer);
    return;
  }
  s.retrying = true;
  slow_down(s);
  seek(qp, psn);
  list(qp);
}

// One packet at a time is timed, and of a connection that is known not every one: reading the clock costs more than
// most of what is done for a packet. An acknowledgement of what was sent twice does not say which of the two it means;
// until one does, the resend timer stays as long as its last doublings made it (Karn's rule).
void Packets::time_packet(PacketState& state, std::uint32_t psn, bool again) {
  if (again) {
    state.timed_at_ns = 0;
  } else if (state.timed_at_ns == 0 && (state.round_trip_ns == 0 || psn % kTimedEvery == 0)) {
    state.timed_psn = psn;
    state.timed_at_ns = sys::now_ns();
  }
}

// A peer that takes longer than the shortest resend timer must not be sent everything twice.
void Packets::measure_round_trip(PacketState& state) {
  const std::int64_t sample = sys::now_ns() - state.timed_at_ns;
  state.timed_at_ns = 0;
  if (state.round_trip_ns == 0) {
    state.round_trip_ns = sample;
    state.round_trip_varies_ns = sample / 2;
  } else {
    const std::int64_t off = sample - state.round_trip_ns;
    state.round_trip_varies_ns += (std::abs(off) - state.round_trip_varies_ns) / 4;
    state.round_trip_ns += off / 8;
  }
  state.resend_after_ns =
      std::clamp(state.round_trip_ns + 4 * state.round_trip_varies_ns, kFirstResendNs, kLongestResendNs);
}

void Packets::slow_down(PacketState& state) {
  state.window = std::max(kSmallestWindow, state.window / 2);
  state.window_credit = 0;
}

void Packets::on_ack(QueuePair& qp, const roce::Packet& packet) {
  if (!r::is_ack(packet.syndrome)) return on_nak(qp, packet);
  ++counts_.acks_received;
  acknowledge(qp, r::psn_add(packet.psn, 1));
}

void Packets::on_nak(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  if (r::psn_diff(packet.psn, s.una) < 0 || r::psn_diff(packet.psn, s.sent_end) >= 0)
    return drop(roce::Drop::unexpected_response);
  acknowledge(qp, packet.psn);
  if (!qp.sending()) return;
  if (r::is_rnr(packet.syndrome)) {
    ++counts_.rnr_received;
    if (s.resume_at_ns != 0) return;
    if (s.path.rnr_retries != 7 && ++s.rnr_used > s.path.rnr_retries) {
      fail_at(qp, packet.psn, m::Syndrome::rnr_retry_exceeded, 0);
      return;
    }
    seek(qp, packet.psn);
    s.resume_at_ns = sys::now_ns() + static_cast<std::int64_t>(r::rnr_timer_ns(packet.syndrome & 0x1f));
    return;
  }
  ++counts_.naks_received;
  if (packet.syndrome == r::kSyndromeNakSequence) {
    // After "receiver not ready" what was sent behind it is out of sequence, and it all goes again anyway.
    if (!s.retrying && s.resume_at_ns == 0) retry(qp, packet.psn);
    return;
  }
  fail_at(qp, packet.psn, syndrome_of_nak(packet.syndrome), 0);
}

// A read response or the answer to an atomic. They come in order; one that does not is somebody's loss.
void Packets::on_response(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  std::uint64_t seq = qp.seq_done;
  while (seq != qp.seq_next && !qp.sent_at(seq).awaits_answer) ++seq;
  if (seq == qp.seq_next || r::psn_diff(packet.psn, s.una) < 0 || r::psn_diff(packet.psn, s.sent_end) >= 0)
    return drop(roce::Drop::unexpected_response);
  Sent& record = qp.sent_at(seq);
  PsnRange& range = s.range_at(seq);
  const std::uint32_t expected = r::psn_add(range.first, range.landed);
  const std::int32_t off = r::psn_diff(packet.psn, expected);
  if (off != 0) {
    drop(roce::Drop::unexpected_response);
    if (off > 0 && !s.retrying) retry(qp, expected);
    return;
  }
  const r::Shape& shape = r::shape_of(packet.opcode);
  if (is_read(record.opcode) != (shape.kind == r::Kind::read_response)) return drop(roce::Drop::unexpected_response);
  acknowledge(qp, range.first);  // everything before it was executed
  if (!qp.sending()) return;
  bool landed = true;
  if (shape.kind == r::Kind::atomic_ack) {
    // The result buffer gets the value in this host's byte order, as hardware writes it.
    std::uint64_t original = packet.original;
    std::byte bytes[8];
    std::memcpy(bytes, &original, sizeof bytes);
    landed = engine_.land_answer(qp, record, 0, bytes, sizeof bytes);
  } else {
    const std::uint32_t offset = range.landed * s.path.pmtu_bytes;
    const std::uint32_t n = std::min(record.bytes - offset, s.path.pmtu_bytes);
    // A response of the wrong size belongs to no request of ours.
    if (packet.payload.size() != n) {
      fail_at(qp, expected, m::Syndrome::bad_response, 0);
      return;
    }
    if (n != 0) landed = engine_.land_answer(qp, record, offset, packet.payload.data(), n);
  }
  if (!landed) {
    fail_at(qp, expected, m::Syndrome::local_protection, kVendorKey);
    return;
  }
  // Strict: the last packet counts when its bytes may be seen.
  if (engine_.strict_ && is_read(record.opcode) && range.landed + 1 == range.count && engine_.answer_later(qp)) return;
  take_response(qp, seq);
}

// One packet more of a response, which has landed.
void Packets::take_response(QueuePair& qp, std::uint64_t seq) {
  PacketState& s = *qp.packets;
  Sent& record = qp.sent_at(seq);
  PsnRange& range = s.range_at(seq);
  ++range.landed;
  if (range.landed == range.count) {
    record.awaits_answer = false;
    --qp.answers_awaited;
  }
  acknowledge(qp, r::psn_add(range.first, range.landed));
}

// Strict: all of a read has waited long enough.
void Packets::finish_response(QueuePair& qp) {
  const std::uint64_t wqe = qp.answer->place.wqe;
  std::uint64_t seq = qp.seq_done;
  while (seq != qp.seq_next && qp.sent_at(seq).index != wqe) ++seq;
  if (seq == qp.seq_next) return engine_.abandon_answer(qp);
  if (engine_.land_staged(qp, std::move(qp.answer))) return take_response(qp, seq);
  const PsnRange& range = qp.packets->range_at(seq);
  fail_at(qp, r::psn_add(range.first, range.landed), m::Syndrome::local_protection, kVendorKey);
}

// The work request that `psn` belongs to fails; what lies before it is done, what lies behind is flushed.
void Packets::fail_at(QueuePair& qp, std::uint32_t psn, m::Syndrome syndrome, std::uint8_t vendor) {
  PacketState& s = *qp.packets;
  for (std::uint64_t seq = qp.seq_done; seq != qp.seq_next; ++seq) {
    const PsnRange& range = s.range_at(seq);
    const std::int32_t into = r::psn_diff(psn, range.first);
    if (into < 0 || into >= static_cast<std::int32_t>(std::max(range.count, 1u))) continue;
    Sent& record = qp.sent_at(seq);
    record.fault = syndrome;
    record.vendor = vendor;
    engine_.advance(qp);
    return;
  }
}

}  // namespace strait::soft::nic
