// SPDX-License-Identifier: Apache-2.0
// The requester: work requests become messages, acknowledgements and answers become completions, in order.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

// What a peer may say went wrong. Anything else is nothing that an owner answers, and would pass for success or worse.
m::Syndrome said_by_peer(std::uint32_t word) {
  for (const m::Syndrome known : {m::Syndrome::remote_invalid_request, m::Syndrome::remote_access}) {
    if (word == static_cast<std::uint32_t>(known)) return known;
  }
  return m::Syndrome::remote_operation;
}

}  // namespace

int Engine::service_queue(QueuePair& qp) {
  if (qp.flushes_sends()) {
    flush_queue(qp);
    return 1;
  }
  if (qp.state != QpState::ready && qp.port) forget_ahead(qp);
  if (qp.state != QpState::ready || qp.link == nullptr || qp.stopped || qp.resume_at_ns != 0) return 0;
  if (qp.link->dead) {
    nobody_answers(qp);
    return qp.state == QpState::ready ? 0 : 1;
  }
  int started = 0;
  SendWork work;
  while (qp.next != qp.producer && qp.seq_next - qp.seq_done < qp.sent.size()) {
    const bool resumed = qp.streaming;
    if (!resumed && leaves_now()) break;
    DecodeFault fault = decode_work(qp, qp.next, work);
    if (!fault) {
      if (work.fence && qp.answers_awaited != 0) {
        blocked_ = true;
        break;
      }
      const Sending result =
          !qp.streaming && fails_on_purpose(qp, fault) ? Sending::fault : start_work(qp, work, fault);
      if (!resumed && (result == Sending::sent || qp.streaming)) ++begun_;
      if (result == Sending::blocked) {
        blocked_ = true;
        break;
      }
      if (result == Sending::sent) {
        ++started;
        continue;
      }
    }
    push_fault(qp, work, fault);
    ++started;
    break;
  }
  if (started != 0) qp.link->ring();
  if (qp.stopped) advance(qp);
  counts_.work_requests += static_cast<std::uint64_t>(started);
  return started;
}

// A work request that cannot be started completes with an error, after everything before it.
void Engine::push_fault(QueuePair& qp, const SendWork& work, const DecodeFault& fault) {
  qp.sent_at(qp.seq_next++) = {qp.next,     qp.msn_next,    0,
                               work.opcode, true,           false,
                               0,           fault.syndrome, fault.vendor != 0 ? fault.vendor : kVendorMalformed};
  qp.next += work.blocks;
  qp.stopped = true;
}

Engine::Sending Engine::start_work(QueuePair& qp, const SendWork& work, DecodeFault& fault) {
  if (strict_ && !qp.streaming) strict_->started(qp, qp.next, work, memory_);
  Sent sent{qp.next, qp.msn_next, 0, work.opcode, work.signaled || qp.all_signaled, false, 0, m::Syndrome::none, 0};
  Sending result = Sending::sent;
  if (is_payload(work.opcode)) {
    result = send_payload_request(qp, work, sent, fault);
  } else if (work.opcode == m::Opcode::rdma_read) {
    result = send_read(qp, work, sent, fault);
  } else if (work.opcode == m::Opcode::umr) {
    if (!change_key(qp, work.key, fault)) return Sending::fault;
  } else if (work.opcode != m::Opcode::nop) {
    result = send_atomic(qp, work, sent, fault);
  }
  if (result != Sending::sent) return result;
  if (!is_local(work.opcode)) sent.msn_after = ++qp.msn_next;
  if (qp.seq_done == qp.seq_next) qp.progress_at_ns = 0;  // the clock for an answer starts now
  qp.sent_at(qp.seq_next++) = sent;
  qp.next += work.blocks;
  if (is_local(work.opcode)) advance(qp);
  return Sending::sent;
}

