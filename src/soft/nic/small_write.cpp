// SPDX-License-Identifier: Apache-2.0
// The shortest way through the engine: one RDMA write of up to 12 bytes that lie in its work request.
//
// Flags, counters and small puts are most of what programs post, and their latency is instructions. Both functions take
// exactly the case where nothing is unusual and do all of it; otherwise they change nothing and say false, and the
// general code starts from the beginning. Every check of the general code is made here too.
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::uint32_t kSegments = 3;                                            // control, address, payload
constexpr std::uint32_t kMostBytes = m::kSegmentBytes - sizeof(m::InlineHeader);  // 12

template <class Segment>
Segment segment(const std::byte* at) {
  Segment out;
  std::memcpy(&out, at, sizeof out);
  return out;
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

inline bool Engine::send_small_write(QueuePair& qp) {
  if (qp.next + 1 != qp.producer || qp.state != QpState::ready || qp.stopped || qp.streaming || qp.resume_at_ns != 0 ||
      qp.seq_next - qp.seq_done >= qp.sent.size())
    return false;
  const std::byte* const block = qp.sq.at(qp.next * m::kBlockBytes);
  const auto control = segment<m::CtrlSeg>(block);
  if (control.opmod_idx_opcode.raw() != wire::be32{m::control_word0(0, qp.next, m::Opcode::rdma_write)}.raw() ||
      control.qpn_ds.raw() != wire::be32{m::control_word1(qp.qpn, kSegments)}.raw() ||
      (control.fm_ce_se & m::kFenceMask) != 0)
    return false;
  const auto payload = segment<m::InlineHeader>(block + 2 * m::kSegmentBytes);
  const std::uint32_t length = payload.length();
  ChannelWriter& writer = qp.link->writer;
  if (!payload.is_inline() || length - 1 >= kMostBytes || !writer.has_room(1)) return false;

  const auto remote = segment<m::RaddrSeg>(block + m::kSegmentBytes);
  Slot slot;
  slot.kind = static_cast<std::uint8_t>(Kind::write);
  slot.flags = (control.fm_ce_se & m::kSolicited) != 0 ? std::uint8_t{kSolicited} : std::uint8_t{0};
  slot.slots = 1;
  slot.pieces = 0;
  slot.msn = qp.msn_next;
  slot.rkey = remote.rkey.value();
  slot.raddr = remote.raddr.value();
  slot.length = length;
  slot.imm_raw = 0;
  std::memcpy(slot.data, block + 2 * m::kSegmentBytes + sizeof payload, kMostBytes);
  std::memset(slot.data + kMostBytes, 0, sizeof slot.data - kMostBytes);
  stamp(qp, slot);
  writer.publish_slot(slot);

  const bool signaled = (control.fm_ce_se & m::kCompletionAlways) != 0 || qp.all_signaled;
  if (qp.seq_done == qp.seq_next) qp.progress_at_ns = 0;
  qp.sent_at(qp.seq_next++) = {qp.next, ++qp.msn_next,     0, m::Opcode::rdma_write, signaled, false,
                               0,       m::Syndrome::none, 0};
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
  const bool plain = !strict_ && gone_at_ == 0 && (qp.link == nullptr || !(qp.link->lossy || qp.link->dead));
  return plain && send_small_write(qp) ? 1 : service_queue(qp);
}

bool Engine::land_small_write(Link& link, const Slot& message) {
  constexpr auto kWrite = static_cast<std::uint8_t>(Kind::write);
  if (message.kind != kWrite || (message.flags & ~kSolicited) != 0 || message.slots != 1 ||
      message.length - 1 >= kInSlotBytes)
    return false;
  QueuePair* const qp = find_qp(message.to_qpn);
  if (qp == nullptr || qp->link != &link || qp->remote_qpn != message.from_qpn || qp->state != QpState::ready)
    return false;
  if (message.ack != qp->msn_acked) {
    on_ack(*qp, message.ack);
    if (qp->state != QpState::ready) return false;
  }
  if (message.msn != qp->msn_expected || qp->arriving.active || (qp->access & STRAIT_NIC_REMOTE_WRITE) == 0)
    return false;
  KeyFault why = KeyFault::none;
  const Registration* const into =
      check_remote(*qp, message.rkey, message.raddr, message.length, STRAIT_NIC_REMOTE_WRITE, why);
  if (into == nullptr || into->bytes == nullptr) return false;
  (void)write_bytes(*into, message.raddr, message.data, message.length);  // bytes in reach: it cannot fail
  counts_.bytes_landed += message.length;
  executed(*qp);
  return true;
}

}  // namespace strait::soft::nic
