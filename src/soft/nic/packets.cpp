// SPDX-License-Identifier: Apache-2.0
// Packets: queue pairs, passes and timers.
#include "soft/nic/packets.hpp"

#include <algorithm>
#include <utility>

#include "soft/nic/engine.hpp"
#include "soft/roce/icrc.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;
namespace r = wire::roce;

namespace {
constexpr int kReceivePerPass = 256;
constexpr unsigned kIdlePasses = 256;
constexpr unsigned kQuietPasses = 16;  // with several ports: how often one is looked at where nothing comes
constexpr std::uint64_t kCompany = 16;
constexpr unsigned kAckPasses = 4;
constexpr int kFewPackets = 2;
constexpr std::size_t kMostWaiting = 4096;
constexpr int kBurst = 64;  // packets of one queue pair before the next has its turn
constexpr std::size_t kQueuesPerPass = 64;
constexpr std::uint32_t kWindowBytes = 256 * 1024;  // what an ordinary socket buffer holds
constexpr std::int64_t kCnpPeriodNs = 50'000;

// What packets touch of a queue pair (queue_pair.hpp and packets.hpp have it in front).
constexpr std::size_t kHotState = 4 * kLine;
}  // namespace

Status Packets::connect(QueuePair& qp, const PacketPath& path) {
  if (r::pmtu_code(path.pmtu_bytes) == 0)
    return fail(Code::invalid, "a path MTU of {} bytes: it is 256, 512, 1024, 2048 or 4096", path.pmtu_bytes);
  if (path.port >= ports_.size())
    return fail(Code::invalid, "source GID {}: this NIC has {} addresses", int{path.port}, ports_.size());
  const roce::Port& from = port(path.port);
  // Datagrams say each for itself where they leave from, and are measured then.
  const bool datagrams = path.transport == r::Transport::ud;
  if (!datagrams && path.pmtu_bytes + r::kMaxHeaderBytes + r::kIcrcBytes > from.mtu_bytes()) {
    return fail(Code::invalid, "a path MTU of {} bytes does not fit this port, whose packets have at most {}",
                path.pmtu_bytes, from.mtu_bytes());
  }
  if (!datagrams && path.to.is_v4() != from.address().is_v4()) {
    return fail(Code::invalid, "the peer's address {} and this port's {} are not of one kind", path.to.text(),
                from.address().text());
  }
  auto state = std::make_unique<PacketState>();
  state->path = path;
  state->source_port = static_cast<std::uint16_t>(0xc000 | (qp.qpn * 0x9e37u & 0x3fff));
  state->una = state->sent_end = state->psn_end = path.send_psn & r::kPsnMask;
  state->epsn = path.receive_psn & r::kPsnMask;
  state->ranges.resize(qp.sent.size());
  state->window = std::max(8u, kWindowBytes / path.pmtu_bytes);
  state->replays.resize(path.max_reads_in);
  state->resend_after_ns = kFirstResendNs;
  state->cursor_seq = qp.seq_next;
  qp.packets = std::move(state);
  if (work_of_ == &qp) work_of_ = nullptr;
  qp.remote_qpn = path.remote_qpn;
  qp.rnr_retries = path.rnr_retries;
  ++connected_;
  return {};
}

// The acknowledgement it still owes is what the peer waits for.
void Packets::settle(QueuePair& qp) {
  send_acks();
  (void)send_answers(qp, kBurst);
  flush();
}

void Packets::forget(QueuePair& qp) {
  if (!qp.packets) return;
  // A read's response is not sent any more: its memory may be gone already.
  std::erase_if(qp.packets->answers, [](const PacketAnswer& a) { return a.what == PacketAnswer::What::read; });
  settle(qp);
  // Processes on one address share what arrives there: the answer may have come to this one's own socket, and would be
  // lost with it if the program ends now. Whose it is gets it handed on. What comes for this queue pair is too late:
  // the memory it would land in may be gone.
  qp.state = QpState::reset;
  for (OwnPort& own : ports_) (void)own.port->receive(*this, kReceivePerPass);
  std::erase(busy_, &qp);
  std::erase(timed_, &qp);
  std::erase(ack_due_, &qp);
  answered(*qp.packets);
  if (work_of_ == &qp) work_of_ = nullptr;
  if (posted_last_ == &qp) posted_last_ = nullptr;
  --connected_;
}

void Packets::begin_sending(QueuePair& qp, std::uint32_t psn) {
  PacketState& s = *qp.packets;
  s.path.send_psn = s.una = s.sent_end = s.psn_end = psn & r::kPsnMask;
  s.cursor_seq = qp.seq_next;
  s.cursor_packet = 0;
}

void Packets::list(QueuePair& qp) {
  if (qp.packets->listed) return;
  qp.packets->listed = true;
  busy_.push_back(&qp);
}

