// SPDX-License-Identifier: Apache-2.0
// Strict: what is written, sent and read lands late. They are collected beside their target; when all is there some
// passes go by, in which the target's pages cannot be read; then the bytes land, line by line in random order, and only
// then is anybody told.
#include "soft/nic/engine.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::int64_t kLatestNs = 2'000'000;

// All links to the peer: two engines that connect to each other at the same time have one each, and what follows the
// payload may come by either.
template <class Links>
void pause_links_to(const EngineId& peer, Links& links, bool paused) {
  for (const auto& link : links) {
    if (link->peer == peer) link->paused = paused;
  }
}

}  // namespace

// Where bytes go for now; the registration itself when nothing is to be late.
Registration* Engine::stage(QueuePair& qp, Registration* real, const LandingPlace& place) {
  if (!strict_ || real == nullptr || real->bytes == nullptr || place.length == 0) return real;
  const bool answer = place.what == LandingPlace::What::answer;
  std::unique_ptr<Landing>& staged = answer ? qp.answer : qp.landing;
  if (staged && staged->place.what == place.what && staged->place.wqe == place.wqe &&
      staged->place.address == place.address && staged->place.length == place.length) {
    raise_guard(qp, *staged);
    return &staged->shadow;
  }
  answer ? abandon_answer(qp) : abandon_landing(qp);
  staged = std::make_unique<Landing>();
  Landing& landing = *staged;
  landing.place = place;
  landing.bytes.resize(place.length);
  landing.shadow.key = real->key;
  landing.shadow.address = place.address;
  landing.shadow.length_bytes = place.length;
  landing.shadow.bytes = landing.bytes.data();
  // Only memory that the program reaches by this very address; an accelerator's it cannot read anyway.
  if (reinterpret_cast<std::uint64_t>(real->bytes) == real->address) landing.where = real->at(place.address);
  raise_guard(qp, landing);
  return &landing.shadow;
}

// A message whose receive is one piece of host memory. Null: it goes there by the ordinary way, which also says what is
// wrong with it.
Registration* Engine::stage_receive(QueuePair& qp, std::uint32_t length) {
  if (!strict_ || length == 0 || qp.arriving_into->n_pieces != 1) return nullptr;
  const LocalPiece& piece = qp.arriving_into->pieces[0];
  if (length > piece.length_bytes) return nullptr;
  KeyFault why = KeyFault::none;
  Registration* const real =
      memory_.check(piece.lkey, qp.receive_pd(), piece.address, length, STRAIT_NIC_LOCAL_WRITE, why);
  if (real == nullptr || real->bytes == nullptr) return nullptr;
  return stage(qp, real, {LandingPlace::What::receive, piece.lkey, piece.address, length});
}

// The same for what a read brings.
Registration* Engine::stage_answer(QueuePair& qp, const Sent& sent, const SendWork& work) {
  if (!strict_ || sent.opcode != m::Opcode::rdma_read || work.n_pieces != 1) return nullptr;
  const LocalPiece& piece = work.pieces[0];
  KeyFault why = KeyFault::none;
  Registration* const real =
      memory_.check(piece.lkey, qp.pd, piece.address, piece.length_bytes, STRAIT_NIC_LOCAL_WRITE, why);
  if (real == nullptr || real->bytes == nullptr) return nullptr;
  return stage(qp, real, {LandingPlace::What::answer, piece.lkey, piece.address, piece.length_bytes, sent.index});
}

// Some of it has come, perhaps after a long silence.
void Engine::raise_guard(const QueuePair& qp, Landing& landing) {
  landing.heard_ns = sys::now_ns();
  if (landing.where == nullptr || landing.guarded) return;
  landing.guarded = true;
  const std::uint32_t message = qp.packets ? qp.packets->msn : qp.msn_expected;
  if (landing.place.what == LandingPlace::What::answer) {
    strict_->guard_answer(landing.where, landing.place.length, qp.qpn, landing.place.wqe);
  } else {
    strict_->guard(landing.where, landing.place.length, qp.qpn, message);
  }
}

void Engine::lower_guard(Landing& landing) {
  if (!landing.guarded) return;
  landing.guarded = false;
  strict_->unguard(landing.where, landing.place.length);
}

// A peer that was closed or died in the middle of a put leaves its queue pair behind here, which hears nothing more and
// is told nothing. What has come of the put stays beside its target, in case the rest comes after all.
void Engine::lower_silent_guards(std::int64_t now) {
  if (!strict_) return;
  for (QueuePair* const qp : active_) {
    for (const auto* staged : {&qp->landing, &qp->answer}) {
      if (silence_left_ns(staged->get(), now) <= 1) lower_guard(**staged);
    }
  }
}

std::int64_t Engine::silence_left_ns(const Landing* landing, std::int64_t now) const {
  if (landing == nullptr || !landing->guarded || landing->waiting) return INT64_MAX;
  return std::max<std::int64_t>(landing->heard_ns + strict_->silence_ns() - now, 1);
}

// The program may do with this memory what it likes from now on, unmap it too.
void Engine::give_back_landings(const std::byte* bytes, std::uint64_t length) {
  if (!strict_ || bytes == nullptr) return;
  for (QueuePair* const qp : active_) {
    for (const auto* staged : {&qp->landing, &qp->answer}) {
      if (!*staged || (*staged)->where == nullptr) continue;
      Landing& landing = **staged;
      if (bytes >= landing.where + landing.place.length || landing.where >= bytes + length) continue;
      lower_guard(landing);
      landing.where = nullptr;
    }
  }
}

