// SPDX-License-Identifier: Apache-2.0
// The engine's objects, its passes, and how it goes to sleep.
#include "soft/nic/engine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sys/mapping.hpp"
#include "sys/process.hpp"
#include "sys/report.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

constexpr std::uint64_t kPassesPerPost = 16;  // how often posting alone also looks at what has arrived
// Queue pairs that a pass looks at for posts that nobody told it of: few while there are none, since each look is a
// cache miss or three where there are many of them, and time for whoever polls for a message where there are few.
constexpr std::size_t kFewestPerLook = 1;
constexpr std::size_t kMostPerLook = 64;
constexpr std::size_t kManyQueues = 1024;
constexpr std::size_t kFetchAhead = 16;
constexpr std::size_t kFetchLooksAhead = 4;
constexpr std::int64_t kTimersEveryNs = 1'000'000;  // with many queue pairs: looking at all of them takes a while
constexpr std::uint64_t kPassesPerClock = 32;       // how often a busy engine looks at the clock
constexpr std::uint64_t kPassesPerSockets = 1024;   // and at its sockets
constexpr std::int64_t kBlockedNapNs = 50'000;      // nobody wakes us when a full ring drains
constexpr std::int64_t kNoBarrierNapNs = 1'000'000;

bool power_of_two(std::uint32_t n) {
  return std::has_single_bit(n);
}
bool aligned(const void* at, std::uintptr_t to) {
  return reinterpret_cast<std::uintptr_t>(at) % to == 0;
}

Status check_ring(const void* ring, std::uint32_t entries, std::uint32_t cqe_bytes, const void* record) {
  if (!power_of_two(entries) || entries > 1u << 22) {
    return fail(Code::invalid, "a completion queue of {} entries: it takes a power of two up to 2^22", entries);
  }
  if (cqe_bytes != 64 && cqe_bytes != 128) {
    return fail(Code::invalid, "completion entries of {} bytes: they have 64 or 128", cqe_bytes);
  }
  if (ring == nullptr || !aligned(ring, 64) || record == nullptr || !aligned(record, 8)) {
    return fail(Code::invalid, "a completion queue needs a ring aligned to 64 bytes and a record aligned to 8");
  }
  return {};
}

// The peer is gone, and the timer has yet to say so.
bool waits_in_vain(const QueuePair& qp) {
  return qp.verbs && qp.answer_limit_ns != 0 && qp.link != nullptr && qp.link->dead;
}

bool awaits_peer(const QueuePair& qp) {
  return qp.seq_done != qp.seq_next || qp.streaming || (waits_in_vain(qp) && qp.next != qp.producer);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const EngineConfig& config) {
  std::unique_ptr<Engine> engine(new Engine(config));
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(engine->id_)), *config.calls));
  STRAIT_TRY(engine->wake_, sys::Event::make(*config.calls));
  STRAIT_TRY(engine->timer_, sys::Timer::make());
  STRAIT_TRY(engine->poller_, sys::EventSet::make());
  STRAIT_TRY(sys::Fd listener, sys::unix_listen(socket_name(engine->id_), *config.calls));
  engine->listener_ = sys::ProcessFd(std::move(listener));
  STRAIT_CHECK(engine->poller_.add(engine->wake_.fd()));
  STRAIT_CHECK(engine->poller_.add(engine->timer_.fd()));
  STRAIT_CHECK(engine->poller_.add(engine->listener_.get()));
  STRAIT_TRY(engine->doorbells_,
             sys::map_anonymous(std::size_t{kMaxQueuePairs} * 64, sys::Protect::read_write, nullptr, *config.calls));
  sys::keep_from_children(engine->doorbells_);
  engine->barriers_ = sys::register_for_barriers();
  engine->now_ns_ = engine->opened_ns_ = sys::now_ns();
  engine->gone_at_ = config.faults ? config.faults->gone : 0;
  engine->qps_.resize(1);  // queue pair 0 does not exist
  engine->qp_generation_.resize(1);
  if (config.strict && !config.strict->report.empty()) STRAIT_CHECK(sys::check_report_file(config.strict->report));
  if (config.strict) engine->strict_ = std::make_unique<Strict>(config.name, *config.strict);
  if (!config.packet_address.empty()) STRAIT_CHECK(engine->open_port());
  return engine;
}

