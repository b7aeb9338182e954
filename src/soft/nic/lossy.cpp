// SPDX-License-Identifier: Apache-2.0
// The ring grant with faults on purpose: its messages are dropped, doubled, overtaken, late or damaged like packets,
// and what a program sees stays the same.
//
// Shared memory loses nothing, so none of this runs otherwise. A link on which either side has a plan of faults carries
// a checksum in the top 16 bits of each header's sequence number, sends again what nobody acknowledged, and answers
// what it has executed before without executing it twice.
#include <algorithm>
#include <cstring>

#include "soft/nic/checksum.hpp"
#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

constexpr std::int64_t kFirstResendNs = 1'000'000;
constexpr std::int64_t kLongestResendNs = 50'000'000;
constexpr std::size_t kReplays = 256;  // more atomics than a send queue has under way between two acknowledgements
constexpr std::uint32_t kFramingBytes = offsetof(Slot, to_qpn);  // damage begins behind what keeps the stream readable

// A message that was kept, with its checksum in place of a sequence number. False: the ring has no room.
bool publish_copy(ChannelWriter& writer, std::span<const Slot> copy) {
  const auto slots = static_cast<std::uint32_t>(copy.size());
  if (!writer.has_room(slots)) return false;
  for (std::uint32_t i = 0; i < slots; ++i) {
    const std::size_t skip = i == 0 ? sizeof(std::uint64_t) : 0;
    std::memcpy(reinterpret_cast<std::byte*>(&writer.slot(i)) + skip,
                reinterpret_cast<const std::byte*>(&copy[i]) + skip, sizeof(Slot) - skip);
  }
  writer.publish(slots, copy[0].sequence);
  return true;
}

}  // namespace

void Engine::publish_lossy(Link& link, QueuePair* qp, std::uint32_t slots) {
  ChannelWriter& writer = link.writer;
  writer.slot(0).slots = static_cast<std::uint8_t>(slots);
  const std::uint64_t check = checksum(slots, [&](std::uint32_t i) -> const Slot& { return writer.slot(i); });
  const FaultPlan* const plan = faults();
  const std::uint64_t flow = qp != nullptr ? qp->flow() : 0;
  const std::uint64_t n = qp != nullptr ? qp->message_rolls++ : link.rolls++;
  Fault fault = plan != nullptr ? plan->on_message(flow, n) : Fault::none;
  if (is_down()) fault = Fault::drop;
  if (fault != Fault::none) ++counts_.faults_injected;

  std::vector<Slot> copy;
  if (fault != Fault::none) {
    copy.resize(slots);
    for (std::uint32_t i = 0; i < slots; ++i) copy[i] = writer.slot(i);
    copy[0].sequence = check;
  }
  const auto take_back = [&] {  // payload that was never published must not look like a header later
    for (std::uint32_t i = 1; i < slots; ++i) writer.slot(i).sequence = 0;
  };
  switch (fault) {
    case Fault::drop: take_back(); break;
    case Fault::duplicate:
      writer.publish(slots, check);
      (void)publish_copy(writer, copy);
      break;
    case Fault::reorder:
    case Fault::delay: {
      take_back();
      const std::uint64_t behind = writer.sent() + plan->overtaken_by(flow, n);
      link.held.push_back(
          {sys::now_ns() + plan->late_by_ns(fault), fault == Fault::reorder ? behind : UINT64_MAX, std::move(copy)});
      break;
    }
    case Fault::corrupt: {
      const std::uint64_t bits = (std::uint64_t{slots} * sizeof(Slot) - kFramingBytes) * 8;
      const std::uint64_t at = kFramingBytes * 8 + plan->damaged_bit(flow, n, bits);
      Slot& hit = writer.slot(static_cast<std::uint32_t>(at / (sizeof(Slot) * 8)));
      auto* const bytes = reinterpret_cast<std::byte*>(&hit);
      bytes[at / 8 % sizeof(Slot)] ^= std::byte{1} << (at % 8);
      writer.publish(slots, check);
      break;
    }
    case Fault::none: writer.publish(slots, check); break;
  }
  if (!link.held.empty()) release_held(link);
}

void Engine::release_held(Link& link) {
  const std::int64_t now = sys::now_ns();
  bool released = false;
  std::erase_if(link.held, [&](const Link::Held& held) {
    if (now < held.due_ns && link.writer.sent() < held.due_message) return false;
    const bool left = publish_copy(link.writer, held.slots);
    released |= left;
    return left;
  });
  if (released) link.ring();
}

