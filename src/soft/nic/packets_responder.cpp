// SPDX-License-Identifier: Apache-2.0
// The responder on packets: what arrives is checked, executed once, and answered. The order of the checks is that of
// rdma_rxe; the numbers in brackets are the steps of docs/wire-roce.md.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "soft/nic/packets.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;
namespace r = wire::roce;

namespace {

// No such key any more, or its port could not do it.
std::uint8_t refusal_of(const Registration* registration) {
  return registration == nullptr || registration->revoked ? r::kSyndromeNakRemoteAccess
                                                          : r::kSyndromeNakRemoteOperation;
}

bool needs_receive(const r::Shape& shape) {
  if (shape.kind == r::Kind::send) return shape.starts_message();
  return shape.kind == r::Kind::write && shape.ends_message() && shape.has_imm;
}

std::uint32_t access_for(r::Kind kind) {
  switch (kind) {
    case r::Kind::write: return STRAIT_NIC_REMOTE_WRITE;
    case r::Kind::read_request: return STRAIT_NIC_REMOTE_READ;
    case r::Kind::atomic: return STRAIT_NIC_REMOTE_ATOMIC;
    default: return 0;
  }
}

// Answers that wait for the port. A read or atomic has a place for itself and some duplicates.
bool too_many_answers(const PacketState& s) {
  return s.answers.size() >= 64 + 4 * s.replays.size();
}

// The bytes that are asked for again have not left yet and will leave anyway. Without this a small packet that comes
// again and again would be worth a long response each time.
bool is_on_its_way(const PacketState& s, const roce::Packet& again, std::uint32_t last_psn) {
  const std::uint32_t pmtu = s.path.pmtu_bytes;
  return std::any_of(s.answers.begin(), s.answers.end(), [&](const PacketAnswer& a) {
    if (a.what != PacketAnswer::What::read) return false;
    const std::int32_t into = r::psn_diff(again.psn, a.psn);
    return into >= static_cast<std::int32_t>(a.offset / pmtu) &&
           r::psn_diff(last_psn, r::psn_add(a.psn, packets_of(a.length, pmtu))) < 0 &&
           again.va == a.va + std::uint64_t{static_cast<std::uint32_t>(into)} * pmtu;
  });
}

}  // namespace

void Packets::on_request(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  const bool reliable = s.path.reliable();
  if (s.path.transport == r::Transport::ud) return on_datagram(qp, packet);
  if (qp.type == QpType::xrc_ini) return drop(roce::Drop::wrong_transport);

  // [2] The sequence number
  const std::int32_t off = r::psn_diff(packet.psn, s.epsn);
  if (!reliable) {
    // A gap loses the message it is in, silently; the next one that begins is whole again.
    if (off != 0) {
      s.dropping = !shape.starts_message();
      s.in_message = r::Kind::unknown;
    } else if (shape.starts_message()) {
      s.dropping = false;
    }
    s.epsn = r::psn_add(packet.psn, 1);
    if (s.dropping) return drop(roce::Drop::stale_psn);
  } else if (off < 0) {
    return on_duplicate(qp, packet);
  } else if (off > 0) {
    if (!s.nak_sent) {
      s.nak_sent = true;
      ++engine_.counts_.naks_sent;
      PacketAnswer nak;
      nak.syndrome = r::kSyndromeNakSequence;
      nak.psn = s.epsn;
      nak.msn = s.msn;
      queue_answer(qp, nak);
    }
    return;
  }
  s.nak_sent = false;

  // [3] The place in its message, [4] what the queue pair allows at all
  if (!fits_sequence(s, shape)) {
    if (reliable) return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
    s.in_message = r::Kind::unknown;
    s.dropping = !shape.starts_message();
    if (s.dropping) return drop(roce::Drop::stale_psn);
  }
  if (qp.type == QpType::xrc_tgt && shape.starts_message() && !engine_.aim_at(qp, packet.xrc_srqn))
    return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
  const std::uint32_t access = access_for(shape.kind);
  const bool asks = shape.kind == r::Kind::read_request || shape.kind == r::Kind::atomic;
  if ((qp.access & access) != access || (asks && s.replays.empty())) {
    if (reliable) return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
    s.dropping = true;
    return;
  }
  // [5] A receive to put it in
  if (engine_.strict_ && reliable && needs_receive(shape) && qp.receives_waiting() == 0) {
    engine_.strict_->found(Rule::receive_too_late, qp.qpn, qp.receives_taken,
                           "a message found no receive: this one was not posted yet");
  }
  if (needs_receive(shape) && (qp.receives_waiting() == 0 || (reliable && engine_.overlooks_receive(qp)))) {
    if (reliable) return not_ready(qp, packet.psn);
    s.dropping = true;
    return drop(roce::Drop::no_receiver);
  }
  // Nobody who keeps to the agreed number of reads under way gets here; what is lost is asked for again.
  if (asks && too_many_answers(s)) return drop(roce::Drop::no_room);
  if (shape.kind == r::Kind::read_request) return on_read(qp, packet);
  if (shape.kind == r::Kind::atomic) return on_atomic(qp, packet);
  on_payload(qp, packet);
}