Engine::~Engine() {
  if (!mark_.in_child()) await_copies();
  // Whoever closes the NIC with queue pairs on it gets the memory back.
  while (!active_.empty() && strict_ && !mark_.in_child()) {
    abandon_landing(*active_.back());
    active_.pop_back();
  }
  // In a child of fork the doorbell page was never there: its addresses may belong to somebody else by now.
  if (mark_.in_child()) doorbells_.release();
}

// ---- Objects --------------------------------------------------------------------------------------------------------

std::uint32_t Engine::alloc_pd() {
  const std::scoped_lock lock(mutex_);
  pds_.emplace(next_pd_, 0);
  return next_pd_++;
}

Status Engine::free_pd(std::uint32_t pd) {
  const std::scoped_lock lock(mutex_);
  const auto found = pds_.find(pd);
  if (found == pds_.end()) return fail(Code::invalid, "no protection domain has the number {}", pd);
  if (found->second != 0)
    return fail(Code::again, "{} objects still belong to protection domain {}", found->second, pd);
  pds_.erase(found);
  return {};
}

Result<strait_nic_mr> Engine::register_memory(const strait_nic_mr_request& request) {
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const auto pd = pds_.find(request.pd);
  if (pd == pds_.end()) return fail(Code::invalid, "no protection domain has the number {}", request.pd);
  STRAIT_TRY(const strait_nic_mr made, memory_.add(request, *config_.calls));
  ++pd->second;
  constexpr std::uint32_t kRemote = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;
  if (request.fd >= 0 && (request.access & kRemote) == 0) {
    // Only sources and destinations are ever lent, and those are registered for local use.
    offer_loan(made.lkey, request);
  }
  return made;
}

bool Engine::reached_by_port(std::uint32_t key) {
  const std::scoped_lock lock(mutex_);
  const Registration* const registration = memory_.find(key);
  return registration != nullptr && registration->bytes == nullptr;
}

Status Engine::deregister_memory(std::uint32_t key) {
  const sys::Deadline deadline = sys::Deadline::after_ns(1'000'000'000);
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      Registration* registration = memory_.find(key);
      if (registration == nullptr || registration->kind != KeyKind::registration)
        return fail(Code::invalid, "no registration has the key {:#x}", key);
      // Peers lose it at once; what this side has in flight drains first.
      give_back_landings(registration->bytes, registration->length_bytes);
      registration->access = STRAIT_NIC_LOCAL_WRITE;
      registration->closing = true;
      const bool by_port = registration->port != nullptr;
      const std::uint32_t pd = registration->pd;
      const Status removed = memory_.remove(key);
      if (removed) {
        --pds_[pd];
        end_loans(key);
        if (by_port) let_go_of_ports();
        if (strict_) strict_->deregistered(key);
        return {};
      }
      if (removed.error().code != Code::again || deadline.passed()) {
        registration->closing = false;
        return removed;
      }
      pass(0);
    }
    std::this_thread::yield();
  }
}

Result<std::uint32_t> Engine::create_cq(const strait_nic_cq_request& request) {
  STRAIT_CHECK(check_ring(request.ring, request.entries, request.cqe_bytes, request.record));
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const std::uint32_t number = next_cqn_++;
  cqs_.emplace(number, std::make_unique<CompletionQueue>(number, request));
  return number;
}

