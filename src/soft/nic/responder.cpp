// SPDX-License-Identifier: Apache-2.0
// The responder: the owner of the memory checks every operation and lands its bytes.
//
// This is the ring grant: whatever a message says, bytes move only after the key, the bounds, the rights, the
// protection domain and the queue pair's own permissions were checked here, on the owner's side.
#include <algorithm>
#include <array>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "sys/copy.hpp"
#include "sys/process.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

// What a peer is told when a port refused its access.
m::Syndrome port_fault(const Registration& registration) {
  return registration.revoked ? m::Syndrome::remote_access : m::Syndrome::remote_operation;
}

constexpr std::size_t kMaxAnswers = 1u << 16;  // more than any peer that keeps to its ring can have outstanding
constexpr int kMessagesPerPass = 128;
constexpr std::uint64_t kNotYetWaitNs = 200'000;
constexpr std::uint64_t kBytesPerPass = 1 << 20;  // large copies take long: acknowledgements go out between them
constexpr std::size_t kBounceBytes = kPortPieceBytes;

std::uint8_t vendor_of(KeyFault fault) {
  return static_cast<std::uint8_t>(kVendorKey + static_cast<int>(fault));
}

using List = std::array<iovec, kMaxPieces>;
using Entries = std::array<ListEntry, kMaxPieces>;

// The address list of a cross copy. False: it does not add up to the message.
bool read_list(const Link& link, const Slot& message, Entries& entries, std::size_t& n) {
  n = message.pieces;
  if (n == 0 || n > entries.size()) return false;
  const std::size_t list_bytes = n * sizeof(ListEntry);
  const std::size_t slots = n == 1 ? 1 : slots_with(static_cast<std::uint32_t>(list_bytes));
  if (message.slots != slots) return false;
  if (n == 1) {
    std::memcpy(entries.data(), message.data, sizeof(ListEntry));
  } else {
    link.reader.copy_payload(0, entries.data(), list_bytes);
  }
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += entries[i].length_bytes;
  return total == message.length;
}

void to_iovecs(const Entries& entries, std::size_t n, List& out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = {reinterpret_cast<void*>(entries[i].address), entries[i].length_bytes};
}

// Both lists have the same total.
void copy_lists(std::span<const iovec> into, std::span<const iovec> from) {
  std::size_t at_into = 0;
  std::size_t at_from = 0;
  while (!into.empty() && !from.empty()) {
    const std::size_t n = std::min(into[0].iov_len - at_into, from[0].iov_len - at_from);
    sys::copy_bytes(static_cast<std::byte*>(into[0].iov_base) + at_into,
                    static_cast<const std::byte*>(from[0].iov_base) + at_from, n);
    at_into += n;
    at_from += n;
    if (at_into == into[0].iov_len) into = into.subspan(1), at_into = 0;
    if (at_from == from[0].iov_len) from = from.subspan(1), at_from = 0;
  }
}

// How many bytes of payload a message carries itself, from what it says; the slot count must agree.
bool carried_bytes(const Slot& message, std::uint32_t offset, std::uint32_t& n) {
  if (offset > message.length) return false;
  n = std::min(message.length - offset, kRingPayloadBytes);
  const bool in_slot = n <= kInSlotBytes && offset == 0 && message.length <= kInSlotBytes;
  const std::size_t slots = in_slot ? 1 : slots_with(n);
  const bool more = (message.flags & kMore) != 0;
  return message.slots == slots && more == (offset + n < message.length);
}

}  // namespace

