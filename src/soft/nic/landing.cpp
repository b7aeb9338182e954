// SPDX-License-Identifier: Apache-2.0
// Strict: payloads land late. They are collected beside their target; when all is there some passes go by, in which the
// target's pages cannot be read; then the bytes land, line by line in random order, and only then is anybody told.
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

// Where the bytes of a write go for now; the registration itself when nothing is to be late.
Registration* Engine::stage(QueuePair& qp, Registration* real, std::uint64_t raddr, std::uint32_t length) {
  if (!strict_ || real == nullptr || real->bytes == nullptr || length == 0) return real;
  if (qp.landing && qp.landing->shadow.address == raddr && qp.landing->bytes.size() == length) {
    raise_guard(qp);
    return &qp.landing->shadow;
  }
  abandon_landing(qp);
  qp.landing = std::make_unique<Landing>();
  Landing& landing = *qp.landing;
  landing.bytes.resize(length);
  landing.shadow.key = real->key;
  landing.shadow.address = raddr;
  landing.shadow.length_bytes = length;
  landing.shadow.bytes = landing.bytes.data();
  // Only memory that the program reaches by this very address; an accelerator's it cannot read anyway.
  if (reinterpret_cast<std::uint64_t>(real->bytes) == real->address) landing.where = real->at(raddr);
  raise_guard(qp);
  return &landing.shadow;
}

// Some of it has come, perhaps after a long silence.
void Engine::raise_guard(QueuePair& qp) {
  Landing& landing = *qp.landing;
  landing.heard_ns = sys::now_ns();
  if (landing.where == nullptr || landing.guarded) return;
  landing.guarded = true;
  strict_->guard(landing.where, landing.bytes.size(), qp.qpn, qp.packets ? qp.packets->msn : qp.msn_expected);
}

void Engine::lower_guard(Landing& landing) {
  if (!landing.guarded) return;
  landing.guarded = false;
  strict_->unguard(landing.where, landing.bytes.size());
}

// A peer that was closed or died in the middle of a put leaves its queue pair behind here, which hears nothing more and
// is told nothing. What has come of the put stays beside its target, in case the rest comes after all.
void Engine::lower_silent_guards(std::int64_t now) {
  if (!strict_) return;
  for (QueuePair* const qp : active_) {
    if (silence_left_ns(*qp, now) <= 1) lower_guard(*qp->landing);
  }
}

std::int64_t Engine::silence_left_ns(const QueuePair& qp, std::int64_t now) const {
  if (!qp.landing || !qp.landing->guarded || qp.landing->waiting) return INT64_MAX;
  return std::max<std::int64_t>(qp.landing->heard_ns + strict_->silence_ns() - now, 1);
}

// The program may do with this memory what it likes from now on, unmap it too.
void Engine::give_back_landings(const std::byte* bytes, std::uint64_t length) {
  if (!strict_ || bytes == nullptr) return;
  for (QueuePair* const qp : active_) {
    if (!qp->landing || qp->landing->where == nullptr) continue;
    Landing& landing = *qp->landing;
    if (bytes >= landing.where + landing.bytes.size() || landing.where >= bytes + length) continue;
    lower_guard(landing);
    landing.where = nullptr;
  }
}

// The last byte is here. True: what follows it waits, and finish_landings() goes on with it.
bool Engine::land_later(QueuePair& qp) {
  if (!qp.landing) return false;
  qp.landing->waiting = true;
  qp.landing->since_pass = counts_.passes;
  qp.landing->due_pass = counts_.passes + strict_->lateness();
  qp.landing->due_ns = sys::now_ns() + kLatestNs;
  landing_.push_back(&qp);
  if (qp.link != nullptr) pause_links_to(qp.link->peer, links_, true);
  show_last_line(qp);
  return true;
}

// Ahead of the rest, where no guard shows who looks at it: who takes it for a sign reads what was there before.
void Engine::show_last_line(const QueuePair& qp) {
  const Landing& landing = *qp.landing;
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
    // Not in the pass in which it came, however long that took: who polls gets to look at it in between.
    if (counts_.passes == qp.landing->since_pass ||
        (counts_.passes < qp.landing->due_pass && now < qp.landing->due_ns)) {
      ++i;
      continue;
    }
    landing_.erase(landing_.begin() + static_cast<std::ptrdiff_t>(i));
    ++done;
    if (qp.packets) {
      packets_->finish_late(qp);
      continue;
    }
    Link& link = *qp.link;
    pause_links_to(link.peer, links_, false);
    if (!land_staged(qp, qp.arriving.rkey, qp.arriving.raddr, qp.arriving.length)) {
      refuse(qp, link, qp.arriving.msn, m::Syndrome::remote_access, m::Syndrome::none);
      continue;
    }
    finish_payload(qp, qp.arriving);
  }
  return done;
}

// False: the key was revoked while the bytes waited.
bool Engine::land_staged(QueuePair& qp, std::uint32_t rkey, std::uint64_t raddr, std::uint32_t length) {
  const std::unique_ptr<Landing> landing = std::move(qp.landing);
  lower_guard(*landing);
  strict_->collect();
  KeyFault why = KeyFault::none;
  const Registration* const into = check_remote(qp, rkey, raddr, length, STRAIT_NIC_REMOTE_WRITE, why);
  if (into == nullptr) return false;
  strict_->land(into->at(raddr), landing->bytes);
  return true;
}

void Engine::abandon_landing(QueuePair& qp) {
  if (!qp.landing) return;
  lower_guard(*qp.landing);
  if (qp.landing->waiting && qp.link != nullptr) pause_links_to(qp.link->peer, links_, false);
  std::erase(landing_, &qp);
  qp.landing.reset();
}

}  // namespace strait::soft::nic