// After the first packet of a message only that message goes on; otherwise only a message can begin.
bool Packets::fits_sequence(const PacketState& state, const r::Shape& shape) {
  if (state.in_message == r::Kind::unknown) return shape.starts_message();
  return shape.kind == state.in_message && !shape.starts_message();
}

// [6]
bool Packets::right_length(const QueuePair& qp, const roce::Packet& packet, const r::Shape& shape) const {
  const PacketState& s = *qp.packets;
  const std::size_t n = packet.payload.size();
  const std::uint32_t pmtu = s.path.pmtu_bytes;
  if ((shape.first || shape.middle) && n != pmtu) return false;
  if (shape.last && (n == 0 || n > pmtu)) return false;
  if (shape.only && n > pmtu) return false;
  if (shape.kind != r::Kind::write) return true;
  const std::uint32_t length = shape.starts_message() ? packet.dma_length : s.length;
  const std::uint32_t landed = shape.starts_message() ? 0 : s.landed;
  if (length > r::kMaxMessageBytes || n != std::min(length - landed, pmtu)) return false;
  return shape.ends_message() == (landed + n == length);
}

void Packets::on_payload(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  const bool write = shape.kind == r::Kind::write;
  const auto refuse_or_drop = [&](std::uint8_t syndrome, m::Syndrome for_receive) {
    if (s.path.reliable()) return refuse(qp, packet.psn, syndrome, for_receive);
    s.in_message = r::Kind::unknown;
    s.dropping = !shape.ends_message();
    drop(roce::Drop::bad_length);
  };
  if (!right_length(qp, packet, shape)) return refuse_or_drop(r::kSyndromeNakInvalidRequest, m::Syndrome::none);
  if (shape.starts_message()) {
    s.landed = 0;
    s.va = packet.va;
    s.rkey = packet.rkey;
    s.length = packet.dma_length;
    if (!write) {
      const DecodeFault fault = engine_.take_receive(qp);
      if (fault) return refuse_or_drop(r::kSyndromeNakRemoteOperation, fault.syndrome);
    }
  }
  const auto n = static_cast<std::uint32_t>(packet.payload.size());
  if (!write && std::uint64_t{s.landed} + n > qp.arriving_into->total_bytes)
    return refuse_or_drop(r::kSyndromeNakInvalidRequest, m::Syndrome::local_length);
  if (!land(qp, packet)) return;
  s.landed += n;
  s.in_message = shape.ends_message() ? r::Kind::unknown : shape.kind;
  if (s.path.reliable()) s.epsn = r::psn_add(s.epsn, 1);
  if (shape.ends_message()) {
    if (engine_.land_later(qp, write ? s.length : s.landed)) {
      s.late = packet;
      return;
    }
    finish_message(qp, packet);
  }
  if (packet.ack_req && s.path.reliable()) owe_ack(qp);
}