bool Engine::check_pieces(QueuePair& qp, const SendWork& work, std::uint32_t access, DecodeFault& fault) {
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    const LocalPiece& piece = work.pieces[i];
    if (piece.in_ring) continue;
    KeyFault why = KeyFault::none;
    if (memory_.check(piece.lkey, qp.pd, piece.address, piece.length_bytes, access, why) == nullptr) {
      if (strict_) strict_->key_unknown(piece.lkey, qp.qpn, qp.next);
      fault = {m::Syndrome::local_protection, fault_text(why),
               static_cast<std::uint8_t>(kVendorKey + static_cast<int>(why))};
      return false;
    }
  }
  return true;
}

// Bytes [skip, skip + length) of the message, wherever they lie. The pieces were checked.
bool Engine::gather(QueuePair& qp, const SendWork& work, std::uint32_t skip, std::byte* into, std::uint32_t length) {
  // The smallest put there is: eight bytes of inline payload that do not wrap.
  if (length == 8 && work.n_pieces == 1 && work.pieces[0].in_ring && skip == 0 &&
      (work.pieces[0].address & (qp.sq.bytes - 1)) <= qp.sq.bytes - 8) {
    std::memcpy(into, qp.sq.at(work.pieces[0].address), 8);
    return true;
  }
  if (skip == 0 && qp.port) qp.port->sent.forget();
  for (std::uint32_t i = 0; i < work.n_pieces && length != 0; ++i) {
    const LocalPiece& piece = work.pieces[i];
    if (skip >= piece.length_bytes) {
      skip -= piece.length_bytes;
      continue;
    }
    const std::uint32_t n = std::min(length, piece.length_bytes - skip);
    if (piece.in_ring) {
      qp.sq.read(piece.address + skip, into, n);
    } else if (const Registration& from = *memory_.find(piece.lkey); from.bytes != nullptr) {
      open_guards(from, piece.address + skip, n);
      (void)read_bytes(from, piece.address + skip, into, n);
    } else if (!port_of(qp).sent.read(from, work.index, piece.address + skip, into, n, piece.length_bytes - skip)) {
      return false;
    }
    into += n;
    length -= n;
    skip = 0;
  }
  return length == 0;
}

m::Syndrome Engine::unreadable(const SendWork& work) {
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    const Registration* const piece = memory_.find(work.pieces[i].lkey);
    if (piece != nullptr && piece->revoked) return m::Syndrome::local_protection;
  }
  return m::Syndrome::local_access;
}

void Engine::write_address_list(QueuePair& qp, const SendWork& work, Slot& header) {
  header.flags |= kCross;
  header.pieces = static_cast<std::uint8_t>(work.n_pieces);
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    const LocalPiece& piece = work.pieces[i];
    const Registration& registration = *memory_.find(piece.lkey);
    const ListEntry entry{reinterpret_cast<std::uint64_t>(registration.at(piece.address)), piece.length_bytes,
                          lend(*qp.link, piece.lkey)};
    if (work.n_pieces == 1) {
      std::memcpy(header.data, &entry, sizeof entry);
    } else {  // entries are 16 bytes and slots 64: none straddles the ring's end
      std::uint64_t contiguous = 0;
      std::memcpy(qp.link->writer.payload(i * static_cast<std::uint32_t>(sizeof entry), contiguous), &entry,
                  sizeof entry);
    }
  }
}

void Engine::pin_pieces(QueuePair& qp, const SendWork& work, Sent& sent) {
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    ++memory_.find(work.pieces[i].lkey)->in_flight;
    qp.pinned.push_back(work.pieces[i].lkey);
  }
  sent.pins = static_cast<std::uint8_t>(work.n_pieces);
}

void Engine::unpin(QueuePair& qp, const Sent& sent, bool newest) {
  for (std::uint32_t i = 0; i < sent.pins; ++i) {
    const std::uint32_t key = newest ? qp.pinned.back() : qp.pinned.front();
    if (newest) {
      qp.pinned.pop_back();
    } else {
      qp.pinned.pop_front();
    }
    if (Registration* registration = memory_.find(key)) --registration->in_flight;
  }
}