// Something was sent, or has to wait: the timers look at it until all of it is answered. Passes do not: of many queue
// pairs that wait for answers, each is touched again when its answer comes.
void Packets::look_after(QueuePair& qp) {
  PacketState& s = *qp.packets;
  if (s.sent_end == s.una && s.resume_at_ns == 0) return;
  if (!s.awaiting) {
    s.awaiting = true;
    ++under_way_;
  }
  if (s.timed) return;
  s.timed = true;
  timed_.push_back(&qp);
}

// There is something to send now, whether or not there is room for it.
bool Packets::has_work(const QueuePair& qp) {
  const PacketState& s = *qp.packets;
  if (!s.answers.empty()) return true;
  if (!qp.sending() || s.resume_at_ns != 0) return false;
  return s.cursor_seq != qp.seq_next || (qp.next != qp.producer && qp.state == QpState::ready);
}

// Programs that have many connections tend to use them in turn. What followed this one the last time is fetched while
// this one is served, and what followed that even earlier, since one tells where the rest of the other lies.
void Packets::guess_next_post(QueuePair& qp) {
  if (posted_last_ != nullptr) posted_last_->posted_after = qp.qpn & (kMaxQueuePairs - 1);
  posted_last_ = &qp;
  const QueuePair* const next = engine_.qp_at(qp.posted_after);
  if (next == nullptr || next == &qp || !next->packets || next->sq_blocks == 0) return;
  fetch(next->packets.get(), kHotState);
  fetch(&next->sent_at(next->seq_next));
  fetch(next->sq.at(next->next * m::kBlockBytes));
  fetch(next->record);
  fetch(next->doorbell);
  fetch(engine_.qp_at(next->posted_after), kHotQueuePair);
}

// Packets that have arrived and are about to be handled, soon and a little later: their queue pairs are fetched
// meanwhile. Nothing of them was checked yet.
void Packets::expect(std::span<const std::byte> next, std::span<const std::byte> after) {
  if (after.size() >= sizeof(r::Bth)) fetch(engine_.qp_at(roce::peek_dest_qpn(after)), kHotQueuePair);
  if (next.size() < sizeof(r::Bth)) return;
  const QueuePair* const qp = engine_.qp_at(roce::peek_dest_qpn(next));
  if (qp == nullptr || !qp->packets) return;
  fetch(qp->packets.get(), kHotState);
  if (qp->seq_done == qp->seq_next) return;
  fetch(&qp->sent_at(qp->seq_done));
  fetch(qp->send_cq, sizeof *qp->send_cq);
}

int Packets::serve(QueuePair& qp) {
  if (qp.flushes_sends()) {
    if (qp.next == qp.producer) return 0;
    engine_.flush_queue(qp);
    return 1;
  }
  if (qp.state != QpState::ready) return 0;
  if (posted_last_ != &qp) guess_next_post(qp);
  const bool idle = busy_.empty() && under_way_ == 0;
  const std::uint64_t before = counts_.packets_sent;
  // One packet, then what is owed, then the rest: a small message and the acknowledgement behind it leave as one run,
  // and the peer sees both at once. A program may count on its send being complete before the reply to it arrives.
  int sent = transmit(qp, 1);
  if (!ack_due_.empty()) send_acks();
  if (!qp.packets->answers.empty()) sent += send_answers(qp, kBurst);
  if (has_work(qp)) {
    sent += transmit(qp, kBurst);
    if (has_work(qp)) list(qp);
  }
  look_after(qp);
  // Behind others that are on their way, a packet waits for company: somebody is going to poll for their answers.
  unflushed_packets_ += counts_.packets_sent - before;
  if (idle || unflushed_packets_ >= kCompany) flush();
  return sent;
}

void Packets::send_acks() {
  for (QueuePair* qp : ack_due_) {
    if (!qp->packets->ack_due) continue;
    qp->packets->ack_due = false;
    PacketAnswer ack;
    // The last one that arrived in order; while its payload waits to be landed, the one before.
    ack.psn = r::psn_add(qp->packets->epsn, qp->payload_waits() ? r::kPsnMask - 1 : r::kPsnMask);
    ack.msn = qp->packets->msn;
    if (!qp->packets->answers.empty() || !send_answer(*qp, ack)) queue_answer(*qp, ack);
  }
  ack_due_.clear();
  ack_age_ = 0;
}

bool Packets::watch() {
  bool all = true;
  for (OwnPort& own : ports_) all = own.port->watch() && all;
  return all;
}