// Strict: the payload has waited long enough. What came meanwhile has its turn now.
void Packets::finish_late(QueuePair& qp) {
  PacketState& s = *qp.packets;
  if (!qp.payload_waits()) {
    finish_response(qp);
  } else {
    const bool receive = qp.landing->place.what == LandingPlace::What::receive;
    if (!engine_.land_staged(qp, std::move(qp.landing))) {
      refuse(qp, s.late.psn, receive ? r::kSyndromeNakRemoteOperation : r::kSyndromeNakRemoteAccess,
             receive ? m::Syndrome::local_protection : m::Syndrome::none);
      s.inbox.clear();
      return;
    }
    finish_message(qp, s.late);
    if (s.late.ack_req) owe_ack(qp);
  }
  while (!s.inbox.empty() && !qp.landing_waits()) {
    const PacketState::Waiting next = std::move(s.inbox.front());
    s.inbox.pop_front();
    roce::Packet packet;
    if (roce::parse(next.bytes, packet) != roce::Drop::none) continue;
    if (r::shape_of(packet.opcode).is_request() ? !qp.receiving() : !qp.sending()) continue;
    handle(qp, {next.flow, next.ecn_ce, next.id_unknown, next.bytes, next.ip_id}, packet);
  }
}

// [7] the key, [8] the bytes. False: refused, and answered.
bool Packets::land(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const bool write = r::shape_of(packet.opcode).kind == r::Kind::write;
  const auto n = static_cast<std::uint32_t>(packet.payload.size());
  const bool reliable = s.path.reliable();
  const std::byte* from = packet.payload.data();
  if (n == 0) return true;  // nothing is touched, so nothing is looked at
  const bool more = reliable && !r::shape_of(packet.opcode).ends_message();
  engine_.counts_.bytes_landed += n;
  if (write) {
    // The whole range at the first packet, as the rules say, and again at each: a key that is revoked half-way ends it.
    KeyFault why = KeyFault::none;
    Registration* const into = engine_.check_remote(qp, s.rkey, s.va, s.length, STRAIT_NIC_REMOTE_WRITE, why);
    const Registration* const place =
        reliable ? engine_.stage(qp, into, {LandingPlace::What::write, s.rkey, s.va, s.length}) : into;
    if (place != nullptr && engine_.put_bytes(qp, *place, s.va + s.landed, from, n, s.landed == 0, more)) return true;
    const std::uint8_t syndrome = refusal_of(into);
    if (reliable) {
      refuse(qp, packet.psn, syndrome, m::Syndrome::none);
    } else {
      s.in_message = r::Kind::unknown;
      s.dropping = true;
    }
    return false;
  }
  // How long a message is only its last packet tells: until then all of the receive may be written to.
  const bool only = r::shape_of(packet.opcode).starts_message() && !more;
  Registration* const shadow = reliable ? engine_.stage_receive(qp, only ? n : qp.arriving_into->total_bytes) : nullptr;
  if (shadow != nullptr) [[unlikely]]
    return engine_.put_bytes(qp, *shadow, shadow->address + s.landed, from, n, s.landed == 0, more);
  if (engine_.scatter(qp, *qp.arriving_into, s.landed, from, n, more)) return true;
  if (reliable) {
    refuse(qp, packet.psn, r::kSyndromeNakRemoteOperation, m::Syndrome::local_protection);
  } else {
    s.in_message = r::Kind::unknown;
    s.dropping = true;
    engine_.fail_receive(qp, m::Syndrome::local_protection);
  }
  return false;
}