namespace {

// Every byte must be visible at an address for the other process to fetch it.
bool all_addressable(MemoryTable& memory, const SendWork& work) {
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    if (work.pieces[i].in_ring) return false;
    const Registration* const place = memory.find(work.pieces[i].lkey);
    if (place->bytes == nullptr || !place->peers_copy) return false;
  }
  return work.n_pieces != 0;
}

std::uint32_t list_slots(std::uint32_t pieces) {
  return pieces <= 1 ? 1 : slots_with(pieces * static_cast<std::uint32_t>(sizeof(ListEntry)));
}

}  // namespace

Engine::Sending Engine::send_payload_request(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault) {
  ChannelWriter& writer = qp.link->writer;
  if (!check_pieces(qp, work, 0, fault)) return Sending::fault;
  const bool write = work.opcode == m::Opcode::rdma_write || work.opcode == m::Opcode::rdma_write_imm;
  const std::uint32_t total = work.total_bytes;
  const auto start_header = [&](std::uint8_t flags) -> Slot& {
    Slot& header = writer.header();
    header.kind = static_cast<std::uint8_t>(write ? Kind::write : Kind::send);
    header.flags = static_cast<std::uint8_t>(payload_flags(work) | flags);
    header.pieces = 0;
    header.msn = qp.msn_next;
    header.rkey = work.rkey;
    header.raddr = work.raddr;
    header.length = total;
    header.imm_raw = work.imm_raw;
    stamp(qp, header);
    return header;
  };

  if (total <= kInSlotBytes) {
    if (!writer.has_room(1)) return Sending::blocked;
    Slot& header = start_header(0);
    if (!gather(qp, work, 0, header.data, total))
      return fault = {unreadable(work), "a memory port refused a read", 0}, Sending::fault;
    publish(*qp.link, &qp, 1);
    ++counts_.messages_sent;
    return Sending::sent;
  }

  if (goes_through_pool(qp, work)) return send_pieces(qp, work, fault);

  if (total > kRingPayloadBytes && !qp.streaming && qp.link->peer_reaches_us() && all_addressable(memory_, work)) {
    const std::uint32_t slots = list_slots(work.n_pieces);
    if (!writer.has_room(slots)) return Sending::blocked;
    write_address_list(qp, work, start_header(0));
    pin_pieces(qp, work, sent);
    publish(*qp.link, &qp, slots);
    ++counts_.messages_sent;
    return Sending::sent;
  }

  qp.streamed_bytes = std::min(qp.streamed_bytes, total);
  while (qp.streamed_bytes < total) {
    const std::uint32_t n = std::min(total - qp.streamed_bytes, kRingPayloadBytes);
    const std::uint32_t slots = slots_with(n);
    if (!writer.has_room(slots)) {
      if (qp.streaming) qp.link->ring();
      return Sending::blocked;
    }
    const bool last = qp.streamed_bytes + n == total;
    Slot& header = start_header(last ? std::uint8_t{0} : std::uint8_t{kMore});
    if (qp.streaming) {
      header.kind = static_cast<std::uint8_t>(Kind::more);
      header.raddr = qp.streamed_bytes;
    }
    std::uint64_t contiguous = 0;
    std::byte* to = writer.payload(0, contiguous);
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, contiguous));
    bool copied = gather(qp, work, qp.streamed_bytes, to, first);
    if (copied && first < n)
      copied = gather(qp, work, qp.streamed_bytes + first, writer.payload(first, contiguous), n - first);
    if (!copied) return fault = {unreadable(work), "a memory port refused a read", 0}, Sending::fault;
    publish(*qp.link, &qp, slots);
    ++counts_.messages_sent;
    qp.streaming = true;
    qp.streamed_bytes += n;
  }
  qp.streaming = false;
  qp.streamed_bytes = 0;
  return Sending::sent;
}