int Packets::pass() {
  // Nobody to receive for: strangers are counted now and then.
  ++passes_;
  const bool everywhere = std::exchange(look_everywhere_, false);
  if (connected_ == 0 && !everywhere && passes_ % kIdlePasses != 0) return 0;
  // Not at once: until then the program may post, and both leave in one system call. A stream is not kept waiting.
  if (!ack_due_.empty() && ++ack_age_ >= kAckPasses) send_acks();
  int done = 0;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    OwnPort& own = ports_[i];
    // Not all of the quiet ones in one pass: the one that is not would have to wait for it.
    const bool skipped = own.quiet_passes >= kQuietAfter && ports_.size() > 1 && (passes_ + i) % kQuietPasses != 0;
    if (skipped && !everywhere && connected_ != 0) continue;
    const int got = own.port->receive(*this, kReceivePerPass);
    own.quiet_passes = got != 0 ? 0 : std::min(own.quiet_passes + 1, kQuietAfter);
    done += got;
  }
  if (!ack_due_.empty() && done > kFewPackets) send_acks();
  if (!held_.empty()) release_held();
  // Everybody in turn, so that one long message does not keep the others waiting.
  const std::size_t turns = std::min(busy_.size(), kQueuesPerPass);
  for (std::size_t i = 0; i < turns && !busy_.empty(); ++i) {
    if (next_busy_ >= busy_.size()) next_busy_ = 0;
    QueuePair& qp = *busy_[next_busy_];
    done += send_answers(qp, kBurst);
    if (qp.sending()) done += transmit(qp, kBurst);
    look_after(qp);
    if (has_work(qp)) {
      ++next_busy_;
      continue;
    }
    qp.packets->listed = false;
    busy_[next_busy_] = busy_.back();
    busy_.pop_back();
  }
  flush();
  return done;
}

int Packets::check_timers(std::int64_t now_ns) {
  int done = 0;
  for (std::size_t i = 0; i < timed_.size();) {
    QueuePair& qp = *timed_[i];
    PacketState& s = *qp.packets;
    if (!qp.sending() || (s.sent_end == s.una && s.resume_at_ns == 0)) {
      s.timed = false;
      s.resend_at_ns = 0;
      answered(s);
      timed_[i] = timed_.back();
      timed_.pop_back();
      continue;
    }
    ++i;
    if (s.resume_at_ns != 0) {
      if (now_ns < s.resume_at_ns) continue;
      s.resume_at_ns = 0;
      s.resend_at_ns = 0;
      done += transmit(qp, kBurst);
    }
    if (s.sent_end == s.una || !s.path.reliable()) {
      s.resend_at_ns = 0;
    } else if (s.resend_at_ns == 0) {
      s.resend_at_ns = now_ns + s.resend_after_ns;
      s.retry_at_ns = s.path.ack_timeout_ns == 0 ? INT64_MAX : now_ns + s.path.ack_timeout_ns;
    } else if (now_ns >= s.retry_at_ns) {
      ++engine_.counts_.timeouts;
      s.retry_at_ns = now_ns + s.path.ack_timeout_ns;
      s.resend_at_ns = std::min(s.retry_at_ns, now_ns + s.resend_after_ns);
      retry(qp, s.una);
      ++done;
    } else if (now_ns >= s.resend_at_ns) {
      // Sooner than the retry timer and not counted by it: a lost last packet is not worth half a second.
      ++counts_.resends;
      s.resend_after_ns = std::min(s.resend_after_ns * 2, kLongestResendNs);
      s.resend_at_ns = now_ns + s.resend_after_ns;
      slow_down(s);
      seek(qp, s.una);
      done += 1 + transmit(qp, kBurst);
    }
    if (has_work(qp)) list(qp);
  }
  flush();
  return done;
}

std::int64_t Packets::timer_limit_ns(std::int64_t now_ns) const {
  std::int64_t limit = unflushed_ || !held_.empty() ? 100'000 : INT64_MAX;
  for (const QueuePair* qp : timed_) {
    const PacketState& s = *qp->packets;
    if (!qp->sending()) continue;
    std::int64_t at = INT64_MAX;
    if (s.resume_at_ns != 0)
      at = s.resume_at_ns;
    else if (s.sent_end != s.una)
      at = s.resend_at_ns == 0 ? now_ns + s.resend_after_ns : std::min(s.resend_at_ns, s.retry_at_ns);
    if (at != INT64_MAX) limit = std::min(limit, std::max<std::int64_t>(at - now_ns, 1));
  }
  return limit;
}

std::string Packets::describe(const QueuePair& qp) const {
  const PacketPath& path = qp.packets->path;
  if (path.transport == r::Transport::ud) return fmt::format("RoCEv2 datagrams from {}", port(0).address().text());
  const std::string& reason = qp.packets->reason;
  return fmt::format("RoCEv2 from {} to {}, packets of {} bytes{}", port(path.port).address().text(), path.to.text(),
                     path.pmtu_bytes, reason.empty() ? "" : fmt::format(" ({})", reason));
}

