// SPDX-License-Identifier: Apache-2.0
// The shortest way through the engine, for what is one slot of a ring: RDMA writes and sends of up to 12 bytes that lie
// in their work request, and reads of up to 16.
//
// Flags, counters and small messages are most of what programs post, and their latency is instructions. Each function
// takes exactly the case where nothing is unusual and does all of it; otherwise it changes nothing and says false, and
// the general code starts from the beginning. Every check of the general code is made here too.
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::uint32_t kMostInline = m::kSegmentBytes - sizeof(m::InlineHeader);  // 12

template <class Segment>
Segment segment(const std::byte* at) {
  Segment out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

// The work request at `index` is of this kind and length.
bool is_plainly(const m::CtrlSeg& control, std::uint64_t index, std::uint32_t qpn, m::Opcode opcode,
                std::uint32_t segments) {
  return control.opmod_idx_opcode.raw() == wire::be32{m::control_word0(0, index, opcode)}.raw() &&
         control.qpn_ds.raw() == wire::be32{m::control_word1(qpn, segments)}.raw();
}

}  // namespace

// The record is the truth and the doorbell register a hint: of the two, the one that is further on counts. The register
// is looked at only when it changed, since one that is never rung again would seem to run ahead after 32768 blocks.
void Engine::read_doorbell(QueuePair& qp) {
  if (qp.state == QpState::reset) return;  // the program is about to set its record back
  const auto done16 = static_cast<std::uint16_t>(qp.producer);
  const std::uint32_t raw = __atomic_load_n(&qp.record[1], __ATOMIC_ACQUIRE);
  auto ahead = static_cast<std::uint16_t>(static_cast<std::uint16_t>(wire::be32::from_raw(raw).value()) - done16);
  const std::uint64_t rung = __atomic_load_n(qp.doorbell, __ATOMIC_ACQUIRE);
  if (rung != qp.last_doorbell) {
    qp.last_doorbell = rung;
    ++counts_.doorbells;
    m::Doorbell bell;
    std::memcpy(&bell, &rung, sizeof bell);
    const auto by_bell = static_cast<std::uint16_t>(bell.index() - done16);
    if (bell.qpn() == qp.qpn && by_bell <= qp.sq_blocks && by_bell > ahead) ahead = by_bell;
  }
  const std::uint64_t outstanding = qp.producer - qp.next;
  if (ahead == 0) return;
  if (strict_ && qp.state == QpState::ready) report_overrun(qp, qp.producer + ahead);
  if (ahead + outstanding > qp.sq_blocks) return;  // a jump that cannot be true
  qp.producer += ahead;
}

