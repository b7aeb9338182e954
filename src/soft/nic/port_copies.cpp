// SPDX-License-Identifier: Apache-2.0
// Copies of ports that go on by themselves: the requester reads pieces of its work requests ahead into the link's pool,
// the owner writes them from there, and neither waits for the other or for a copy.
//
// Order. Messages leave in the order of the work requests, each when its bytes are in the pool. The owner begins to
// land several writes of a queue pair at once, and finishes them in order: nothing else of that queue pair is looked at
// before all of them have ended, and an acknowledgement or completion comes after the bytes.
//
// Life. A copy belongs to the engine from its beginning to its end: a queue pair or link that goes leaves it to
// left_behind_, and the registration it reads or writes is not given back before (in_flight).
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "sys/pause.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
using State = PortCopy::State;

constexpr std::int64_t kCopySpinNs = 1'000'000;  // since the last one began or ended

}  // namespace

bool Engine::begin_copy(PortCopy& copy, Registration& registration, std::uint64_t address, std::uint64_t length_bytes,
                        bool into_pool) {
  const strait_memory_port& port = *registration.port;
  copy.memory->prepare_for(port);
  std::byte* const host = copy.memory->bytes(copy.piece.piece);
  const std::int32_t answer = into_pool ? port.start_read(port.context, address, host, length_bytes, &copy.ticket)
                                        : port.start_write(port.context, address, host, length_bytes, &copy.ticket);
  if (answer != 0) {
    if (answer == kPortRevoked) registration.revoked = true;
    copy.state = State::failed;
    return false;
  }
  copy.state = State::under_way;
  copy.port = &port;
  copy.key = registration.key;
  ++registration.in_flight;
  ++counts_.port_copies;
  copies_moved_ns_ = sys::now_ns();
  return true;
}

// True: it has ended, now or before.
bool Engine::look_at(PortCopy& copy) {
  if (copy.state != State::under_way) return true;
  const std::int32_t answer = copy.port->done(copy.port->context, copy.ticket);
  if (answer == 0) return false;
  Registration* const registration = memory_.find(copy.key);
  if (registration != nullptr) {
    --registration->in_flight;
    if (answer == -kPortRevoked) registration->revoked = true;
  }
  copy.state = answer > 0 ? State::ended : State::failed;
  copies_moved_ns_ = sys::now_ns();
  return true;
}

void Engine::leave_behind(PortCopy& copy) {
  if (!look_at(copy)) left_behind_.push_back(std::move(copy));
}

// ---- The requester --------------------------------------------------------------------------------------------------

bool Engine::goes_through_pool(QueuePair& qp, const SendWork& work) {
  if (work.total_bytes <= kRingPayloadBytes || work.n_pieces != 1 || work.pieces[0].in_ring || !is_payload(work.opcode))
    return false;
  const Registration* const from = memory_.find(work.pieces[0].lkey);
  return from != nullptr && from->bytes == nullptr && from->port != nullptr && copies_by_itself(*from->port) &&
         pool_of(*qp.link) != nullptr;
}

// Begins to read what will be sent, as far as there are pieces.
void Engine::read_ahead(QueuePair& qp) {
  PortPieces& mine = port_of(qp);
  PiecePool& pool = *qp.link->pool;
  if (static_cast<std::int64_t>(mine.ahead - qp.next) < 0) {
    mine.ahead = qp.next;
    mine.ahead_bytes = 0;
  }
  SendWork work;
  while (mine.ahead != qp.producer) {
    if (decode_work(qp, mine.ahead, work)) return;  // it completes with an error in its turn
    // What a fence waits for, or a key becomes, this reading must not be ahead of.
    if ((work.fence && (mine.ahead != qp.next || qp.answers_awaited != 0)) || work.opcode == m::Opcode::umr) return;
    if (!goes_through_pool(qp, work)) {
      mine.ahead += work.blocks;
      mine.ahead_bytes = 0;
      continue;
    }
    const LocalPiece& from = work.pieces[0];
    KeyFault why = KeyFault::none;
    Registration* const registration = memory_.check(from.lkey, qp.pd, from.address, from.length_bytes, 0, why);
    if (registration == nullptr || registration->closing) return;
    const auto taken = pool.take();
    if (!taken) return;
    PieceOut piece{
        mine.ahead,
        mine.ahead_bytes,
        static_cast<std::uint32_t>(std::min<std::uint64_t>(work.total_bytes - mine.ahead_bytes, kPortPieceBytes)),
        {}};
    piece.copy.memory = pool.memory();
    piece.copy.piece = *taken;
    (void)begin_copy(piece.copy, *registration, from.address + piece.offset, piece.length_bytes, true);
    note_copying(qp);
    mine.ahead_bytes += piece.length_bytes;
    mine.out.push_back(std::move(piece));
    if (mine.ahead_bytes == work.total_bytes) {
      mine.ahead += work.blocks;
      mine.ahead_bytes = 0;
    }
  }
}