int Engine::receive(Link& link) {
  int handled = 0;
  link.waiting = false;
  const std::uint64_t enough = counts_.bytes_landed + counts_.bytes_read + kBytesPerPass;
  while (handled < kMessagesPerPass && !link.paused && counts_.bytes_landed + counts_.bytes_read < enough &&
         link.reader.has_message()) {
    Slot message;
    link.reader.read_header(message);
    if (!copying_.empty() && must_wait(link, message)) [[unlikely]] {
      link.waiting = true;
      break;
    }
    if (!link.lossy && !strict_ && land_small(link, message)) {
      link.reader.consume(1);
      ++handled;
      continue;
    }
    const bool sane =
        message.slots >= 1 && message.slots <= kMaxMessageSlots && message.kind >= 1 && message.kind <= kLastKind;
    if (!sane) {
      // The stream cannot be followed any further: nothing after this can be trusted.
      ++counts_.garbage;
      lose_link(link);
      return handled + 1;
    }
    if (!link.lossy || arrives(link, message)) on_message(link, message);
    link.reader.consume(message.slots);
    ++handled;
    if (link.flooded) [[unlikely]] {
      ++counts_.garbage;
      lose_link(link);
      return handled;
    }
  }
  if (handled != 0) {
    link.reader.publish_progress();
    counts_.messages_received += static_cast<std::uint64_t>(handled);
  }
  return handled;
}

void Engine::on_message(Link& link, const Slot& message) {
  const auto kind = static_cast<Kind>(message.kind);
  QueuePair* qp = find_qp(message.to_qpn);
  const bool request = kind <= Kind::more;
  if (qp != nullptr && qp->verbs && qp->state <= QpState::init) {
    // Not connected yet: as on any network the peer asks again until its own time is over.
    if (!request || kind == Kind::more) return;
    PendingAnswer reply{};
    reply.header.kind = static_cast<std::uint8_t>(Kind::rnr);
    reply.header.to_qpn = message.from_qpn;
    reply.header.from_qpn = message.to_qpn;
    reply.header.msn = message.msn;
    reply.header.raddr = kNotYetWaitNs;
    reply.header.imm_raw = kNotYet;
    answer(link, reply);
    return;
  }
  // Only the queue pair this one was connected to may speak to it.
  if (qp == nullptr || qp->state <= QpState::init || qp->link == nullptr ||
      (qp->link != &link && qp->link->peer != link.peer) || qp->remote_qpn != message.from_qpn) {
    if (!request) return;
    ++counts_.no_queue;
    PendingAnswer reply{};
    reply.header.kind = static_cast<std::uint8_t>(Kind::no_queue);
    reply.header.to_qpn = message.from_qpn;
    reply.header.from_qpn = message.to_qpn;
    reply.header.msn = message.msn;
    answer(link, reply);
    return;
  }
  if (qp->state == QpState::error) {
    if (request && kind != Kind::more) {
      PendingAnswer reply{};
      reply.local_qpn = qp->qpn;
      reply.header.kind = static_cast<std::uint8_t>(Kind::no_queue);
      reply.header.msn = message.msn;
      answer(link, reply);
    }
    return;
  }
  heard_of(*qp);
  on_ack(*qp, message.ack);
  if (kind == Kind::more) {
    on_more(*qp, link, message);
  } else if (request) {
    on_request(*qp, link, message);
  } else if (kind != Kind::ack) {
    on_answer(*qp, message, link);
  }
}

void Engine::on_request(QueuePair& qp, Link& link, const Slot& message) {
  if (!qp.receiving()) return;  // an ack in this very message may have failed the queue
  if (message.msn != qp.msn_expected + (qp.port ? qp.port->behind : 0) || qp.arriving.active) {
    ++counts_.out_of_sequence;  // sent before the peer heard of "receiver not ready"; it comes again
    if (link.lossy) straighten(qp, link, message);
    return;
  }
  qp.again_sent = false;
  switch (static_cast<Kind>(message.kind)) {
    case Kind::write:
    case Kind::send: on_payload(qp, link, message); break;
    case Kind::read: on_read(qp, link, message); break;
    case Kind::atomic: on_atomic(qp, link, message); break;
    default: break;
  }
}