Result<std::uint32_t> Engine::create_cq(const CqRequest& request) {
  STRAIT_CHECK(check_ring(request.ring, request.entries, request.cqe_bytes, request.record));
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const std::uint32_t number = next_cqn_++;
  auto cq = std::make_unique<CompletionQueue>(number, request);
  if (request.events) event_cqs_.push_back(cq.get());
  cqs_.emplace(number, std::move(cq));
  return number;
}

Status Engine::resize_cq(std::uint32_t cqn, void* ring, std::uint32_t entries, std::uint32_t cqe_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = cqs_.find(cqn);
  if (found == cqs_.end()) return fail(Code::invalid, "no completion queue has the number {}", cqn);
  STRAIT_CHECK(check_ring(ring, entries, cqe_bytes, ring));
  if (!found->second->resize(ring, entries, cqe_bytes)) {
    return fail(Code::invalid,
                "completion queue {} cannot get {} entries: more than that wait to be taken, or it is in "
                "error",
                cqn, entries);
  }
  return {};
}

int Engine::tell_events() {
  int told = 0;
  for (CompletionQueue* const cq : event_cqs_) told += tell(*cq) ? 1 : 0;
  return told;
}

Status Engine::destroy_cq(std::uint32_t cqn) {
  const std::scoped_lock lock(mutex_);
  const auto found = cqs_.find(cqn);
  if (found == cqs_.end()) return fail(Code::invalid, "no completion queue has the number {}", cqn);
  if (found->second->users != 0) {
    return fail(Code::again, "{} queue pairs still complete into completion queue {}", found->second->users, cqn);
  }
  std::erase(event_cqs_, found->second.get());
  cqs_.erase(found);
  return {};
}

Status Engine::check_queue_request(const QpRequest& request) {
  if (request.sq_blocks != 0 && (!power_of_two(request.sq_blocks) || request.sq_blocks > m::kMaxBlocks)) {
    return fail(Code::invalid, "a send queue of {} blocks: it takes a power of two up to {}", request.sq_blocks,
                m::kMaxBlocks);
  }
  if (request.rq_entries != 0 && (!power_of_two(request.rq_entries) || request.rq_entries > m::kMaxBlocks)) {
    return fail(Code::invalid, "a receive queue of {} entries: it takes a power of two up to {}", request.rq_entries,
                m::kMaxBlocks);
  }
  if (request.rq_entries != 0 && (request.rq_stride_log2 < 4 || request.rq_stride_log2 > 10)) {
    return fail(Code::invalid, "receive entries of 2^{} bytes: they have 2^4 to 2^10", request.rq_stride_log2);
  }
  const bool no_ring = request.sq == nullptr && request.sq_blocks != 0;
  const bool no_record = request.record == nullptr && request.type != QpType::xrc_tgt;
  if (no_ring || !aligned(request.sq, 64) || no_record || !aligned(request.record, 8)) {
    return fail(Code::invalid, "a queue pair needs a send ring aligned to 64 bytes and a record aligned to 8");
  }
  if (request.rq_entries != 0 && (request.rq == nullptr || !aligned(request.rq, 16))) {
    return fail(Code::invalid, "a receive queue needs a ring aligned to 16 bytes");
  }
  const bool target = request.type == QpType::xrc_tgt;
  if (!target && !pds_.contains(request.pd))
    return fail(Code::invalid, "no protection domain has the number {}", request.pd);
  if (target && !xrcds_.contains(request.xrcd))
    return fail(Code::invalid, "no XRC domain has the number {}", request.xrcd);
  if (!target && !cqs_.contains(request.send_cqn))
    return fail(Code::invalid, "no completion queue has the number {}", request.send_cqn);
  const bool receives = !target && request.type != QpType::xrc_ini;
  if (receives && !cqs_.contains(request.recv_cqn))
    return fail(Code::invalid, "no completion queue has the number {}", request.recv_cqn);
  if ((!receives && (request.rq_entries != 0 || request.srqn != 0)) || (target && request.sq_blocks != 0))
    return fail(Code::invalid, "a queue pair of type {} does not have these queues", type_name(request.type));
  if (request.srqn != 0 && !srqs_.contains(request.srqn))
    return fail(Code::invalid, "no shared receive queue has the number {}", request.srqn);
  if (request.srqn != 0 && (request.rq_entries != 0 || request.type == QpType::uc))
    return fail(Code::invalid, "a queue pair of this kind takes no shared receive queue");
  return {};
}