void Packets::finish_message(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  s.msn = (s.msn + 1) & r::kPsnMask;
  Arriving what;
  what.kind = shape.kind == r::Kind::write ? Kind::write : Kind::send;
  what.flags = static_cast<std::uint8_t>((shape.has_imm ? kHasImm : 0) | (shape.has_ieth ? kInvalidate : 0) |
                                         (packet.solicited ? kSolicited : 0));
  what.length = what.kind == Kind::write ? s.length : s.landed;
  what.imm_raw = shape.has_ieth ? wire::be32{packet.inval_rkey}.raw() : packet.imm_raw;
  engine_.deliver(qp, what);
}

void Packets::on_read(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  if (packet.dma_length > r::kMaxMessageBytes)
    return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
  KeyFault why = KeyFault::none;
  if (packet.dma_length != 0 &&
      engine_.check_remote(qp, packet.rkey, packet.va, packet.dma_length, STRAIT_NIC_REMOTE_READ, why) == nullptr)
    return refuse(qp, packet.psn, r::kSyndromeNakRemoteAccess, m::Syndrome::none);
  const std::uint32_t packets = packets_of(packet.dma_length, s.path.pmtu_bytes);
  s.epsn = r::psn_add(s.epsn, packets);
  s.msn = (s.msn + 1) & r::kPsnMask;
  engine_.counts_.bytes_read += packet.dma_length;
  PacketAnswer answer;
  answer.what = PacketAnswer::What::read;
  answer.psn = packet.psn;
  answer.msn = s.msn;
  answer.va = packet.va;
  answer.pd = qp.target_pd();
  answer.rkey = packet.rkey;
  answer.length = packet.dma_length;
  answer.last_psn = r::psn_add(packet.psn, packets - 1);
  remember(qp, answer);
  queue_answer(qp, answer);
}

void Packets::on_atomic(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  if (packet.va % 8 != 0) return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
  KeyFault why = KeyFault::none;
  Registration* const on = engine_.check_remote(qp, packet.rkey, packet.va, 8, STRAIT_NIC_REMOTE_ATOMIC, why);
  if (on == nullptr) return refuse(qp, packet.psn, r::kSyndromeNakRemoteAccess, m::Syndrome::none);
  // The address the program sees is aligned, but what it was registered at need not be.
  if (on->bytes != nullptr && reinterpret_cast<std::uintptr_t>(on->at(packet.va)) % 8 != 0)
    return refuse(qp, packet.psn, r::kSyndromeNakInvalidRequest, m::Syndrome::none);
  AtomicRequest request;
  request.swap = packet.opcode == r::on_transport(r::Opcode::rc_compare_swap, s.path.transport);
  request.operand = packet.swap_or_add;
  request.compare = packet.compare;
  if (!request.swap) request.compare_mask = 0;
  PacketAnswer answer;
  answer.what = PacketAnswer::What::atomic;
  engine_.open_guards(*on, packet.va, 8);
  if (!run_atomic(*on, packet.va, request, answer.original))
    return refuse(qp, packet.psn, refusal_of(on), m::Syndrome::none);
  ++engine_.counts_.atomics;
  s.epsn = r::psn_add(s.epsn, 1);
  s.msn = (s.msn + 1) & r::kPsnMask;
  answer.psn = answer.last_psn = packet.psn;
  answer.msn = s.msn;
  remember(qp, answer);
  queue_answer(qp, answer);
}

void Packets::remember(QueuePair& qp, const PacketAnswer& answer) {
  PacketState& s = *qp.packets;
  s.replays[s.next_replay] = {answer, true};
  s.next_replay = (s.next_replay + 1) % s.replays.size();
}