inline bool Engine::send_small(QueuePair& qp) {
  if (qp.next + 1 != qp.producer || qp.state != QpState::ready || qp.stopped || qp.streaming || qp.resume_at_ns != 0 ||
      qp.seq_next - qp.seq_done >= qp.sent.size())
    return false;
  const std::byte* const block = qp.sq.at(qp.next * m::kBlockBytes);
  const auto control = segment<m::CtrlSeg>(block);
  const m::Opcode opcode = control.opcode();
  const bool send = opcode == m::Opcode::send;
  const bool read = opcode == m::Opcode::rdma_read;
  if ((opcode != m::Opcode::rdma_write && !send && !read) ||
      !is_plainly(control, qp.next, qp.qpn, opcode, send ? 2 : 3) || (control.fm_ce_se & m::kFenceMask) != 0)
    return false;
  ChannelWriter& writer = qp.link->writer;
  if (!writer.has_room(1)) return false;

  SmallMessage message;
  if (read) {
    const auto into = segment<m::DataSeg>(block + 2 * m::kSegmentBytes);
    message.kind = Kind::read;
    message.length = into.byte_count.value();
    if (message.length - 1 >= kInSlotBytes || qp.reading_from != 0) return false;
    KeyFault why = KeyFault::none;
    const Registration* const place =
        memory_.check(into.lkey.value(), qp.pd, into.addr.value(), message.length, STRAIT_NIC_LOCAL_WRITE, why);
    if (place == nullptr || place->bytes == nullptr) return false;
  } else {
    const std::byte* const inlined = block + (send ? 1 : 2) * m::kSegmentBytes;
    const auto payload = segment<m::InlineHeader>(inlined);
    message.kind = send ? Kind::send : Kind::write;
    message.length = payload.length();
    if (!payload.is_inline() || message.length - 1 >= kMostInline) return false;
    std::uint32_t last = 0;
    std::memcpy(&message.data[0], inlined + sizeof payload, sizeof message.data[0]);
    std::memcpy(&last, inlined + sizeof payload + sizeof message.data[0], sizeof last);
    message.data[1] = last;
    if ((control.fm_ce_se & m::kSolicited) != 0) message.flags = kSolicited;
  }
  if (!send) {
    const auto remote = segment<m::RaddrSeg>(block + m::kSegmentBytes);
    message.rkey = remote.rkey.value();
    message.raddr = remote.raddr.value();
  }
  message.to_qpn = qp.remote_qpn;
  message.from_qpn = qp.qpn;
  message.msn = qp.msn_next;
  message.ack = carried_ack(qp);
  writer.publish_slot(message);

  const bool signaled = (control.fm_ce_se & m::kCompletionAlways) != 0 || qp.all_signaled;
  if (qp.seq_done == qp.seq_next) qp.progress_at_ns = 0;
  qp.sent_at(qp.seq_next++) = {
      qp.next, ++qp.msn_next, read ? message.length : 0, opcode, signaled, read, 0, m::Syndrome::none, 0};
  qp.answers_awaited += read ? 1 : 0;
  ++qp.next;
  ++counts_.messages_sent;
  ++counts_.work_requests;
  qp.link->ring();
  return true;
}

int Engine::service_send(QueuePair& qp) {
  read_doorbell(qp);
  if (qp.next == qp.producer) return 0;
  if (qp.packets != nullptr) return packets_->serve(qp);
  const bool plain = !strict_ && !faults() && qp.link != nullptr && !qp.link->lossy && !qp.link->dead;
  return plain && send_small(qp) ? 1 : service_queue(qp);
}

// Of a link that loses nothing, and not strict.
bool Engine::land_small(Link& link, const Slot& message) {
  const auto kind = static_cast<Kind>(message.kind);
  const bool request = kind == Kind::write || kind == Kind::send || kind == Kind::read;
  if ((!request && kind != Kind::read_data) || (message.flags & ~kSolicited) != 0 || message.slots != 1 ||
      message.length - 1 >= kInSlotBytes)
    return false;
  QueuePair* const qp = find_qp(message.to_qpn);
  if (qp == nullptr || qp->link != &link || qp->remote_qpn != message.from_qpn || qp->state != QpState::ready)
    return false;
  if (message.ack != qp->msn_acked) {
    on_ack(*qp, message.ack);
    if (qp->state != QpState::ready) return false;
  }
  if (!request) return land_small_answer(*qp, message);
  if (message.msn != qp->msn_expected || qp->arriving.active) return false;
  if (kind == Kind::write) return land_small_write(*qp, message);
  return kind == Kind::send ? land_small_send(*qp, message) : answer_small_read(*qp, link, message);
}

inline bool Engine::land_small_write(QueuePair& qp, const Slot& message) {
  KeyFault why = KeyFault::none;
  if ((qp.access & STRAIT_NIC_REMOTE_WRITE) == 0) return false;
  const Registration* const into =
      check_remote(qp, message.rkey, message.raddr, message.length, STRAIT_NIC_REMOTE_WRITE, why);
  if (into == nullptr || into->bytes == nullptr) return false;
  (void)write_bytes(*into, message.raddr, message.data, message.length);  // bytes in reach: it cannot fail
  counts_.bytes_landed += message.length;
  executed(qp);
  return true;
}