Engine::Sending Engine::send_pieces(QueuePair& qp, const SendWork& work, DecodeFault& fault) {
  Link& link = *qp.link;
  const bool write = work.opcode == m::Opcode::rdma_write || work.opcode == m::Opcode::rdma_write_imm;
  while (true) {
    read_ahead(qp);
    PortPieces& mine = *qp.port;
    if (mine.out.empty() || mine.out.front().index != qp.next || mine.out.front().offset != qp.streamed_bytes ||
        !look_at(mine.out.front().copy) || !link.writer.has_room(1)) {
      if (qp.streaming) link.ring();
      return Sending::blocked;
    }
    PieceOut& piece = mine.out.front();
    if (piece.copy.state == State::failed) {
      fault = {unreadable(work), "a memory port refused a read", 0};
      return Sending::fault;
    }
    const bool last = piece.offset + piece.length_bytes == work.total_bytes;
    Slot& header = link.writer.header();
    header.kind = static_cast<std::uint8_t>(qp.streaming ? Kind::more : write ? Kind::write : Kind::send);
    header.flags = static_cast<std::uint8_t>(payload_flags(work) | kCross | (last ? 0 : kMore));
    header.pieces = 1;
    header.msn = qp.msn_next;
    header.rkey = work.rkey;
    header.raddr = qp.streaming ? piece.offset : work.raddr;
    header.length = work.total_bytes;
    header.imm_raw = work.imm_raw;
    const ListEntry entry{PieceMemory::name(piece.copy.piece.piece, piece.copy.piece.use), piece.length_bytes,
                          kPoolKey};
    std::memcpy(header.data, &entry, sizeof entry);
    stamp(qp, header);
    publish(link, &qp, 1);
    ++counts_.messages_sent;
    link.pool->lent(piece.copy.piece);
    while (!mine.lent.empty() && !link.pool->has(mine.lent.front().piece)) mine.lent.pop_front();
    mine.lent.push_back({qp.msn_next, piece.copy.piece});
    qp.streamed_bytes += piece.length_bytes;
    qp.streaming = !last;
    mine.out.pop_front();
    if (!last) continue;
    qp.streamed_bytes = 0;
    return Sending::sent;
  }
}

// What was read ahead is not sent; the memory counts as it is when the work request is looked at again.
void Engine::forget_ahead(QueuePair& qp) {
  if (!qp.port) return;
  for (PieceOut& piece : qp.port->out) {
    const PiecePool::Taken taken = piece.copy.piece;
    const bool ended = look_at(piece.copy);
    if (ended && qp.link != nullptr && qp.link->pool) qp.link->pool->give_back(taken);
    if (!ended) left_behind_.push_back(std::move(piece.copy));
  }
  qp.port->out.clear();
  qp.port->ahead = qp.next;
  qp.port->ahead_bytes = 0;
}

// Pieces of messages from `msn` on, which the peer will not look at.
void Engine::take_back(QueuePair& qp, std::uint32_t msn) {
  if (!qp.port) return;
  std::deque<PieceLent>& lent = qp.port->lent;
  while (!lent.empty() && !before(lent.back().msn, msn)) {
    if (qp.link != nullptr && qp.link->pool) qp.link->pool->give_back(lent.back().piece);
    lent.pop_back();
  }
}

// ---- The owner ------------------------------------------------------------------------------------------------------