Result<strait_nic_qp> Engine::create_qp(const strait_nic_qp_request& request) {
  if (request.sq_blocks == 0) return fail(Code::invalid, "a send queue of 0 blocks");
  QpRequest wanted;
  wanted.pd = request.pd;
  wanted.send_cqn = request.send_cqn;
  wanted.recv_cqn = request.recv_cqn;
  wanted.user_index = request.user_index;
  wanted.all_signaled = request.all_signaled != 0;
  wanted.sq = request.sq;
  wanted.sq_blocks = request.sq_blocks;
  wanted.rq = request.rq;
  wanted.rq_entries = request.rq_entries;
  wanted.rq_stride_log2 = request.rq_stride_log2;
  wanted.record = request.record;
  const std::scoped_lock lock(mutex_);
  STRAIT_TRY(QueuePair* const qp, make_qp(wanted));
  qp->state = QpState::init;
  qp->access = request.access;
  return strait_nic_qp{qp->qpn, 0, qp->doorbell};
}

Result<std::uint32_t> Engine::create_qp(const QpRequest& request) {
  const std::scoped_lock lock(mutex_);
  STRAIT_TRY(QueuePair* const qp, make_qp(request));
  qp->verbs = true;
  return qp->qpn;
}

Result<QueuePair*> Engine::make_qp(const QpRequest& request) {
  STRAIT_CHECK(there());
  STRAIT_CHECK(check_queue_request(request));
  std::uint32_t index = next_qp_;
  const auto taken = [&] { return index == 0 || (index < qps_.size() && qps_[index] != nullptr); };
  for (std::uint32_t tries = 0; taken() && tries < kMaxQueuePairs; ++tries) index = (index + 1) % kMaxQueuePairs;
  if (taken()) return fail(Code::limit, "the software NIC has {} queue pairs, its maximum", kMaxQueuePairs - 1);
  if (index >= qps_.size()) {
    qps_.resize(index + 1);
    qp_generation_.resize(index + 1);
  }
  next_qp_ = (index + 1) % kMaxQueuePairs;
  auto qp = std::make_unique<QueuePair>();
  const std::uint8_t top = qpn_range_ != 0 ? qpn_range_ : ++qp_generation_[index];
  qp->qpn = std::uint32_t{top} << 16 | index;
  qp->type = request.type;
  qp->pd = request.pd;
  qp->user_index = request.user_index & m::kMaxQpn;
  qp->all_signaled = request.all_signaled;
  qp->sq = {static_cast<const std::byte*>(request.sq), std::uint64_t{request.sq_blocks} * m::kBlockBytes};
  qp->sq_blocks = request.sq_blocks;
  qp->rq_entries = request.rq_entries;
  qp->rq_stride_bytes = request.rq_entries != 0 ? 1u << request.rq_stride_log2 : 0;
  qp->rq = {static_cast<const std::byte*>(request.rq), std::uint64_t{request.rq_entries} * qp->rq_stride_bytes};
  const bool target = request.type == QpType::xrc_tgt;
  qp->record =
      target ? reinterpret_cast<const std::uint32_t*>(nowhere_.bytes) : static_cast<std::uint32_t*>(request.record);
  qp->doorbell = reinterpret_cast<std::uint64_t*>(doorbells_.data() + std::size_t{index} * 64);
  __atomic_store_n(qp->doorbell, 0, __ATOMIC_RELEASE);
  if (!no_cq_) {
    no_cq_ = std::make_unique<CompletionQueue>(
        0, strait_nic_cq_request{sizeof(strait_nic_cq_request), 1, 64, STRAIT_NIC_CQ_COLLAPSED, nowhere_.bytes + 64,
                                 nowhere_.bytes + 128});
  }
  qp->send_cq = target ? no_cq_.get() : cqs_[request.send_cqn].get();
  qp->recv_cq = target || request.type == QpType::xrc_ini ? no_cq_.get() : cqs_[request.recv_cqn].get();
  ++qp->send_cq->users;
  ++qp->recv_cq->users;
  qp->srq = request.srqn != 0 ? srqs_[request.srqn].get() : nullptr;
  qp->says_srqn = request.says_srqn;
  if (qp->srq != nullptr) ++qp->srq->users;
  qp->xrcd = target ? request.xrcd : 0;
  ++(target ? xrcds_[request.xrcd] : pds_[request.pd]);
  qp->user = request.user;
  qp->sent = SentRing(request.sq_blocks);
  active_.push_back(qp.get());
  qps_[index] = std::move(qp);
  return qps_[index].get();
}