void Engine::on_payload(QueuePair& qp, Link& link, const Slot& message) {
  const bool write = static_cast<Kind>(message.kind) == Kind::write;
  const bool needs_receive = !write || (message.flags & kHasImm) != 0;
  if (message.length > m::kMaxMessageBytes) {
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return;
  }
  Registration* into = nullptr;
  if (write && message.length != 0) {
    KeyFault why = KeyFault::not_allowed;
    into = (qp.access & STRAIT_NIC_REMOTE_WRITE) == 0
               ? nullptr
               : check_remote(qp, message.rkey, message.raddr, message.length, STRAIT_NIC_REMOTE_WRITE, why);
    if (into == nullptr) {
      refuse(qp, link, message.msn, m::Syndrome::remote_access, m::Syndrome::none, vendor_of(why));
      return;
    }
  }
  if (strict_ && needs_receive && qp.receives_waiting() == 0) {
    strict_->found(Rule::receive_too_late, qp.qpn, qp.receives_taken,
                   fmt::format("a message of {} bytes found no receive: this one was not posted yet", message.length));
  }
  if (needs_receive && (qp.receives_waiting() == 0 || overlooks_receive(qp))) {
    PendingAnswer reply{};
    reply.local_qpn = qp.qpn;
    reply.header.kind = static_cast<std::uint8_t>(Kind::rnr);
    reply.header.msn = message.msn;
    reply.header.raddr = static_cast<std::uint64_t>(qp.rnr_wait_ns);
    ++counts_.rnr_sent;
    answer(link, reply);
    return;
  }
  const ReceiveWork* receive = nullptr;
  if (!write) {
    const DecodeFault fault = take_receive(qp);
    if (fault) {
      refuse(qp, link, message.msn, m::Syndrome::remote_operation, fault.syndrome);
      return;
    }
    if (qp.arriving_into->total_bytes < message.length) {
      refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::local_length);
      return;
    }
    receive = qp.arriving_into.get();
  }

  qp.arriving = {true,           static_cast<Kind>(message.kind),
                 message.flags,  message.msn,
                 message.rkey,   message.raddr,
                 message.length, 0,
                 message.imm_raw};
  Slot located = message;
  if (write) {
    into = stage(qp, into, {LandingPlace::What::write, message.rkey, message.raddr, message.length});
  } else if (strict_) {
    into = stage_receive(qp, message.length);
    if (into != nullptr) located.raddr = qp.arriving.raddr = into->address;
  }
  if (names_piece(message)) {
    (void)land_piece(qp, link, message, into, receive);
    return;
  }
  if ((message.flags & kCross) != 0) {
    if (!land_cross(qp, link, located, into, receive)) return;
    qp.arriving.landed = message.length;
  } else {
    std::uint32_t n = 0;
    if (!carried_bytes(message, 0, n)) {
      ++counts_.garbage;
      refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
      return;
    }
    if (!land(qp, link, located, into, receive, 0, n)) return;
    qp.arriving.landed = n;
  }
  if (qp.arriving.landed == qp.arriving.length && !land_later(qp, qp.arriving.length)) finish_payload(qp, qp.arriving);
}

void Engine::on_more(QueuePair& qp, Link& link, const Slot& message) {
  Arriving& arriving = qp.arriving;
  if (!arriving.active || message.msn != arriving.msn) {
    ++counts_.out_of_sequence;
    return;
  }
  if (link.lossy && message.raddr != arriving.landed) {
    ++counts_.out_of_sequence;
    if (message.raddr > arriving.landed) ask_again(qp, link);
    return;
  }
  std::uint32_t n = 0;
  const bool in_pool = names_piece(message);
  if (message.raddr != arriving.landed || message.length != arriving.length ||
      !(in_pool || carried_bytes(message, arriving.landed, n))) {
    ++counts_.garbage;
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return;
  }
  qp.again_sent = false;
  Registration* into = nullptr;
  if (arriving.kind == Kind::write) {
    // Looked up for every piece: a key that was revoked in the middle stops the message there.
    KeyFault why = KeyFault::none;
    into = check_remote(qp, arriving.rkey, arriving.raddr, arriving.length, STRAIT_NIC_REMOTE_WRITE, why);
    if (into == nullptr) {
      refuse(qp, link, message.msn, m::Syndrome::remote_access, m::Syndrome::none, vendor_of(why));
      return;
    }
    into = stage(qp, into, {LandingPlace::What::write, arriving.rkey, arriving.raddr, arriving.length});
  } else if (strict_) {
    into = stage_receive(qp, arriving.length);
  }
  if (in_pool) {
    (void)land_piece(qp, link, message, into, qp.arriving_into.get());
    return;
  }
  Slot located = message;  // where the whole message goes
  located.raddr = arriving.raddr;
  if (!land(qp, link, located, into, qp.arriving_into.get(), arriving.landed, n)) return;
  arriving.landed += n;
  if (arriving.landed == arriving.length && !land_later(qp, arriving.length)) finish_payload(qp, arriving);
}