// Copies into this queue pair's memory are under way: only what can be begun behind them is looked at now, and that is
// more of the same which will be accepted. Whatever is to be refused waits, since a refusal says that all before it is
// done.
bool Engine::must_wait(Link& link, const Slot& message) {
  QueuePair* const qp = find_qp(message.to_qpn);
  if (qp == nullptr || !qp->port || qp->port->in.empty() || qp->remote_qpn != message.from_qpn) return false;
  const auto kind = static_cast<Kind>(message.kind);
  if (kind > Kind::more) return false;
  if (!names_piece(message) || qp->port->in.back().copy.state == State::failed || qp->port->in.back().stale ||
      link.their_pool == nullptr)
    return true;
  const Arriving& arriving = qp->arriving;
  if (kind == Kind::more) {
    return !arriving.active || arriving.kind != Kind::write || message.msn != arriving.msn ||
           message.raddr != arriving.landed || !writes_by_itself(*qp, arriving.rkey, arriving.raddr, arriving.length);
  }
  return kind != Kind::write || (message.flags & kHasImm) != 0 || arriving.active ||
         message.msn != qp->msn_expected + qp->port->behind || message.length > m::kMaxMessageBytes ||
         !writes_by_itself(*qp, message.rkey, message.raddr, message.length);
}

Registration* Engine::writes_by_itself(QueuePair& qp, std::uint32_t rkey, std::uint64_t raddr, std::uint32_t length) {
  KeyFault why = KeyFault::none;
  if ((qp.access & STRAIT_NIC_REMOTE_WRITE) == 0) return nullptr;
  Registration* const into = check_remote(qp, rkey, raddr, length, STRAIT_NIC_REMOTE_WRITE, why);
  if (into == nullptr || into->bytes != nullptr || into->port == nullptr || into->closing) return nullptr;
  return copies_by_itself(*into->port) ? into : nullptr;
}

// Payload in a piece of the peer's pool, for [offset, ...) of the message that is arriving. False: it was refused.
bool Engine::land_piece(QueuePair& qp, Link& link, const Slot& message, Registration* into,
                        const ReceiveWork* receive) {
  Arriving& arriving = qp.arriving;
  ListEntry entry;
  std::memcpy(&entry, message.data, sizeof entry);
  const std::uint32_t n = entry.length_bytes;
  const auto piece = PieceMemory::piece_at(entry.address & UINT32_MAX, n);
  const bool more = (message.flags & kMore) != 0;
  const bool sane = names_piece(message) && piece && n <= arriving.length - arriving.landed &&
                    more == (n < arriving.length - arriving.landed);
  if (link.their_pool == nullptr) read_loans(link);  // it was sent before the message that names it
  PieceIn landing{arriving, !more, false, {}};
  if (!sane || link.their_pool == nullptr) {
    ++counts_.garbage;
    if (qp.port && !qp.port->in.empty()) {  // refused after what was begun before it
      landing.stale = true;
      qp.port->in.push_back(std::move(landing));
      return false;
    }
    refuse(qp, link, message.msn, m::Syndrome::remote_invalid_request, m::Syndrome::none);
    return false;
  }
  PortCopy& copy = landing.copy;
  copy.memory = link.their_pool;
  copy.piece = {*piece, static_cast<std::uint32_t>(entry.address >> 32)};
  PieceMemory::Words& words = copy.memory->words(*piece);
  // Another payload lies there by now: the requester gave this one up.
  landing.stale = words.use.load(std::memory_order_acquire) != copy.piece.use;
  counts_.bytes_landed += n;
  ++counts_.cross_copies;
  const bool by_itself = into != nullptr && into->bytes == nullptr && copies_by_itself(*into->port) && !into->closing;
  if (by_itself || landing.stale) {
    if (!landing.stale) (void)begin_copy(copy, *into, arriving.raddr + arriving.landed, n, false);
    arriving.landed += n;
    if (!more) {
      arriving.active = false;
      ++port_of(qp).behind;
    }
    landing.copy.key = into != nullptr ? into->key : 0;
    port_of(qp).in.push_back(std::move(landing));
    note_copying(qp);
    return true;
  }
  const std::byte* const from = copy.memory->bytes(*piece);
  const bool landed = into != nullptr ? write_far_bytes(*into, arriving.raddr + arriving.landed, from, n)
                                      : scatter(qp, *receive, arriving.landed, from, n, more);
  words.done.store(copy.piece.use, std::memory_order_release);
  if (!landed) {
    const bool revoked = into != nullptr && into->revoked;
    refuse(qp, link, message.msn, revoked ? m::Syndrome::remote_access : m::Syndrome::remote_operation,
           into != nullptr ? m::Syndrome::none : m::Syndrome::local_protection);
    return false;
  }
  arriving.landed += n;
  if (!more && !land_later(qp, arriving.length)) finish_payload(qp, arriving);
  return true;
}