Engine::Sending Engine::send_read(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault) {
  ChannelWriter& writer = qp.link->writer;
  if (!check_pieces(qp, work, STRAIT_NIC_LOCAL_WRITE, fault)) return Sending::fault;
  // Strict holds the answer back here; what the peer writes itself could not be.
  const bool cross =
      !strict_ && work.total_bytes > kRingPayloadBytes && qp.link->peer_reaches_us() && all_addressable(memory_, work);
  const std::uint32_t slots = cross ? list_slots(work.n_pieces) : 1;
  if (!writer.has_room(slots)) return Sending::blocked;
  Slot& header = writer.header();
  header.kind = static_cast<std::uint8_t>(Kind::read);
  header.flags = 0;
  header.pieces = 0;
  header.msn = qp.msn_next;
  header.rkey = work.rkey;
  const std::uint32_t from = cross ? 0 : std::min(qp.reading_from, work.total_bytes);
  qp.reading_from = 0;
  header.raddr = work.raddr + from;
  header.length = work.total_bytes - from;
  header.imm_raw = from;
  sent.landed = from;
  stamp(qp, header);
  if (cross) {
    write_address_list(qp, work, header);
    pin_pieces(qp, work, sent);
  }
  publish(*qp.link, &qp, slots);
  ++counts_.messages_sent;
  sent.bytes = work.total_bytes;
  sent.awaits_answer = true;
  ++qp.answers_awaited;
  return Sending::sent;
}

Engine::Sending Engine::send_atomic(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault) {
  ChannelWriter& writer = qp.link->writer;
  if (!check_pieces(qp, work, STRAIT_NIC_LOCAL_WRITE, fault)) return Sending::fault;
  const AtomicRequest& atomic = work.atomic;
  const bool masked = work.opcode == m::Opcode::atomic_masked_cs || work.opcode == m::Opcode::atomic_masked_fa;
  const std::uint32_t slots = masked ? 2 : 1;
  if (!writer.has_room(slots)) return Sending::blocked;
  Slot& header = writer.header();
  header.kind = static_cast<std::uint8_t>(Kind::atomic);
  header.flags = static_cast<std::uint8_t>((atomic.swap ? kSwap : 0) | (masked ? kMasked : 0));
  header.pieces = 0;
  header.msn = qp.msn_next;
  header.rkey = work.rkey;
  header.raddr = work.raddr;
  header.length = atomic.width;
  header.imm_raw = 0;
  std::memcpy(header.data, &atomic.operand, 8);
  std::memcpy(header.data + 8, &atomic.compare, 8);
  stamp(qp, header);
  if (masked) {
    std::uint64_t contiguous = 0;
    std::byte* masks = writer.payload(0, contiguous);
    std::memcpy(masks, &atomic.swap_mask, 8);
    std::memcpy(masks + 8, &atomic.compare_mask, 8);
  }
  publish(*qp.link, &qp, slots);
  ++counts_.messages_sent;
  sent.bytes = atomic.width;
  sent.awaits_answer = true;
  ++qp.answers_awaited;
  return Sending::sent;
}

void Engine::on_ack(QueuePair& qp, std::uint32_t ack) {
  if (!before(qp.msn_acked, ack) || before(qp.msn_next, ack)) return;  // old news, or never sent
  qp.msn_acked = ack;
  qp.progress_at_ns = 0;
  qp.not_yet_since_ns = 0;
  qp.resend_at_ns = 0;
  qp.rnr_tries = 0;
  advance(qp);
}

// Completes, in order, what the peer has executed and whose answer has landed.
void Engine::advance(QueuePair& qp) {
  while (qp.seq_done != qp.seq_next) {
    Sent& sent = qp.sent_at(qp.seq_done);
    if (sent.fault != m::Syndrome::none) {
      complete(qp, sent, sent.fault);
      unpin(qp, sent, false);
      ++qp.seq_done;
      fail_sends(qp);
      return;
    }
    if (sent.awaits_answer || before(qp.msn_acked, sent.msn_after)) return;
    if (strict_) strict_->completed(qp, sent.index, memory_);
    if (sent.signaled) {
      overrun_on_purpose(*qp.send_cq);
      const bool written = qp.send_cq->write_success(qp.qpn, qp.user_index, sent.opcode,
                                                     static_cast<std::uint16_t>(sent.index), sent.bytes);
      wrote(*qp.send_cq, written, qp.qpn, sent.index);
    }
    if (sent.pins != 0) unpin(qp, sent, false);
    ++qp.seq_done;
  }
  if (qp.state == QpState::sqd) [[unlikely]]
    check_drained(qp);
}

