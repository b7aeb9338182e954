// SPDX-License-Identifier: Apache-2.0
// The life of a queue pair as verbs has it: RESET, INIT, RTR (it receives), RTS (it sends), SQD (its send queue
// drains), SQE (an unreliable one stopped sending after an error), ERR (everything is flushed), and back to RESET.
#include <algorithm>
#include <utility>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;
namespace r = wire::roce;

namespace {

constexpr std::int64_t kTimeoutUnitNs = 4096;
constexpr int kPassesToDrain = 64;  // a ring that its writer keeps full is not followed for ever

r::Transport transport_of(QpType type) {
  switch (type) {
    case QpType::uc: return r::Transport::uc;
    case QpType::ud: return r::Transport::ud;
    case QpType::xrc_ini:
    case QpType::xrc_tgt: return r::Transport::xrc;
    default: return r::Transport::rc;
  }
}

}  // namespace

void Engine::set_event_sink(EventSink* sink) {
  const std::scoped_lock lock(mutex_);
  sink_ = sink;
}

Status Engine::modify_qp(std::uint32_t qpn, const QpAttributes& wanted, std::uint32_t mask) {
  std::unique_lock lock(mutex_);
  STRAIT_CHECK(there());
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  const QpState from = qp->state;
  STRAIT_CHECK(check_values(wanted, mask));
  if ((mask & kQpCurState) != 0 && wanted.cur_state != from) {
    return fail(Code::invalid, "queue pair {:#x} is in {}, not in {}", qpn, state_name(from),
                state_name(wanted.cur_state));
  }
  const QpState to = (mask & kQpState) != 0 ? wanted.state : from;
  STRAIT_CHECK(check_transition(qp->type, from, to, mask));
  if (to == QpState::reset) {
    reset_qp(*qp);
    return {};
  }
  QpAttributes merged = qp->attributes;
  merge(merged, wanted, mask);
  if (from == QpState::init && to == QpState::rtr) {
    Link* link = nullptr;
    if (qp->type == QpType::rc) {
      STRAIT_TRY(link, link_by_gid(merged.path.dgid, merged.dest_qpn, lock));
      qp = find_qp(qpn);  // the lock was let go meanwhile
      if (qp == nullptr || qp->state != from)
        return fail(Code::invalid, "queue pair {:#x} was changed while it was being connected", qpn);
    }
    STRAIT_CHECK(begin_receiving(*qp, merged, link));
  }
  qp->attributes = merged;
  qp->access = merged.access;
  if (to == QpState::error) {
    settle(*qp);
    read_doorbell(*qp);
    fail_queue(*qp);
    return {};
  }
  qp->state = to;
  update_path(*qp);
  if (from == QpState::rtr && to == QpState::ready) begin_sending(*qp);
  // What was numbered and never left goes with the numbers it had: nobody has seen them.
  if (from == QpState::sqe && qp->packets) Packets::begin_sending(*qp, qp->packets->psn_end);
  if (from == QpState::ready && to == QpState::sqd) {
    qp->drain_told = !merged.sqd_notify;
    check_drained(*qp);
  }
  if (to == QpState::ready) (void)service_send(*qp);
  return {};
}

Result<QpAttributes> Engine::query_qp(std::uint32_t qpn) {
  const std::scoped_lock lock(mutex_);
  const QueuePair* const qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  QpAttributes out = qp->attributes;
  out.state = out.cur_state = qp->state;
  out.access = qp->access;
  out.sq_draining = qp->state == QpState::sqd && qp->seq_done != qp->seq_next;
  return out;
}

Status Engine::begin_receiving(QueuePair& qp, const QpAttributes& attributes, Link* link) {
  if (!packets_) return fail(Code::unsupported, "this NIC has no port for packets");
  if (link != nullptr) {
    qp.link = link;
    qp.remote_qpn = attributes.dest_qpn & m::kMaxQpn;
    return {};
  }
  if (config_.carrier == Carrier::grant)
    return fail(Code::unsupported, "no ring grant to the peer, and option carrier=grant allows no packets");
  PacketPath path;
  path.transport = transport_of(qp.type);
  path.port = qp.type == QpType::ud ? std::uint8_t{0} : attributes.path.sgid_index;
  path.to.gid = attributes.path.dgid;
  path.remote_qpn = attributes.dest_qpn & m::kMaxQpn;
  path.receive_psn = attributes.rq_psn;
  path.pmtu_bytes = qp.type == QpType::ud ? config_.packet_bytes : r::pmtu_bytes(attributes.path_mtu);
  path.max_reads_in = attributes.max_dest_reads;
  path.qkey = attributes.qkey;
  return packets_->connect(qp, path);
}

void Engine::begin_sending(QueuePair& qp) {
  if (qp.packets) Packets::begin_sending(qp, qp.attributes.sq_psn);
}

// What may change while it runs.
void Engine::update_path(QueuePair& qp) {
  const QpAttributes& now = qp.attributes;
  qp.rnr_retries = now.rnr_retries;
  const std::int64_t timeout_ns = now.timeout == 0 ? 0 : kTimeoutUnitNs << now.timeout;
  qp.answer_limit_ns = timeout_ns * (now.retries + 1);
  qp.rnr_wait_ns = static_cast<std::int64_t>(r::rnr_timer_ns(now.min_rnr_timer));
  if (!qp.packets) return;
  PacketPath& path = qp.packets->path;
  if (qp.type != QpType::ud) path.to.gid = now.path.dgid;
  path.qkey = now.qkey;
  path.ack_timeout_ns = timeout_ns;
  path.retries = now.retries;
  path.rnr_retries = now.rnr_retries;
  path.rnr_timer = now.min_rnr_timer;
  path.max_reads_out = now.max_reads;
}

// Before a program stops the queue pair. What the peer has sent so far was for it as it is; and what the peer is owed
// it gets: a NIC would have answered long ago. Libraries stop a queue pair when the connection manager says that the
// other side left, and that message may overtake the last acknowledgement, which went through the ring.
void Engine::settle(QueuePair& qp) {
  // By any link to that peer: two that greeted each other at the same time have two.
  for (std::size_t at = 0; qp.link != nullptr && at < links_.size(); ++at) {
    Link& link = *links_[at];
    if (link.peer != qp.link->peer) continue;
    for (int i = 0; !link.dead && i < kPassesToDrain; ++i) {
      if (strict_) finish_landings_of(link.peer);
      if (receive(link) == 0) break;
    }
  }
  if (qp.ack_due) {
    ack_now_.push_back(&qp);
    flush_acks();
  }
  if (qp.packets) packets_->settle(qp);
}

// As if it had just been created. Completions that were written stay: taking them back is the program's affair.
void Engine::reset_qp(QueuePair& qp) {
  settle(qp);
  detach_qp(qp);
  QueuePair fresh;
  static_cast<QueueShape&>(fresh) = qp;
  fresh.sent = std::move(qp.sent);
  fresh.last_doorbell = __atomic_load_n(qp.doorbell, __ATOMIC_ACQUIRE);
  qp = std::move(fresh);
  drop_dead_links();
}

// A request of ours failed. An unreliable queue pair stops sending and goes on receiving.
void Engine::fail_sends(QueuePair& qp) {
  if (qp.type != QpType::uc && qp.type != QpType::ud) return fail_queue(qp);
  qp.state = QpState::sqe;
  qp.stopped = false;
  flush_sends(qp);
}

void Engine::check_drained(QueuePair& qp) {
  if (qp.seq_done != qp.seq_next || qp.drain_told) return;
  qp.drain_told = true;
  raise(AsyncKind::sq_drained, qp);
}

}  // namespace strait::soft::nic