std::string Packets::counters_text() const {
  const PacketCounts& c = counts_;
  std::string text = fmt::format(
      ",packets_sent={},packets_received={},packets_resent={},packets_resends={},packets_duplicates={},"
      "packets_acks_sent={},packets_acks_received={},packets_naks_received={},packets_rnr_received={},"
      "packets_cnp_sent={},packets_cnp_received={},packets_reads_replayed={},packets_atomics_replayed={}",
      c.packets_sent, c.packets_received, c.packets_resent, c.resends, c.duplicates, c.acks_sent, c.acks_received,
      c.naks_received, c.rnr_received, c.cnp_sent, c.cnp_received, c.reads_replayed, c.atomics_replayed);
  for (std::size_t i = 1; i < roce::kDropReasons; ++i)
    text += fmt::format(",drops_{}={}", roce::drop_name(static_cast<roce::Drop>(i)), c.drops[i]);
  return text;
}

bool Packets::work_waits() const {
  return !ack_due_.empty() ||
         std::any_of(busy_.begin(), busy_.end(), [](const QueuePair* qp) { return !qp->packets->answers.empty(); });
}

roce::Headers Packets::reply_headers(const QueuePair& qp, r::Opcode opcode, std::uint32_t psn) const {
  roce::Headers headers;
  headers.opcode = r::on_transport(opcode, qp.packets->path.transport);
  headers.dest_qpn = qp.remote_qpn;
  headers.psn = psn;
  return headers;
}

// Checks in the order in which rdma_rxe makes them; who fails one gets no answer.
void Packets::on_packet(const roce::Arrival& arrival) {
  using roce::Drop;
  ++counts_.packets_received;
  if (is_down()) return drop(Drop::injected);
  record_arrival(arrival);
  roce::Packet packet;
  if (const Drop why = roce::parse(arrival.bytes, packet); why != Drop::none) return drop(why);
  if (packet.dest_qpn == kGsiQpn) return on_gsi(arrival, packet);
  QueuePair* const qp = engine_.find_qp(packet.dest_qpn);
  if (qp == nullptr) return drop(Drop::unknown_qpn);
  if (!qp->packets) return drop(qp->state <= QpState::init ? Drop::wrong_state : Drop::unknown_qpn);
  PacketState& s = *qp->packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  const bool notification = shape.kind == r::Kind::cnp;
  if (!notification && shape.transport != s.path.transport) return drop(Drop::wrong_transport);
  if (shape.is_request() ? !qp->receiving() : !qp->sending()) return drop(Drop::wrong_state);
  if (s.path.transport != r::Transport::ud &&
      (arrival.flow.source != s.path.to || arrival.flow.destination != port(s.path.port).address()))
    return drop(Drop::wrong_address);
  const bool whole = arrival.id_unknown ? roce::check(arrival.flow, arrival.bytes, true)
                                        : roce::check_with_id(arrival.flow, arrival.ip_id, arrival.bytes);
  if (!whole) return drop(Drop::bad_icrc);
  if (notification) {
    ++counts_.cnp_received;
    slow_down(s);
    return;
  }
  if (qp->landing_waits()) {
    if (s.inbox.size() < kMostWaiting)
      s.inbox.push_back({arrival.flow,
                         arrival.ecn_ce,
                         arrival.id_unknown,
                         arrival.ip_id,
                         {arrival.bytes.begin(), arrival.bytes.end()}});
    return;
  }
  handle(*qp, arrival, packet);
}

// A packet that was found good and is this queue pair's.
void Packets::handle(QueuePair& qp, const roce::Arrival& arrival, const roce::Packet& packet) {
  PacketState& s = *qp.packets;
  const r::Shape& shape = r::shape_of(packet.opcode);
  if (arrival.ecn_ce && s.path.transport != r::Transport::ud) {
    const std::int64_t now = sys::now_ns();
    if (now - s.cnp_at_ns >= kCnpPeriodNs) {
      s.cnp_at_ns = now;
      if (std::byte* const out = open_packet(s, r::kCnpReservedBytes)) {
        roce::Headers headers = reply_headers(qp, r::Opcode::cnp, 0);
        headers.becn = true;
        close_packet(qp, out, roce::write_headers(headers, out) + r::kIcrcBytes);
        ++counts_.cnp_sent;
      }
    }
  }
  arrival_ = &arrival;
  engine_.heard_of(qp);
  if (shape.is_request()) {
    on_request(qp, packet);
  } else if (shape.kind == r::Kind::ack) {
    on_ack(qp, packet);
  } else {
    on_response(qp, packet);
  }
  if (has_work(qp)) list(qp);
}

}  // namespace strait::soft::nic