void Engine::complete(QueuePair& qp, const Sent& sent, m::Syndrome syndrome) {
  Completion completion;
  completion.opcode = syndrome == m::Syndrome::none ? m::CqeOpcode::requester : m::CqeOpcode::requester_error;
  completion.send_opcode = sent.opcode;
  completion.qpn = qp.qpn;
  completion.user_index = qp.user_index;
  completion.wqe_counter = static_cast<std::uint16_t>(sent.index);
  completion.byte_count = sent.bytes;
  completion.syndrome = syndrome;
  completion.vendor_syndrome = syndrome == m::Syndrome::none ? std::uint8_t{0} : sent.vendor;
  if (gone_) completion.vendor_syndrome = kVendorDeviceGone;
  post_completion(*qp.send_cq, completion);
}

Sent* Engine::find_sent(QueuePair& qp, std::uint32_t msn) {
  for (std::uint64_t seq = qp.seq_done; seq != qp.seq_next; ++seq) {
    Sent& sent = qp.sent_at(seq);
    if (sent.msn_after == msn + 1 && !is_local(sent.opcode) && sent.fault == m::Syndrome::none) return &sent;
  }
  return nullptr;
}

void Engine::on_answer(QueuePair& qp, const Slot& message, Link& link) {
  if (!qp.sending()) return;
  switch (static_cast<Kind>(message.kind)) {
    case Kind::read_data: on_read_data(qp, message, link); break;
    case Kind::atomic_result: {
      Sent* sent = find_sent(qp, message.msn);
      if (sent == nullptr || !sent->awaits_answer || message.length != sent->bytes) break;
      // The value is returned in the host's byte order, as hardware writes it into the result buffer.
      if (!land_answer(qp, *sent, 0, message.data, sent->bytes)) {
        fail_message(qp, message.msn, m::Syndrome::local_protection, kVendorKey);
        break;
      }
      answered(qp, *sent, message.msn);
      break;
    }
    case Kind::nak:
      fail_message(qp, message.msn, said_by_peer(message.length), static_cast<std::uint8_t>(message.imm_raw));
      break;
    case Kind::rnr: on_rnr(qp, message); break;
    case Kind::again: on_again(qp, message); break;
    case Kind::no_queue: nobody_answers(qp); break;
    default: break;
  }
}

void Engine::on_read_data(QueuePair& qp, const Slot& message, Link& link) {
  Sent* sent = find_sent(qp, message.msn);
  if (sent == nullptr || !sent->awaits_answer || message.length != sent->bytes || message.raddr > sent->bytes) return;
  if ((message.flags & kCross) == 0) {
    const auto offset = static_cast<std::uint32_t>(message.raddr);
    if (offset != sent->landed) {  // a piece is missing or came twice; what is missing will be asked for again
      ++counts_.out_of_sequence;
      if (link.lossy && offset > sent->landed && !qp.reread) {
        qp.reread = true;
        qp.resend_at_ns = kResendNow;
      }
      return;
    }
    const std::uint32_t n = std::min(sent->bytes - offset, kRingPayloadBytes);
    bool landed = true;
    if (n <= kInSlotBytes && message.slots == 1) {
      landed = land_answer(qp, *sent, offset, message.data, n);
    } else if (slots_with(n) == message.slots) {
      std::uint64_t contiguous = 0;
      const std::byte* from = link.reader.payload(0, contiguous);
      const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, contiguous));
      landed = land_answer(qp, *sent, offset, from, first);
      if (landed && first < n)
        landed = land_answer(qp, *sent, offset + first, link.reader.payload(first, contiguous), n - first);
    } else {
      ++counts_.garbage;
      return;
    }
    if (!landed) {
      fail_message(qp, message.msn, m::Syndrome::local_protection, kVendorKey);
      return;
    }
    // Only when it has landed does the last piece count as here.
    if (strict_ && offset + n == sent->bytes && answer_later(qp)) return;
    sent->landed += n;
    qp.reread = false;
    if ((message.flags & kMore) != 0) {
      qp.progress_at_ns = 0;
      qp.resend_at_ns = 0;
      return;
    }
    if (sent->landed != sent->bytes) return;
  }
  answered(qp, *sent, message.msn);
}