Status Engine::fail_qp(std::uint32_t qpn) {
  const std::scoped_lock lock(mutex_);
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  read_doorbell(*qp);
  fail_queue(*qp);
  return {};
}

Status Engine::destroy_qp(std::uint32_t qpn) {
  const std::scoped_lock lock(mutex_);
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  forget_qp(*qp);
  return {};
}

// Nothing of it is under way afterwards.
void Engine::detach_qp(QueuePair& qp) {
  // An acknowledgement still owed is what the peer waits for; it goes out before the queue pair is forgotten.
  if (qp.ack_due) {
    ack_now_.push_back(&qp);
    flush_acks();
  }
  for (const std::uint32_t key : qp.pinned) {
    if (Registration* registration = memory_.find(key)) --registration->in_flight;
  }
  abandon_landing(qp);
  abandon_answer(qp);
  abandon_pieces(qp);
  std::erase(copying_, &qp);
  if (strict_) strict_->forget(qp);
  if (packets_) packets_->forget(qp);
  std::erase(ack_due_, &qp);
  std::erase(ack_now_, &qp);
}

void Engine::forget_qp(QueuePair& qp) {
  detach_qp(qp);
  std::erase(active_, &qp);
  --qp.send_cq->users;
  --qp.recv_cq->users;
  const bool target = qp.type == QpType::xrc_tgt;
  if (qp.srq != nullptr && !target) --qp.srq->users;
  --(target ? xrcds_[qp.xrcd] : pds_[qp.pd]);
  qps_[qp.qpn & (kMaxQueuePairs - 1)].reset();
  drop_dead_links();
}

// ---- Passes ---------------------------------------------------------------------------------------------------------

// What the plan of faults has in store for a work request, and for a receive that is wanted.
bool Engine::fails_on_purpose(QueuePair& qp, DecodeFault& fault) {
  if (!faults() || !faults()->on_work(qp.flow(), qp.next)) return false;
  ++counts_.faults_injected;
  fault = {static_cast<m::Syndrome>(faults()->error_syndrome), "asked for by option faults", 0};
  return true;
}

bool Engine::overlooks_receive(QueuePair& qp) {
  if (!faults() || !faults()->on_receive(qp.flow(), qp.receive_rolls++)) return false;
  ++counts_.faults_injected;
  return true;
}

int Engine::pass(std::uint32_t qpn_hint) {
  ++counts_.passes;
  if (leaving_) [[unlikely]]
    return pass_without_device();
  if (faults() && faults()->stalled(sys::now_ns() - opened_ns_)) [[unlikely]]
    return 0;
  if (sleeping_) wake_up();
  int done = 0;
  if (qpn_hint != 0) {
    if (QueuePair* qp = find_qp(qpn_hint)) done = service_send(*qp);
    // Somebody posted. What has arrived can wait for a call that waits; a caller who only posts gets to it in the end.
    if (done != 0 && counts_.passes % kPassesPerPost != 0) return done;
  }
  return done + look_around(qpn_hint);
}