// Payload that lies in the ring, or in the header itself.
bool Engine::land(QueuePair& qp, Link& link, const Slot& message, Registration* into, const ReceiveWork* receive,
                  std::uint32_t offset, std::uint32_t length) {
  if (length == 0) return true;
  counts_.bytes_landed += length;
  const bool in_slot = message.slots == 1;
  std::uint64_t contiguous = length;
  const std::byte* from = in_slot ? message.data : link.reader.payload(0, contiguous);
  const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, contiguous));
  if (into != nullptr) {
    const bool more = offset + length < message.length;
    bool landed = put_bytes(qp, *into, message.raddr + offset, from, first, offset == 0, more || first < length);
    if (landed && first < length) {
      landed = put_bytes(qp, *into, message.raddr + offset + first, link.reader.payload(first, contiguous),
                         length - first, false, more);
    }
    if (!landed) refuse(qp, link, message.msn, port_fault(*into), m::Syndrome::none);
    return landed;
  }
  const bool more = offset + length < message.length;
  bool landed = scatter(qp, *receive, offset, from, first, more || first < length);
  if (landed && first < length)
    landed = scatter(qp, *receive, offset + first, link.reader.payload(first, contiguous), length - first, more);
  if (!landed) refuse(qp, link, message.msn, m::Syndrome::remote_operation, m::Syndrome::local_protection);
  return landed;
}

bool Engine::scatter(QueuePair& qp, const ReceiveWork& receive, std::uint32_t skip, const std::byte* from,
                     std::uint32_t length, bool more) {
  if (skip == 0 && qp.port) qp.port->landing.forget();
  for (std::uint32_t i = 0; i < receive.n_pieces && length != 0; ++i) {
    const LocalPiece& piece = receive.pieces[i];
    if (skip >= piece.length_bytes) {
      skip -= piece.length_bytes;
      continue;
    }
    const std::uint32_t n = std::min(length, piece.length_bytes - skip);
    KeyFault why = KeyFault::none;
    const Registration* place =
        memory_.check(piece.lkey, qp.receive_pd(), piece.address + skip, n, STRAIT_NIC_LOCAL_WRITE, why);
    if (place == nullptr && strict_) strict_->key_unknown(piece.lkey, qp.qpn, qp.receives_taken);
    if (place == nullptr || !put_bytes(qp, *place, piece.address + skip, from, n, false, more || n < length))
      return false;
    from += n;
    length -= n;
    skip = 0;
  }
  return length == 0;
}

// Payload that is fetched from the requester's memory, straight to where it belongs: one copy.
bool Engine::land_cross(QueuePair& qp, Link& link, const Slot& message, Registration* into,
                        const ReceiveWork* receive) {
  Entries entries;
  List far;
  std::size_t n_far = 0;
  if (!read_list(link, message, entries, n_far) || message.length == 0) {
    ++counts_.garbage;
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return false;
  }
  List near;
  std::size_t n_near = 0;
  bool through_port = false;
  if (into != nullptr) {
    through_port = into->bytes == nullptr;
    if (!through_port) near[n_near++] = {into->at(message.raddr), message.length};
  } else {
    std::uint32_t left = message.length;
    for (std::uint32_t i = 0; i < receive->n_pieces && left != 0; ++i) {
      const LocalPiece& piece = receive->pieces[i];
      const std::uint32_t n = std::min(left, piece.length_bytes);
      KeyFault why = KeyFault::none;
      const Registration* place =
          memory_.check(piece.lkey, qp.receive_pd(), piece.address, n, STRAIT_NIC_LOCAL_WRITE, why);
      if (place == nullptr) {
        refuse(qp, link, message.msn, m::Syndrome::remote_operation, m::Syndrome::local_protection);
        return false;
      }
      through_port = through_port || place->bytes == nullptr;
      open_guards(*place, piece.address, n);
      if (!through_port) near[n_near++] = {place->at(piece.address), n};
      left -= n;
    }
  }
  const bool mapped = !through_port && find_borrowed(link, std::span(entries.data(), n_far), far);
  Status moved;
  if (mapped) {
    copy_lists(std::span(near.data(), n_near), std::span(far.data(), n_far));
    ++counts_.mapped_copies;
  } else {
    to_iovecs(entries, n_far, far);
    const std::span<const iovec> theirs(far.data(), n_far);
    moved = through_port ? fetch_through_port(link, message, into, receive, theirs)
                         : sys::read_process(link.peer_pid, std::span(near.data(), n_near), theirs, *config_.calls);
  }
  if (!moved) {
    // The requester's list was wrong, or it unmapped its memory: its own fault, and nothing here is damaged.
    refuse(qp, link, message.msn, into != nullptr ? port_fault(*into) : m::Syndrome::remote_operation,
           m::Syndrome::none, kVendorCopyFailed);
    return false;
  }
  __atomic_thread_fence(__ATOMIC_RELEASE);
  counts_.bytes_landed += message.length;
  ++counts_.cross_copies;
  return true;
}