void Engine::answered(QueuePair& qp, Sent& sent, std::uint32_t msn) {
  sent.awaits_answer = false;
  --qp.answers_awaited;
  on_ack(qp, msn + 1);
  advance(qp);  // the ack may have come before, carried by the answer itself
}

// The work request still lies in its ring: it tells where the answer goes. Keys are checked again, since they may have
// been revoked while the answer was on its way.
bool Engine::land_answer(QueuePair& qp, const Sent& sent, std::uint32_t offset, const std::byte* from,
                         std::uint32_t length) {
  SendWork work;
  if (decode_work(qp, sent.index, work)) return false;
  if (Registration* const shadow = stage_answer(qp, sent, work); shadow != nullptr) [[unlikely]]
    return offset + length <= shadow->length_bytes && write_bytes(*shadow, shadow->address + offset, from, length);
  if (offset == 0 && qp.port) qp.port->returned.forget();
  const bool more = offset + length < sent.bytes;
  for (std::uint32_t i = 0; i < work.n_pieces && length != 0; ++i) {
    const LocalPiece& piece = work.pieces[i];
    if (offset >= piece.length_bytes) {
      offset -= piece.length_bytes;
      continue;
    }
    const std::uint32_t n = std::min(length, piece.length_bytes - offset);
    KeyFault why = KeyFault::none;
    const Registration* into = memory_.check(piece.lkey, qp.pd, piece.address + offset, n, STRAIT_NIC_LOCAL_WRITE, why);
    if (into == nullptr) return false;
    open_guards(*into, piece.address + offset, n);
    const bool written =
        into->bytes != nullptr
            ? write_bytes(*into, piece.address + offset, from, n) &&
                  (more || n < length || !qp.port || qp.port->returned.finish(memory_))
            : port_of(qp).returned.write(memory_, *into, piece.address + offset, from, n, more || n < length);
    if (!written) return false;
    from += n;
    length -= n;
    offset = 0;
  }
  return length == 0;
}