// It was executed before: only the answer may have been lost.
void Packets::on_duplicate(QueuePair& qp, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  ++counts_.duplicates;
  if (shape.kind == r::Kind::send || shape.kind == r::Kind::write) return owe_ack(qp);
  if (too_many_answers(s)) return drop(roce::Drop::no_room);
  const bool read = shape.kind == r::Kind::read_request;
  for (const Replay& replay : s.replays) {
    const PacketAnswer& was = replay.answer;
    if (!replay.used || (was.what == PacketAnswer::What::read) != read) continue;
    const std::int32_t into = r::psn_diff(packet.psn, was.psn);
    if (into < 0 || r::psn_diff(packet.psn, was.last_psn) > 0) continue;
    PacketAnswer again = was;
    if (read) {
      // Perhaps only a part of it: inside what was granted, under the same key, within its numbers, and read from
      // memory again.
      const std::uint32_t last = r::psn_add(packet.psn, packets_of(packet.dma_length, s.path.pmtu_bytes) - 1);
      if (packet.rkey != was.rkey || packet.va < was.va || packet.dma_length > was.length ||
          packet.va - was.va > was.length - packet.dma_length || r::psn_diff(last, was.last_psn) > 0)
        return drop(roce::Drop::stale_psn);
      if (is_on_its_way(s, packet, last)) return;
      again.psn = packet.psn;
      again.va = packet.va;
      again.length = packet.dma_length;
      ++counts_.reads_replayed;
      // Still on its way out: it goes back. Answering twice would add a whole response for every packet lost.
      const auto same = std::find_if(s.answers.begin(), s.answers.end(), [&](const PacketAnswer& a) {
        return a.what == PacketAnswer::What::read && a.last_psn == was.last_psn;
      });
      if (same != s.answers.end()) {
        *same = again;
        return;
      }
    } else {
      ++counts_.atomics_replayed;
    }
    queue_again(qp, again);
    return;
  }
  drop(roce::Drop::stale_psn);
}

// Fatal: the peer's work request fails with it, and this queue pair goes into error, as on hardware.
void Packets::refuse(QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome, m::Syndrome for_receive) {
  PacketState& s = *qp.packets;
  PacketAnswer nak;
  nak.syndrome = syndrome;
  nak.psn = psn;
  nak.msn = s.msn;
  ++engine_.counts_.naks_sent;
  s.ack_due = false;  // the NAK acknowledges what came before it
  queue_answer(qp, nak);
  engine_.refused(qp,
                  syndrome == r::kSyndromeNakRemoteAccess     ? m::Syndrome::remote_access
                  : syndrome == r::kSyndromeNakInvalidRequest ? m::Syndrome::remote_invalid_request
                                                              : m::Syndrome::remote_operation,
                  for_receive);
}

void Packets::not_ready(QueuePair& qp, std::uint32_t psn) {
  PacketState& s = *qp.packets;
  PacketAnswer rnr;
  rnr.syndrome = static_cast<std::uint8_t>(r::kSyndromeRnr | s.path.rnr_timer);
  rnr.psn = psn;
  rnr.msn = s.msn;
  s.nak_sent = true;  // what follows it is out of sequence, and that is no news
  ++engine_.counts_.rnr_sent;
  queue_answer(qp, rnr);
}

void Packets::owe_ack(QueuePair& qp) {
  PacketState& s = *qp.packets;
  if (s.ack_due) return;
  s.ack_due = true;
  ack_due_.push_back(&qp);
}

void Packets::queue_answer(QueuePair& qp, const PacketAnswer& answer) {
  PacketState& s = *qp.packets;
  const auto plain = [](const PacketAnswer& a) { return a.what == PacketAnswer::What::ack && r::is_ack(a.syndrome); };
  if (plain(answer) && !s.answers.empty() && plain(s.answers.back())) {
    s.answers.back() = answer;  // the later one covers it
  } else {
    s.answers.push_back(answer);
  }
  list(qp);
}

// Before the answers to what came after it. The peer takes them in order only: all it would be sent until this one has
// its turn would be thrown away there, and be asked for once more.
void Packets::queue_again(QueuePair& qp, const PacketAnswer& answer) {
  PacketState& s = *qp.packets;
  const auto later = std::find_if(s.answers.begin(), s.answers.end(),
                                  [&](const PacketAnswer& a) { return r::psn_diff(a.psn, answer.psn) > 0; });
  s.answers.insert(later, answer);
  list(qp);
}