bool Engine::is_down() const {
  const FaultPlan* const plan = faults();
  return plan != nullptr && plan->down_until_ns != 0 && plan->down(sys::now_ns() - opened_ns_);
}

// False: it is lost, or damaged on its way.
bool Engine::arrives(const Link& link, const Slot& message) {
  if (is_down()) return false;
  const std::uint64_t check =
      checksum(message.slots, [&](std::uint32_t i) -> const Slot& { return i == 0 ? message : link.reader.slot(i); });
  if ((message.sequence & ~kSequenceMask) == check) return true;
  ++counts_.damaged;
  return false;
}

// A request out of its turn.
void Engine::straighten(QueuePair& qp, Link& link, const Slot& message) {
  if (message.msn == qp.msn_expected) {  // the message that is arriving begins anew: its sender may skip what is here
    qp.again_sent = false;
    ask_again(qp, link);
    return;
  }
  if (before(qp.msn_expected, message.msn)) {
    ask_again(qp, link);
    return;
  }
  // Executed before: only the answer may have been lost.
  switch (static_cast<Kind>(message.kind)) {
    case Kind::read:
      // An answer that is still on its way out is replaced: a second one would double what is left of it.
      std::erase_if(link.answers, [&](const PendingAnswer& waiting) {
        return waiting.local_qpn == qp.qpn && waiting.header.msn == message.msn &&
               static_cast<Kind>(waiting.header.kind) == Kind::read_data;
      });
      on_read(qp, link, message);
      break;
    case Kind::atomic: {
      for (const PendingAnswer& replay : qp.replays) {
        if (replay.header.msn == message.msn && replay.local_qpn != 0) {
          answer(link, replay);
          break;
        }
      }
      break;
    }
    default:
      if (!qp.ack_due) {
        qp.ack_due = true;
        ack_due_.push_back(&qp);
      }
  }
}

// Once for a gap; whatever arrives in order ends it.
void Engine::ask_again(QueuePair& qp, Link& link) {
  if (qp.again_sent) return;
  qp.again_sent = true;
  PendingAnswer reply{};
  reply.local_qpn = qp.qpn;
  reply.header.kind = static_cast<std::uint8_t>(Kind::again);
  reply.header.msn = qp.msn_expected;
  reply.header.raddr = qp.arriving.active ? qp.arriving.landed : 0;  // what of it is here already
  answer(link, reply);
}

void Engine::on_again(QueuePair& qp, const Slot& message) {
  if (before(message.msn, qp.msn_acked) || before(qp.msn_next, message.msn)) return;
  on_ack(qp, message.msn);
  if (!qp.sending() || qp.resume_at_ns != 0) return;
  ++counts_.resends;
  go_back(qp, message.msn);
  if (message.raddr != 0 && message.raddr % kRingPayloadBytes == 0) {
    qp.streaming = true;
    qp.streamed_bytes = static_cast<std::uint32_t>(message.raddr);
  }
  blocked_ = true;  // there is something to start again
}

void Engine::remember(QueuePair& qp, const PendingAnswer& answer) {
  if (qp.replays.empty()) qp.replays.resize(kReplays);
  qp.replays[qp.next_replay] = answer;
  qp.next_replay = (qp.next_replay + 1) % kReplays;
}

// The timer: from the oldest message nobody has acknowledged. Not counted as a retry; the limit for answers is.
int Engine::resend(QueuePair& qp) {
  if (qp.resume_at_ns != 0) return 0;
  if (qp.resend_at_ns == 0) {
    qp.resend_after_ns = kFirstResendNs;
    qp.resend_at_ns = now_ns_ + qp.resend_after_ns;
    return 0;
  }
  if (now_ns_ < qp.resend_at_ns) return 0;
  qp.resend_after_ns = std::min(qp.resend_after_ns * 2, kLongestResendNs);
  qp.resend_at_ns = now_ns_ + qp.resend_after_ns;
  ++counts_.resends;
  // From the oldest that is not complete: it may be a read that was acknowledged and whose answer was lost. What of it
  // has landed is not asked for again.
  const bool any = qp.seq_done != qp.seq_next;
  const std::uint32_t landed = any ? qp.sent_at(qp.seq_done).landed : 0;
  go_back(qp, any ? qp.sent_at(qp.seq_done).msn_after - 1 : qp.msn_next);
  qp.reading_from = landed;
  return 1 + service_send(qp);
}

}  // namespace strait::soft::nic