void Engine::on_rnr(QueuePair& qp, const Slot& message) {
  if (find_sent(qp, message.msn) == nullptr && !(qp.streaming && message.msn == qp.msn_next)) return;
  const bool not_yet = message.imm_raw == kNotYet;
  if (not_yet) {
    const std::int64_t now = sys::now_ns();
    if (qp.not_yet_since_ns == 0) qp.not_yet_since_ns = now;
    if (qp.answer_limit_ns != 0 && now - qp.not_yet_since_ns > qp.answer_limit_ns) {
      ++counts_.timeouts;
      fail_message(qp, message.msn, m::Syndrome::transport_retry_exceeded, kVendorNoAnswer);
      return;
    }
  } else if (qp.rnr_retries != 7 && qp.rnr_tries >= qp.rnr_retries) {
    fail_message(qp, message.msn, m::Syndrome::rnr_retry_exceeded, 0);
    return;
  }
  const std::uint32_t tries = qp.rnr_tries;
  if (!not_yet) {
    on_ack(qp, message.msn);
    qp.not_yet_since_ns = 0;
    qp.progress_at_ns = 0;  // the peer does answer
    qp.rnr_tries = tries + 1;
  }
  ++counts_.rnr_resent;
  go_back(qp, message.msn);
  const auto wait_ns = static_cast<std::int64_t>(std::min<std::uint64_t>(message.raddr, 1'000'000'000));
  qp.resume_at_ns = sys::now_ns() + wait_ns;
}

// Everything from message `msn` on will be sent again.
void Engine::go_back(QueuePair& qp, std::uint32_t msn) {
  while (qp.seq_next != qp.seq_done) {
    const Sent& newest = qp.sent_at(qp.seq_next - 1);
    if (!before(msn, newest.msn_after)) break;
    unpin(qp, newest, true);
    if (newest.awaits_answer) --qp.answers_awaited;
    qp.next = newest.index;
    --qp.seq_next;
  }
  qp.msn_next = msn;
  qp.streaming = false;
  qp.streamed_bytes = 0;
  qp.stopped = false;
  forget_ahead(qp);
  take_back(qp, msn);
}

// The peer refused message `msn`: what lies before it is done, it gets the syndrome, the rest is flushed.
void Engine::fail_message(QueuePair& qp, std::uint32_t msn, m::Syndrome syndrome, std::uint8_t vendor) {
  Sent* sent = find_sent(qp, msn);
  if (sent == nullptr && qp.streaming && msn == qp.msn_next) {
    // Refused while its payload was still going out.
    SendWork work;
    (void)decode_work(qp, qp.next, work);
    push_fault(qp, work, {syndrome, "refused by the peer", vendor});
  } else if (sent != nullptr) {
    sent->fault = syndrome;
    sent->vendor = vendor;
  } else {
    return;
  }
  if (before(qp.msn_acked, msn)) qp.msn_acked = msn;
  advance(qp);
}

// Nobody will answer any more.
void Engine::fail_oldest(QueuePair& qp, m::Syndrome syndrome, std::uint8_t vendor) {
  if (!qp.receiving()) return;
  if (qp.seq_done != qp.seq_next) {
    Sent& oldest = qp.sent_at(qp.seq_done);
    oldest.fault = syndrome;
    oldest.vendor = vendor;
    advance(qp);
  } else if (qp.next != qp.producer) {
    SendWork work;
    (void)decode_work(qp, qp.next, work);
    push_fault(qp, work, {syndrome, "the peer is gone", vendor});
    advance(qp);
  } else {
    fail_queue(qp);
  }
}

void Engine::fail_queue(QueuePair& qp) {
  if (qp.state == QpState::error) return;
  qp.state = QpState::error;
  abandon_landing(qp);
  abandon_answer(qp);
  abandon_pieces(qp);
  if (strict_) strict_->forget(qp);
  flush_queue(qp);
  // What it had taken from the shared receive queue is complete, and it takes no more.
  if (qp.srq != nullptr) raise(AsyncKind::last_wqe_reached, qp);
}

// Error state: whatever is posted completes with "flushed", work requests and receives alike, signaled or not.
void Engine::flush_queue(QueuePair& qp) {
  flush_sends(qp);
  if (qp.state != QpState::error) return;
  if (qp.srq_entry) fail_receive(qp, m::Syndrome::flushed);
  for (std::uint32_t left = qp.receives_posted(); left != 0; --left) {
    fail_receive(qp, m::Syndrome::flushed);
    ++counts_.flushed;
  }
}

void Engine::flush_sends(QueuePair& qp) {
  while (qp.seq_done != qp.seq_next) {
    const Sent& sent = qp.sent_at(qp.seq_done++);
    unpin(qp, sent, false);
    complete(qp, sent, m::Syndrome::flushed);
    ++counts_.flushed;
  }
  abandon_answer(qp);
  qp.answers_awaited = 0;
  qp.streaming = false;
  qp.resume_at_ns = 0;
  while (qp.next != qp.producer) {
    SendWork work;
    (void)decode_work(qp, qp.next, work);
    complete(qp, {qp.next, 0, 0, work.opcode, true, false, 0, m::Syndrome::flushed, 0}, m::Syndrome::flushed);
    qp.next += work.blocks;
    ++counts_.flushed;
  }
}

}  // namespace strait::soft::nic