// In the order in which they came. True: something was finished.
bool Engine::finish_pieces(QueuePair& qp) {
  bool any = false;
  while (qp.port && !qp.port->in.empty() && look_at(qp.port->in.front().copy)) {
    any = true;
    PieceIn piece = std::move(qp.port->in.front());
    qp.port->in.pop_front();
    if (piece.stale || piece.copy.state == State::failed) {
      const Registration* const into = memory_.find(piece.copy.key);
      refuse(qp, *qp.link, piece.message.msn,
             into == nullptr || into->revoked ? m::Syndrome::remote_access : m::Syndrome::remote_operation,
             m::Syndrome::none, piece.stale ? kVendorCopyFailed : std::uint8_t{0});
      return true;
    }
    piece.copy.memory->words(piece.copy.piece.piece).done.store(piece.copy.piece.use, std::memory_order_release);
    if (!piece.last) continue;
    --qp.port->behind;
    deliver(qp, piece.message);
    executed(qp);
  }
  return any;
}

// ---- Both -----------------------------------------------------------------------------------------------------------

void Engine::note_copying(QueuePair& qp) {
  if (std::ranges::find(copying_, &qp) == copying_.end()) copying_.push_back(&qp);
}

int Engine::finish_copies() {
  int done = 0;
  std::erase_if(left_behind_, [&](PortCopy& copy) {
    if (!look_at(copy)) return false;
    for (const auto& link : links_) {
      if (link->pool && link->pool->memory() == copy.memory) link->pool->give_back(copy.piece);
    }
    ++done;
    return true;
  });
  for (std::size_t i = 0; i < copying_.size(); ++i) {  // refused ones stay in the list until the end
    QueuePair& qp = *copying_[i];
    if (finish_pieces(qp)) ++done;
    if (qp.port->out.empty() || !look_at(qp.port->out.front().copy)) continue;
    done += service_send(qp);
  }
  std::erase_if(copying_, [](const QueuePair* qp) {
    return qp->port->in.empty() && std::ranges::none_of(qp->port->out, [](const PieceOut& piece) {
             return piece.copy.state == State::under_way;
           });
  });
  if (done != 0) {
    for (const auto& link : links_) link->waiting = false;
  }
  return done;
}

bool Engine::copies_end_soon() const {
  return copies_under_way() && sys::now_ns() - copies_moved_ns_ < kCopySpinNs;
}

// Nothing more of it is sent or landed; what a copy has begun it ends.
void Engine::abandon_pieces(QueuePair& qp) {
  if (!qp.port) return;
  forget_ahead(qp);
  if (qp.link != nullptr && qp.link->pool) {
    for (const PieceLent& lent : qp.port->lent) qp.link->pool->give_back(lent.piece);
  }
  qp.port->lent.clear();
  for (PieceIn& piece : qp.port->in) leave_behind(piece.copy);
  qp.port->in.clear();
  qp.port->behind = 0;
}

// The engine goes, and with it the pools.
void Engine::await_copies() {
  for (QueuePair* const qp : active_) abandon_pieces(*qp);
  // A port ends every copy, if only with an error.
  for (std::uint32_t turn = 0; !left_behind_.empty(); ++turn) {
    std::erase_if(left_behind_, [&](PortCopy& copy) { return look_at(copy); });
    sys::pause_turn(turn);
  }
}

}  // namespace strait::soft::nic