// A receive of its own queue, which is one piece that has room for all of it.
inline bool Engine::land_small_send(QueuePair& qp, const Slot& message) {
  if (qp.srq != nullptr || qp.port || faults() || message.flags != 0 || qp.receives_posted() == 0) return false;
  const std::byte* const receive =
      qp.rq.at((qp.receives_taken & (qp.rq_entries - 1)) * std::uint64_t{qp.rq_stride_bytes});
  if (qp.rq_stride_bytes != m::kSegmentBytes) {
    const auto second = segment<m::DataSeg>(receive + m::kSegmentBytes);
    if (second.byte_count.value() != 0 || second.lkey.value() != m::kTerminatorLkey) return false;
  }
  const auto place = segment<m::DataSeg>(receive);
  const std::uint32_t room = place.byte_count.value();
  if ((room & m::kInlineFlag) != 0 || room < message.length) return false;
  KeyFault why = KeyFault::none;
  const std::uint64_t address = place.addr.value();
  const Registration* const into =
      memory_.check(place.lkey.value(), qp.receive_pd(), address, message.length, STRAIT_NIC_LOCAL_WRITE, why);
  if (into == nullptr || into->bytes == nullptr) return false;
  (void)write_bytes(*into, address, message.data, message.length);
  counts_.bytes_landed += message.length;
  const auto entry = static_cast<std::uint16_t>(qp.receives_taken++);
  wrote(*qp.recv_cq, qp.recv_cq->write_received(qp.qpn, qp.user_index, entry, message.length), qp.qpn, entry);
  executed(qp);
  return true;
}

inline bool Engine::answer_small_read(QueuePair& qp, Link& link, const Slot& message) {
  KeyFault why = KeyFault::none;
  if (message.flags != 0 || message.imm_raw != 0 || (qp.access & STRAIT_NIC_REMOTE_READ) == 0 ||
      !link.answers.empty() || !link.writer.has_room(1))
    return false;
  const Registration* const from =
      check_remote(qp, message.rkey, message.raddr, message.length, STRAIT_NIC_REMOTE_READ, why);
  if (from == nullptr || from->bytes == nullptr) return false;
  SmallMessage reply;
  (void)read_bytes(*from, message.raddr, reinterpret_cast<std::byte*>(reply.data), message.length);
  counts_.bytes_read += message.length;
  executed(qp);
  reply.kind = Kind::read_data;
  reply.to_qpn = qp.remote_qpn;
  reply.from_qpn = qp.qpn;
  reply.msn = message.msn;
  reply.ack = carried_ack(qp);
  reply.length = message.length;
  link.writer.publish_slot(reply);
  ++counts_.messages_sent;
  link.ring();
  return true;
}

// Of the oldest work request. It still lies in its ring and says where the answer goes; the key is checked again, since
// it may have been revoked while the answer was on its way.
inline bool Engine::land_small_answer(QueuePair& qp, const Slot& message) {
  if (message.flags != 0 || message.raddr != 0 || qp.seq_done == qp.seq_next || qp.port) return false;
  Sent& sent = qp.sent_at(qp.seq_done);
  if (sent.msn_after != message.msn + 1 || sent.opcode != m::Opcode::rdma_read || !sent.awaits_answer ||
      sent.fault != m::Syndrome::none || sent.bytes != message.length || sent.landed != 0)
    return false;
  const std::byte* const block = qp.sq.at(sent.index * m::kBlockBytes);
  const auto place = segment<m::DataSeg>(block + 2 * m::kSegmentBytes);
  if (!is_plainly(segment<m::CtrlSeg>(block), sent.index, qp.qpn, m::Opcode::rdma_read, 3) ||
      place.byte_count.value() != message.length)
    return false;
  KeyFault why = KeyFault::none;
  const std::uint64_t address = place.addr.value();
  const Registration* const into =
      memory_.check(place.lkey.value(), qp.pd, address, message.length, STRAIT_NIC_LOCAL_WRITE, why);
  if (into == nullptr || into->bytes == nullptr) return false;
  (void)write_bytes(*into, address, message.data, message.length);
  answered(qp, sent, message.msn);
  return true;
}

}  // namespace strait::soft::nic