// Memory without an address in this process: fetched in pieces and handed to its port.
Status Engine::fetch_through_port(Link& link, const Slot& message, Registration* into, const ReceiveWork* receive,
                                  std::span<const iovec> far) {
  bounce_.resize(kBounceBytes);
  std::uint32_t done = 0;
  for (const iovec& piece : far) {
    for (std::size_t at = 0; at < piece.iov_len; at += kBounceBytes) {
      const std::size_t n = std::min(kBounceBytes, piece.iov_len - at);
      const iovec near{bounce_.data(), n};
      const iovec from{static_cast<char*>(piece.iov_base) + at, n};
      STRAIT_CHECK(sys::read_process(link.peer_pid, std::span(&near, 1), std::span(&from, 1), *config_.calls));
      if (into != nullptr) {
        if (!write_bytes(*into, message.raddr + done, bounce_.data(), n))
          return fail(Code::device, "a memory port refused a write");
      } else {
        std::uint32_t skip = done;
        std::size_t written = 0;
        for (std::uint32_t i = 0; i < receive->n_pieces && written != n; ++i) {
          const LocalPiece& place = receive->pieces[i];
          if (skip >= place.length_bytes) {
            skip -= place.length_bytes;
            continue;
          }
          const std::size_t room = std::min<std::size_t>(n - written, place.length_bytes - skip);
          if (!write_bytes(*memory_.find(place.lkey), place.address + skip, bounce_.data() + written, room)) {
            return fail(Code::device, "a memory port refused a write");
          }
          written += room;
          skip = 0;
        }
      }
      done += static_cast<std::uint32_t>(n);
    }
  }
  return {};
}

void Engine::finish_payload(QueuePair& qp, const Arriving& what) {
  deliver(qp, what);
  qp.arriving.active = false;
  executed(qp);
}

// A message has landed whole: what its last packet says is done, and who waits for it is told.
void Engine::deliver(QueuePair& qp, const Arriving& what) {
  const bool write = what.kind == Kind::write;
  const bool imm = (what.flags & kHasImm) != 0;
  const bool invalidate = (what.flags & kInvalidate) != 0;
  if (invalidate && !invalidate_key(qp, wire::be32::from_raw(what.imm_raw).value())) {
    // The sender is not told: its message is here and is acknowledged like any other. This side fails.
    fail_receive(qp, m::Syndrome::remote_invalid_request);
    fail_queue(qp);
    return;
  }
  if (!write || imm) {
    Completion completion;
    completion.opcode = write        ? m::CqeOpcode::responder_write_imm
                        : imm        ? m::CqeOpcode::responder_send_imm
                        : invalidate ? m::CqeOpcode::responder_send_inval
                                     : m::CqeOpcode::responder_send;
    completion.byte_count = what.length;
    completion.imm_raw = imm || invalidate ? what.imm_raw : 0;
    completion.solicited = (what.flags & kSolicited) != 0;
    write_receive_completion(qp, completion);
  }
}