int Engine::drive(std::uint32_t qpn_hint) {
  if (mark_.in_child()) return 0;  // the child of a fork runs no engine
  if (!mutex_.try_lock()) {
    // Whoever holds the lock looks at the note after letting go, so this doorbell is not lost.
    note_.store(1, std::memory_order_seq_cst);
    if (!mutex_.try_lock()) return 0;
    qpn_hint = 0;
  }
  int done = pass(qpn_hint);
  mutex_.unlock();
  while (note_.load(std::memory_order_seq_cst) != 0 && mutex_.try_lock()) {
    note_.store(0, std::memory_order_seq_cst);
    done += pass(0);
    mutex_.unlock();
  }
  return done;
}

bool Engine::post(std::uint32_t qpn) {
  if (mark_.in_child()) return true;
  if (strict_ || faults() || !mutex_.try_lock()) return false;
  QueuePair* const qp = find_qp(qpn);
  if (qp != nullptr) (void)service_send(*qp);
  // Packets have timers, which are set by who goes to sleep; and nobody wakes an engine for what it sends to itself.
  const bool all = qp != nullptr && qp->next == qp->producer && qp->packets == nullptr &&
                   (qp->link == nullptr || !qp->link->loopback);
  mutex_.unlock();
  return all && note_.load(std::memory_order_seq_cst) == 0;
}

int Engine::look_around(std::uint32_t qpn_hint) {
  const std::uint64_t number = counts_.passes;
  int done = 0;
  if (!ack_due_.empty()) {
    ack_now_.swap(ack_due_);
    done += flush_acks();
  }
  if (copies_under_way()) done += std::max(finish_copies(), copies_end_soon() ? 1 : 0);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    if (link.dead || link.paused) continue;
    if (link.reader.has_message()) done += receive(link);
    if (!link.held.empty()) release_held(link);
    if (!link.answers.empty()) flush_answers(link);
  }
  if (strict_) done += finish_landings();
  if (packets_) done += packets_->pass();
  if (qpn_hint == 0 || blocked_ || number % kPassesPerClock == 0) done += service_all();
  if (!event_cqs_.empty()) done += tell_events();
  if (number % kPassesPerClock == 0) done += check_timers();
  if (number % kPassesPerSockets == 0) check_sockets();
  return done;
}

// What the next looks at doorbells need: of one queue pair its own lines, of one that comes sooner those it names.
void Engine::fetch_ahead() {
  const auto later = [&](std::size_t n) { return active_[(next_look_ + n) % active_.size()]; };
  fetch(later(2 * kFetchLooksAhead), kHotQueuePair);
  const QueuePair* const soon = later(kFetchLooksAhead);
  fetch(soon->record);
  fetch(soon->doorbell);
}

// Looks for doorbells that nobody pointed at. Of very many queue pairs only some at a time, unless one is known to
// wait.
int Engine::service_all() {
  int done = 0;
  const std::size_t most = blocked_ ? active_.size() : std::min<std::size_t>(active_.size(), queues_per_look_);
  blocked_ = false;
  for (std::size_t i = 0; i < most && !active_.empty(); ++i) {
    if (++next_look_ >= active_.size()) next_look_ = 0;
    QueuePair& qp = *active_[next_look_];
    if (active_.size() > kManyQueues) fetch_ahead();
    if (qp.looks_idle()) continue;
    done += service_send(qp);
    if (qp.state == QpState::error && qp.receives_posted() != 0) {
      flush_queue(qp);
      ++done;
    }
  }
  queues_per_look_ = done != 0 ? kMostPerLook : std::max(queues_per_look_ / 2, kFewestPerLook);
  return done;
}