int Packets::send_answers(QueuePair& qp, int budget) {
  PacketState& s = *qp.packets;
  int sent = 0;
  while (sent < budget && !s.answers.empty()) {
    PacketAnswer& answer = s.answers.front();
    const bool read = answer.what == PacketAnswer::What::read;
    if (read ? !send_response(qp, answer) : !send_answer(qp, answer)) break;
    ++sent;
    if (!read || answer.offset == answer.length) s.answers.erase(s.answers.begin());
  }
  return sent;
}

bool Packets::send_answer(QueuePair& qp, PacketAnswer& answer) {
  std::byte* const out = open_packet(*qp.packets, 0);
  if (out == nullptr) return false;
  const bool atomic = answer.what == PacketAnswer::What::atomic;
  roce::Headers headers = reply_headers(qp, atomic ? r::Opcode::rc_atomic_ack : r::Opcode::rc_ack, answer.psn);
  headers.syndrome = answer.syndrome;
  headers.msn = answer.msn;
  headers.original = answer.original;
  close_packet(qp, out, roce::write_headers(headers, out) + r::kIcrcBytes);
  if (r::is_ack(answer.syndrome)) ++counts_.acks_sent;
  return true;
}

// One packet of a read's response. A key that was revoked half-way ends it with a NAK.
bool Packets::send_response(QueuePair& qp, PacketAnswer& answer) {
  PacketState& s = *qp.packets;
  const std::uint32_t pmtu = s.path.pmtu_bytes;
  const std::uint32_t n = std::min(answer.length - answer.offset, pmtu);
  const bool first = answer.offset == 0;
  const bool last = answer.offset + n == answer.length;
  const std::uint32_t psn = r::psn_add(answer.psn, answer.offset / pmtu);
  const Registration* from = nullptr;
  if (n != 0) {
    KeyFault why = KeyFault::none;
    from = engine_.memory_.check_remote(answer.rkey, answer.pd, qp.qpn, answer.va + answer.offset, n,
                                        STRAIT_NIC_REMOTE_READ, why);
  }
  std::byte* const out = open_packet(s, n);
  if (out == nullptr) return false;
  roce::Headers headers = reply_headers(qp, r::Opcode::rc_read_response_only, psn);
  headers.opcode = first && last ? r::Opcode::rc_read_response_only
                   : first       ? r::Opcode::rc_read_response_first
                   : last        ? r::Opcode::rc_read_response_last
                                 : r::Opcode::rc_read_response_middle;
  headers.opcode = r::on_transport(headers.opcode, s.path.transport);
  headers.syndrome = answer.syndrome;
  headers.msn = answer.msn;
  headers.pad = r::pad_of(n);
  std::size_t bytes = roce::write_headers(headers, out);
  const std::uint64_t tag = std::uint64_t{answer.msn} << 32 | answer.psn;
  if (n != 0 && (from == nullptr || !engine_.get_bytes(qp, *from, tag, answer.va + answer.offset, out + bytes, n,
                                                       answer.offset, answer.length - answer.offset))) {
    answer = PacketAnswer{};
    answer.psn = psn;
    answer.msn = s.msn;
    answer.syndrome = refusal_of(from);
    ++engine_.counts_.naks_sent;
    if (!send_answer(qp, answer)) return false;
    s.answers.resize(1);  // this one: nothing is answered after it
    engine_.fail_queue(qp);
    return true;
  }
  bytes += n;
  std::memset(out + bytes, 0, headers.pad);
  close_packet(qp, out, bytes + headers.pad + r::kIcrcBytes);
  answer.offset += n;
  return true;
}

}  // namespace strait::soft::nic