void Engine::on_read(QueuePair& qp, Link& link, const Slot& message) {
  Registration* from = nullptr;
  if (message.length > m::kMaxMessageBytes) {
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return;
  }
  if (message.length != 0) {
    KeyFault why = KeyFault::not_allowed;
    from = (qp.access & STRAIT_NIC_REMOTE_READ) == 0
               ? nullptr
               : check_remote(qp, message.rkey, message.raddr, message.length, STRAIT_NIC_REMOTE_READ, why);
    if (from == nullptr) {
      refuse(qp, link, message.msn, m::Syndrome::remote_access, m::Syndrome::none, vendor_of(why));
      return;
    }
  }
  PendingAnswer reply{};
  reply.local_qpn = qp.qpn;
  reply.header.kind = static_cast<std::uint8_t>(Kind::read_data);
  reply.header.msn = message.msn;
  reply.header.length = message.length;
  reply.header.rkey = message.rkey;
  reply.header.raddr = message.raddr;
  reply.base = message.imm_raw;
  // Asked for again, the requester may have its answer by now and use the memory for something else: it alone can tell,
  // so the bytes go through the ring.
  const bool first_time = message.msn == qp.msn_expected;
  if ((message.flags & kCross) != 0 && first_time && from != nullptr && from->bytes != nullptr) {
    Entries entries;
    List far;
    std::size_t n_far = 0;
    const iovec near{from->at(message.raddr), message.length};
    open_guards(*from, message.raddr, message.length);
    if (!read_list(link, message, entries, n_far)) {
      ++counts_.garbage;
      refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
      return;
    }
    if (find_borrowed(link, std::span(entries.data(), n_far), far)) {
      copy_lists(std::span(far.data(), n_far), std::span(&near, 1));
      ++counts_.mapped_copies;
    } else {
      to_iovecs(entries, n_far, far);
      if (!sys::write_process(link.peer_pid, std::span(&near, 1), std::span(far.data(), n_far), *config_.calls)) {
        refuse(qp, link, message.msn, m::Syndrome::remote_operation, m::Syndrome::none, kVendorCopyFailed);
        return;
      }
    }
    reply.header.flags = kCross;
    reply.header.raddr = 0;
    ++counts_.cross_copies;
  }
  counts_.bytes_read += message.length;
  if (first_time) executed(qp);
  answer(link, reply);
}

void Engine::on_atomic(QueuePair& qp, Link& link, const Slot& message) {
  const bool masked = (message.flags & kMasked) != 0;
  const std::uint32_t width = message.length;
  if ((width != 4 && width != 8) || message.slots != (masked ? 2 : 1) || message.raddr % width != 0) {
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return;
  }
  KeyFault why = KeyFault::not_allowed;
  Registration* on = (qp.access & STRAIT_NIC_REMOTE_ATOMIC) == 0
                         ? nullptr
                         : check_remote(qp, message.rkey, message.raddr, width, STRAIT_NIC_REMOTE_ATOMIC, why);
  if (on == nullptr) {
    refuse(qp, link, message.msn, m::Syndrome::remote_access, m::Syndrome::none, vendor_of(why));
    return;
  }
  // The address the program sees is aligned, but what it was registered at need not be.
  if (on->bytes != nullptr && reinterpret_cast<std::uintptr_t>(on->at(message.raddr)) % width != 0) {
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return;
  }
  AtomicRequest request;
  request.swap = (message.flags & kSwap) != 0;
  request.width = width;
  std::memcpy(&request.operand, message.data, 8);
  std::memcpy(&request.compare, message.data + 8, 8);
  if (masked) {
    std::array<std::uint64_t, 2> masks;
    link.reader.copy_payload(0, masks.data(), sizeof masks);
    request.swap_mask = masks[0];
    request.compare_mask = masks[1];
  } else if (!request.swap) {
    request.compare_mask = 0;
  }
  std::uint64_t old = 0;
  open_guards(*on, message.raddr, width);
  if (!run_atomic(*on, message.raddr, request, old)) {
    refuse(qp, link, message.msn, port_fault(*on), m::Syndrome::none);
    return;
  }
  ++counts_.atomics;
  executed(qp);
  PendingAnswer reply{};
  reply.local_qpn = qp.qpn;
  reply.header.kind = static_cast<std::uint8_t>(Kind::atomic_result);
  reply.header.msn = message.msn;
  reply.header.length = width;
  std::memcpy(reply.header.data, &old, sizeof old);
  if (link.lossy) remember(qp, reply);
  answer(link, reply);
}