int Engine::check_timers() {
  const std::int64_t now = sys::now_ns();
  if (active_.size() > kManyQueues && now - now_ns_ < kTimersEveryNs) return 0;
  now_ns_ = now;
  lower_silent_guards(now);
  int done = packets_ ? packets_->check_timers(now_ns_) : 0;
  if (links_.empty()) return done;  // the rest is about queue pairs over the ring grant
  for (std::size_t i = 0; i < active_.size(); ++i) {
    QueuePair& qp = *active_[i];
    if (!qp.sending() || qp.packets) continue;
    if (qp.resume_at_ns != 0 && now_ns_ >= qp.resume_at_ns) {
      qp.resume_at_ns = 0;
      done += service_send(qp);
    }
    const bool waiting = awaits_peer(qp);
    if (waiting && qp.link->lossy && !qp.link->dead) done += resend(qp);
    if (!waiting || qp.answer_limit_ns == 0) continue;
    if (qp.progress_at_ns == 0) {
      qp.progress_at_ns = now_ns_;
    } else if (now_ns_ - qp.progress_at_ns > qp.answer_limit_ns) {
      ++counts_.timeouts;
      ++done;
      fail_oldest(qp, m::Syndrome::transport_retry_exceeded, kVendorNoAnswer);
    }
  }
  return done;
}

void Engine::check_sockets() {
  accept_strangers();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    if (!link.dead && !link.loopback) read_loans(link);
    if (!link.dead && !link.loopback && sys::peer_closed(link.socket.get())) {
      while (!link.dead && receive(link) != 0) {  // what it said before it died still counts
      }
      if (link.waiting) continue;  // the rest of it, when the copies before it have ended
      lose_link(link);
    }
  }
  drop_dead_links();
}

// ---- Sleeping -------------------------------------------------------------------------------------------------------

void Engine::set_sleeping(std::uint32_t value) {
  for (const auto& link : links_) link->own().sleeping.store(value, std::memory_order_seq_cst);
}

void Engine::wake_up() {
  sleeping_ = false;
  set_sleeping(0);
  wake_.clear();
  timer_.stop();
  ++counts_.wakeups;
  if (packets_) packets_->look_soon();
  check_sockets();
  check_timers();
}

bool Engine::work_waits() {
  if (leaving_ && !gone_) return true;
  if (gone_) {
    return std::ranges::any_of(active_, [&](QueuePair* qp) {
      read_doorbell(*qp);
      return qp->state == QpState::error && (qp->next != qp->producer || qp->receives_posted() != 0);
    });
  }
  if (!landing_.empty() || !ack_due_.empty() || note_.load(std::memory_order_seq_cst) != 0) return true;
  if (packets_ && packets_->work_waits()) return true;
  if (copies_end_soon()) return true;
  for (const CompletionQueue* const cq : event_cqs_) {
    if (cq->event_due()) return true;
  }
  for (const auto& link : links_) {
    if (!link->dead && !link->waiting && link->reader.has_message()) return true;
  }
  for (std::size_t i = 0; i < active_.size(); ++i) {
    QueuePair* const qp = active_[i];
    if (i + kFetchAhead < active_.size()) fetch(&active_[i + kFetchAhead]->state);
    if (qp->packets && qp->state == QpState::ready) continue;  // all of it was looked at above
    read_doorbell(*qp);
    // Packets that wait for room in the window are resumed by what arrives, or by a timer.
    const bool can_start = qp->state == QpState::ready && !qp->stopped && qp->resume_at_ns == 0 && !blocked_ &&
                           !qp->packets && !waits_in_vain(*qp);
    if (qp->next != qp->producer && (can_start || qp->flushes_sends())) return true;
    if (qp->state == QpState::error && qp->receives_posted() != 0) return true;
  }
  return false;
}