// The last byte of a peer's payload is here, which is so long: a packet of a message does not say how long all of it
// is. True: what follows it waits, and finish_landings() goes on with it.
bool Engine::land_later(QueuePair& qp, std::uint32_t length) {
  if (!qp.landing) return false;
  qp.landing->bytes.resize(std::min<std::size_t>(length, qp.landing->bytes.size()));
  wait_to_land(qp, *qp.landing);
  return true;
}

// All that a read asked for is here.
bool Engine::answer_later(QueuePair& qp) {
  if (!qp.answer) return false;
  wait_to_land(qp, *qp.answer);
  return true;
}

void Engine::wait_to_land(QueuePair& qp, Landing& landing) {
  landing.waiting = true;
  landing.since_pass = counts_.passes;
  landing.due_pass = counts_.passes + strict_->lateness();
  landing.due_ns = sys::now_ns() + kLatestNs;
  landing_.push_back(&qp);
  if (qp.link != nullptr) pause_links_to(qp.link->peer, links_, true);
  show_last_line(landing);
}

// Ahead of the rest, where no guard shows who looks at it: who takes it for a sign reads what was there before.
void Engine::show_last_line(const Landing& landing) {
  const std::size_t n = landing.bytes.size();
  if (landing.where == nullptr || n <= kLine) return;
  const std::byte* const end = landing.where + n;
  const std::size_t last = (reinterpret_cast<std::uintptr_t>(end) - 1) % kLine + 1;
  const std::uint64_t page = sys::page_bytes();
  if (reinterpret_cast<std::uintptr_t>(end) % page < last && n >= page) return;  // perhaps guarded
  strict_->land(landing.where + (n - last), std::span(landing.bytes).last(last));
}

int Engine::finish_landings() {
  strict_->collect();
  int done = 0;
  const std::int64_t now = landing_.empty() ? 0 : sys::now_ns();
  for (std::size_t i = 0; i < landing_.size();) {
    QueuePair& qp = *landing_[i];
    const Landing& landing = qp.payload_waits() ? *qp.landing : *qp.answer;
    // Not in the pass in which it came, however long that took: who polls gets to look at it in between.
    if (counts_.passes == landing.since_pass || (counts_.passes < landing.due_pass && now < landing.due_ns)) {
      ++i;
      continue;
    }
    ++done;
    finish_landing(qp);
  }
  return done;
}

// Its time has come.
void Engine::finish_landing(QueuePair& qp) {
  std::erase(landing_, &qp);
  if (qp.packets) return packets_->finish_late(qp);
  Link& link = *qp.link;
  pause_links_to(link.peer, links_, false);
  if (!qp.payload_waits()) return finish_answer(qp);
  const bool receive = qp.landing->place.what == LandingPlace::What::receive;
  if (land_staged(qp, std::move(qp.landing))) return finish_payload(qp, qp.arriving);
  refuse(qp, link, qp.arriving.msn, receive ? m::Syndrome::remote_operation : m::Syndrome::remote_access,
         receive ? m::Syndrome::local_protection : m::Syndrome::none);
}

void Engine::finish_answer(QueuePair& qp) {
  const auto is_waiting = [&](const Sent& sent) { return sent.index == qp.answer->place.wqe && sent.awaits_answer; };
  std::uint64_t seq = qp.seq_done;
  while (seq != qp.seq_next && !is_waiting(qp.sent_at(seq))) ++seq;
  if (seq == qp.seq_next) return abandon_answer(qp);  // it is about to be asked for once more
  Sent& sent = qp.sent_at(seq);
  if (!land_staged(qp, std::move(qp.answer)))
    return fail_message(qp, sent.msn_after - 1, m::Syndrome::local_protection, kVendorKey);
  sent.landed = sent.bytes;
  answered(qp, sent, sent.msn_after - 1);
}

// Before this side takes part in nothing more: what is here by then has come in time.
void Engine::finish_landings_of(const EngineId& peer) {
  for (std::size_t i = 0; i < landing_.size();) {
    QueuePair& qp = *landing_[i];
    if (qp.link != nullptr && qp.link->peer == peer) {
      finish_landing(qp);
    } else {
      ++i;
    }
  }
}

// False: the key was revoked while the bytes waited.
bool Engine::land_staged(QueuePair& qp, std::unique_ptr<Landing> landing) {
  lower_guard(*landing);
  strict_->collect();
  const LandingPlace& place = landing->place;
  const std::uint64_t n = landing->bytes.size();
  KeyFault why = KeyFault::none;
  const Registration* into = nullptr;
  if (place.what == LandingPlace::What::write) {
    into = check_remote(qp, place.key, place.address, n, STRAIT_NIC_REMOTE_WRITE, why);
  } else {
    const bool answer = place.what == LandingPlace::What::answer;
    into = memory_.check(place.key, answer ? qp.pd : qp.receive_pd(), place.address, n, STRAIT_NIC_LOCAL_WRITE, why);
    if (into == nullptr) strict_->key_unknown(place.key, qp.qpn, answer ? place.wqe : qp.receives_taken);
  }
  if (into == nullptr || into->bytes == nullptr) return false;
  strict_->land(into->at(place.address), landing->bytes);
  return true;
}

void Engine::abandon_landing(QueuePair& qp) {
  if (qp.landing) abandon(qp, std::move(qp.landing));
}

void Engine::abandon_answer(QueuePair& qp) {
  if (qp.answer) abandon(qp, std::move(qp.answer));
}

void Engine::abandon(QueuePair& qp, std::unique_ptr<Landing> landing) {
  lower_guard(*landing);
  if (!landing->waiting) return;
  if (qp.link != nullptr) pause_links_to(qp.link->peer, links_, false);
  std::erase(landing_, &qp);
}

}  // namespace strait::soft::nic