// A fatal answer: the peer's work request fails with it, and this side's queue pair goes into error too, as on
// hardware.
void Engine::refuse(QueuePair& qp, Link& link, std::uint32_t msn, m::Syndrome to_peer, m::Syndrome for_receive,
                    std::uint8_t vendor) {
  PendingAnswer reply{};
  reply.local_qpn = qp.qpn;
  reply.header.kind = static_cast<std::uint8_t>(Kind::nak);
  reply.header.msn = msn;
  reply.header.length = static_cast<std::uint32_t>(to_peer);
  reply.header.imm_raw = vendor;
  ++counts_.naks_sent;
  answer(link, reply);
  qp.arriving.active = false;
  refused(qp, to_peer, for_receive);
}

// This side's queue pair goes into error with the peer's request. The program hears of it by a completion where a
// receive was involved, by an event where none was.
void Engine::refused(QueuePair& qp, m::Syndrome to_peer, m::Syndrome for_receive) {
  if (for_receive != m::Syndrome::none) {
    fail_receive(qp, for_receive);
  } else {
    raise(to_peer == m::Syndrome::remote_access            ? AsyncKind::qp_access_error
          : to_peer == m::Syndrome::remote_invalid_request ? AsyncKind::qp_request_error
                                                           : AsyncKind::qp_fatal,
          qp);
  }
  fail_queue(qp);
}

void Engine::fail_receive(QueuePair& qp, m::Syndrome syndrome) {
  Completion completion;
  completion.opcode = m::CqeOpcode::responder_error;
  completion.syndrome = syndrome;
  if (gone_) completion.vendor_syndrome = kVendorDeviceGone;
  write_receive_completion(qp, completion);
}

void Engine::answer(Link& link, const PendingAnswer& reply) {
  PendingAnswer mine = reply;
  if (link.answers.empty() && try_answer(link, mine)) {
    link.ring();
    return;
  }
  if (link.answers.size() >= kMaxAnswers) {
    link.flooded = true;  // given up by receive(): not here, in the middle of a message
    return;
  }
  link.answers.push_back(mine);
}