std::int64_t Engine::sleep_limit_ns() {
  std::int64_t limit = barriers_ ? INT64_MAX : kNoBarrierNapNs;
  if (gone_) return limit;
  if (blocked_ || copies_under_way()) limit = std::min(limit, kBlockedNapNs);
  for (const auto& link : links_) {
    if (!link->dead && (!link->answers.empty() || link->lossy)) limit = std::min(limit, kBlockedNapNs);
  }
  const std::int64_t now = sys::now_ns();
  if (packets_) limit = std::min(limit, packets_->timer_limit_ns(now));
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const QueuePair* const qp = active_[i];
    if (i + kFetchAhead < active_.size()) fetch(&active_[i + kFetchAhead]->state);
    if (strict_) {
      limit = std::min({limit, silence_left_ns(qp->landing.get(), now), silence_left_ns(qp->answer.get(), now)});
    }
    if (!qp->sending() || qp->packets) continue;
    if (qp->resume_at_ns != 0) limit = std::min(limit, std::max<std::int64_t>(qp->resume_at_ns - now, 1));
    if (awaits_peer(*qp) && qp->answer_limit_ns != 0) limit = std::min(limit, qp->answer_limit_ns / 2);
  }
  return limit;
}

bool Engine::arm() {
  if (mark_.in_child()) return true;
  const std::scoped_lock lock(mutex_);
  set_sleeping(1);
  if (barriers_ && !sys::barrier_everywhere()) barriers_ = false;
  const bool watched = !packets_ || packets_->watch();
  if (work_waits()) {
    set_sleeping(0);
    return false;
  }
  sleeping_ = true;
  const std::int64_t limit = watched ? sleep_limit_ns() : std::min(sleep_limit_ns(), kBlockedNapNs);
  if (limit != INT64_MAX) timer_.fire_after_ns(limit);
  return true;
}

// ---- For people -----------------------------------------------------------------------------------------------------

bool Engine::free_within(std::int64_t ns) {
  const sys::Deadline deadline = sys::Deadline::after_ns(ns);
  while (!mutex_.try_lock()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  mutex_.unlock();
  return true;
}

bool Engine::has_sent_packets() {
  const std::scoped_lock lock(mutex_);
  return packets_ && packets_->counts().packets_sent != 0;
}

EngineCounts Engine::counts() {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

std::string Engine::counters_text() {
  const std::scoped_lock lock(mutex_);
  const EngineCounts& c = counts_;
  std::string text = fmt::format(
      "passes={},doorbells={},work_requests={},completions={},error_completions={},flushed={},messages_sent={},"
      "messages_received={},acks_sent={},acks_carried={},bytes_landed={},bytes_read={},cross_copies={},mapped_copies={}"
      ",port_copies={},atomics={},"
      "naks_sent={},rnr_sent={},rnr_resent={},out_of_sequence={},no_queue={},garbage={},timeouts={},links_opened={},"
      "links_lost={},links_bounced={},ports_private={},wakeups={},completion_overruns={},faults_injected={},damaged={},"
      "resends={},registrations={},queue_"
      "pairs={},links={}",
      c.passes, c.doorbells, c.work_requests, c.completions, c.error_completions, c.flushed, c.messages_sent,
      c.messages_received, c.acks_sent, c.acks_carried, c.bytes_landed, c.bytes_read, c.cross_copies, c.mapped_copies,
      c.port_copies, c.atomics, c.naks_sent, c.rnr_sent, c.rnr_resent, c.out_of_sequence, c.no_queue, c.garbage,
      c.timeouts, c.links_opened, c.links_lost, c.links_bounced, c.ports_private, c.wakeups, c.completion_overruns,
      c.faults_injected, c.damaged, c.resends, memory_.live(), active_.size(), links_.size());
  if (packets_) text += packets_->counters_text();
  if (strict_) strict_->collect();
  if (strict_) text += fmt::format(",strict_findings={}", strict_->causes());
  return text;
}

std::uint64_t Engine::findings(Rule rule) {
  const std::scoped_lock lock(mutex_);
  if (!strict_) return 0;
  strict_->collect();
  return strict_->causes(rule);
}

}  // namespace strait::soft::nic