// False: the ring is full and some of the answer is left.
bool Engine::try_answer(Link& link, PendingAnswer& reply) {
  QueuePair* qp = reply.local_qpn != 0 ? find_qp(reply.local_qpn) : nullptr;
  if (reply.local_qpn != 0 && qp == nullptr) return true;  // destroyed meanwhile: nobody's answer any more
  const bool data = static_cast<Kind>(reply.header.kind) == Kind::read_data && (reply.header.flags & kCross) == 0;
  Registration* from = nullptr;
  if (data && reply.header.length != 0) {
    KeyFault why = KeyFault::none;
    from = check_remote(*qp, reply.header.rkey, reply.header.raddr, reply.header.length, STRAIT_NIC_REMOTE_READ, why);
    if (from == nullptr) {  // revoked while the answer waited
      reply.header.kind = static_cast<std::uint8_t>(Kind::nak);
      reply.header.length = static_cast<std::uint32_t>(m::Syndrome::remote_access);
      reply.header.imm_raw = vendor_of(why);
      return try_answer(link, reply);
    }
  }
  do {
    const std::uint32_t n = data ? std::min(reply.header.length - reply.sent_bytes, kRingPayloadBytes) : 0;
    const bool in_slot = n <= kInSlotBytes;
    const std::uint32_t slots = in_slot ? 1 : slots_with(n);
    if (!link.writer.has_room(slots)) return false;
    Slot& header = link.writer.header();
    const Slot& told = reply.header;
    header.kind = told.kind;
    header.flags = told.flags;
    header.pieces = 0;
    header.msn = told.msn;
    header.rkey = 0;
    header.raddr = data ? reply.base + reply.sent_bytes : told.raddr;
    header.length = data ? reply.base + told.length : told.length;
    header.imm_raw = told.imm_raw;
    if (qp != nullptr) {
      stamp(*qp, header);
    } else {
      header.to_qpn = told.to_qpn;
      header.from_qpn = told.from_qpn;
      header.ack = 0;
    }
    if (!data) {
      std::memcpy(header.data, told.data, sizeof header.data);
    } else if (n != 0) {
      bool copied = true;
      const auto take = [&](std::uint32_t at, std::byte* into, std::uint64_t bytes) {
        const std::uint64_t tag = std::uint64_t{told.msn} << 32 | reply.base;
        return get_bytes(*qp, *from, tag, told.raddr + at, into, bytes, at, told.length - at);
      };
      if (in_slot) {
        copied = take(reply.sent_bytes, header.data, n);
      } else {
        std::uint64_t contiguous = 0;
        std::byte* to = link.writer.payload(0, contiguous);
        const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, contiguous));
        copied = take(reply.sent_bytes, to, first);
        if (copied && first < n)
          copied = take(reply.sent_bytes + first, link.writer.payload(first, contiguous), n - first);
      }
      if (!copied) {
        header.kind = static_cast<std::uint8_t>(Kind::nak);
        header.length = static_cast<std::uint32_t>(port_fault(*from));
        reply.sent_bytes = told.length - n;
      }
    }
    reply.sent_bytes += n;
    if (data && reply.sent_bytes < told.length) header.flags |= kMore;
    publish(link, qp, slots);
    ++counts_.messages_sent;
  } while (data && reply.sent_bytes < reply.header.length);
  return true;
}

void Engine::flush_answers(Link& link) {
  while (!link.answers.empty() && try_answer(link, link.answers.front())) link.answers.pop_front();
  link.ring();
}

// Acknowledgements wait one pass: a message that goes the other way meanwhile carries them for nothing.
int Engine::flush_acks() {
  int sent = 0;
  for (QueuePair* qp : ack_now_) {
    if (!qp->ack_due || qp->link == nullptr || qp->link->dead) continue;
    if (!qp->link->writer.has_room(1)) {
      ack_due_.push_back(qp);
      continue;
    }
    Slot& header = qp->link->writer.header();
    header.kind = static_cast<std::uint8_t>(Kind::ack);
    header.flags = 0;
    header.pieces = 0;
    header.msn = 0;
    header.to_qpn = qp->remote_qpn;
    header.from_qpn = qp->qpn;
    header.ack = qp->msn_expected;
    qp->ack_due = false;
    publish(*qp->link, qp, 1);
    qp->link->ring();
    ++counts_.acks_sent;
    ++counts_.messages_sent;
    ++sent;
  }
  ack_now_.clear();
  return sent;
}

void Engine::write_receive_completion(QueuePair& qp, const Completion& completion) {
  Completion mine = completion;
  mine.qpn = qp.qpn;
  mine.user_index = qp.user_index;
  if (qp.srq == nullptr) {
    mine.wqe_counter = static_cast<std::uint16_t>(qp.receives_taken++);
  } else {
    if (!take_entry(qp)) return;
    mine.wqe_counter = *qp.srq_entry;
    const SrqRequest& shared = qp.srq->request;
    const bool xrc = shared.xrcd != 0;
    if (xrc) mine.user_index = shared.user_index;
    if (xrc ? shared.says_srqn : qp.says_srqn) mine.user_index = qp.srq->number;
    qp.srq_entry.reset();
    if (xrc) return post_completion(*qp.srq->cq, mine);
  }
  post_completion(*qp.recv_cq, mine);
}

void Engine::post_completion(CompletionQueue& cq, const Completion& completion) {
  overrun_on_purpose(cq);
  if (!cq.write(completion)) {
    ++counts_.completion_overruns;
    report_overrun(cq, completion.qpn, completion.wqe_counter);
    return;
  }
  ++counts_.completions;
  if (completion.syndrome != m::Syndrome::none) ++counts_.error_completions;
  if (cq.events()) (void)tell(cq);
}

}  // namespace strait::soft::nic
