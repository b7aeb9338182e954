// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sys/clock.hpp"

namespace strait::soft::cm {
namespace {

constexpr std::uint8_t kResponseTimeout = 20;  // announced to peers: 4.3 s
constexpr std::uint8_t kMostRetries = 15;

Error wrong_state(const Connection& c, const char* what) {
  return {Code::invalid, EINVAL, 0, fmt::format("The connection cannot {}: it is {}.", what, state_name(c.state)), {}};
}
Error unknown_id(Id id) {
  return {Code::invalid, EINVAL, 0, fmt::format("There is no connection {:#x}.", id), {}};
}
Error too_long(std::size_t bytes, std::size_t most) {
  return {Code::invalid, EINVAL, 0, fmt::format("{} bytes of private data, and the message holds {}.", bytes, most),
          "Send less with the request, and the rest over the connection."};
}

template <std::size_t count>
Status put(std::span<const std::byte> from, std::array<std::byte, count>& into) {
  if (from.size() > count) return too_long(from.size(), count);
  std::copy(from.begin(), from.end(), into.begin());
  return {};
}

}  // namespace

const char* state_name(State state) {
  switch (state) {
    case State::req_sent: return "waiting for the peer's answer";
    case State::req_received: return "waiting for accept or reject";
    case State::rep_sent: return "accepted, and the peer has not said that it is ready";
    case State::rep_received: return "accepted by the peer";
    case State::established: return "established";
    case State::dreq_sent: return "disconnecting";
    case State::dreq_received: return "disconnected by the peer";
    case State::timewait: return "disconnected";
    case State::sidr_sent: return "waiting for the service's answer";
    case State::sidr_received: return "waiting for accept or reject";
    case State::sidr_answered: return "answered";
    case State::ended: return "at its end";
  }
  return "unknown";
}

Machine::Machine(MachineConfig config, MadPort& port, Sink& sink)
    : config_(std::move(config)), port_(port), sink_(sink), random_(config_.seed * 0x9e3779b97f4a7c15u + 1) {
  if (!config_.now) config_.now = [] { return sys::now_ns(); };
  if (config_.first_wait_ns == 0) config_.first_wait_ns = 100'000'000;
  if (config_.longest_wait_ns == 0) config_.longest_wait_ns = std::int64_t{4096} << kResponseTimeout;
  if (config_.timewait_ns == 0) config_.timewait_ns = std::int64_t{4096} << 18;
  next_id_ = random_psn();
  next_tid_ = std::uint64_t{random_psn()} << 32;
}

Machine::~Machine() {
  for (auto& [id, c] : connections_) c->released = true;  // the sink may be gone
  std::vector<Id> open;
  for (const auto& [id, c] : connections_) open.push_back(id);
  for (const Id id : open) release(id);
}

std::uint32_t Machine::random_psn() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<std::uint32_t>(random_ >> 32) & 0xffffff;
}

Id Machine::new_id() {
  // Numbers rest before they name another connection: they count up, 24 bits below the range.
  for (;;) {
    const Id id = std::uint32_t{config_.range} << 24 | (next_id_++ & 0xffffff);
    if (id != 0 && connections_.count(id) == 0 && listeners_.count(id) == 0) return id;
  }
}

Connection& Machine::add(Id id) {
  auto made = std::make_unique<Connection>();
  made->id = id;
  made->tid = ++next_tid_;
  made->receive_psn = random_psn();
  return *(connections_[id] = std::move(made));
}

Connection* Machine::lookup(Id id) {
  const auto at = connections_.find(id);
  return at == connections_.end() ? nullptr : at->second.get();
}
const Connection* Machine::find(Id id) const {
  const auto at = connections_.find(id);
  return at == connections_.end() || at->second->released ? nullptr : at->second.get();
}

const std::pair<const Id, Machine::Listener>* Machine::find_listener(std::uint64_t service_id,
                                                                     const IpAddress& address) const {
  const std::pair<const Id, Listener>* any = nullptr;
  for (const auto& entry : listeners_) {
    if (entry.second.service_id != service_id) continue;
    if (entry.second.address == address) return &entry;
    // 0.0.0.0 takes IPv4 only.
    if (!entry.second.address.is_any()) continue;
    const bool v4 = entry.second.address.is_v4();
    if (v4 == address.is_v4() || (!v4 && !entry.second.one_family)) any = &entry;
  }
  return any;
}
bool Machine::listens(std::uint64_t service_id, const IpAddress& address) const {
  return find_listener(service_id, address) != nullptr;
}

void Machine::forget(Id id) {
  Connection* const c = lookup(id);
  if (c == nullptr) return;
  set_due(*c, 0);
  stop_waiting(*c);
  if (c->passive) {
    const auto at = by_peer_.find({c->remote, c->remote_comm_id, c->state >= State::sidr_sent});
    if (at != by_peer_.end() && at->second == id) by_peer_.erase(at);
    const auto other = by_peer_.find({c->remote, c->remote_comm_id, c->state < State::sidr_sent});
    if (other != by_peer_.end() && other->second == id) by_peer_.erase(other);
  }
  connections_.erase(id);
}

// Nothing more happens to it. Its owner may still ask about it.
void Machine::end(Connection& c) {
  stop_repeating(c);
  stop_waiting(c);
  if (c.released) return forget(c.id);
  c.state = State::ended;
}

void Machine::stop_waiting(Connection& c) {
  if (!c.waiting) return;
  c.waiting = false;
  const auto listener = listeners_.find(c.listener);
  if (listener != listeners_.end()) --listener->second.waiting;
}

void Machine::emit(const Connection& c, EventKind kind, int status, QueueParameters peer) {
  if (c.released) return;
  sink_.on_event(Event{kind, c.id, c.listener, status, std::move(peer)});
}

Rej Machine::rejection(const Connection& c, wire::mad::RejReason reason, std::uint8_t message) const {
  Rej rej;
  rej.local_comm_id = c.id;
  rej.remote_comm_id = c.remote_comm_id;
  rej.message = message;
  rej.reason = static_cast<std::uint16_t>(reason);
  return rej;
}

Result<Id> Machine::listen(std::uint64_t service_id, const IpAddress& address, std::uint32_t backlog, bool one_family) {
  for (const auto& [id, listener] : listeners_) {
    if (listener.service_id == service_id && listener.address == address)
      return Error{Code::again, EADDRINUSE, 0,
                   fmt::format("Somebody listens on service {:#x} of {} already.", service_id, address.text()),
                   "Choose another port."};
  }
  const Id id = new_id();
  listeners_[id] = Listener{service_id, address, backlog, 0, one_family};
  return id;
}

Result<Id> Machine::connect(const ConnectRequest& request) {
  Req req;
  if (auto fits = put(request.queue.private_data, req.private_data); !fits) return std::move(fits).error();
  Connection& c = add(new_id());
  c.service_id = request.service_id;
  c.local = request.source;
  c.remote = request.destination;
  c.pkey = request.pkey;
  c.transport = request.transport;
  c.extended_transport = request.extended_transport;
  c.local_qpn = request.queue.qpn;
  c.responder_resources = request.queue.responder_resources;
  c.initiator_depth = request.queue.initiator_depth;
  c.retry_count = request.queue.retry_count & 7;
  c.rnr_retry_count = request.queue.rnr_retry_count & 7;
  c.mtu_code = request.mtu_code;
  c.ack_timeout = request.ack_timeout & 31;
  c.traffic_class = request.traffic_class;

  req.local_comm_id = c.id;
  req.service_id = c.service_id;
  req.ca_guid = config_.guid_at ? config_.guid_at(c.local) : config_.node_guid;
  req.qkey = request.queue.qkey;
  req.qpn = c.local_qpn;
  req.responder_resources = c.responder_resources;
  req.initiator_depth = c.initiator_depth;
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.transport = c.transport;
  req.extended_transport = c.extended_transport;
  req.flow_control = request.queue.flow_control;
  req.starting_psn = c.receive_psn;
  req.retry_count = c.retry_count;
  req.rnr_retry_count = c.rnr_retry_count;
  req.pkey = c.pkey;
  req.mtu_code = c.mtu_code;
  req.max_cm_retries = kMostRetries;
  req.srq = request.queue.srq;
  req.primary.local_gid = c.local;
  req.primary.remote_gid = c.remote;
  req.primary.traffic_class = c.traffic_class;
  req.primary.hop_limit = 64;
  req.primary.ack_timeout = c.ack_timeout;
  c.state = State::req_sent;
  send_until_answered(c, req);
  return c.id;
}

Status Machine::accept(Id id, const QueueParameters& queue) {
  Connection* const c = lookup(id);
  if (c == nullptr || c->released) return unknown_id(id);
  if (c->state == State::sidr_received) {
    if (queue.private_data.size() > PrivateData<136>{}.size()) return too_long(queue.private_data.size(), 136);
    answer_service(*c, wire::mad::SidrStatus::ok, queue);
    return {};
  }
  if (c->state != State::req_received) return wrong_state(*c, "be accepted");
  Rep rep;
  if (auto fits = put(queue.private_data, rep.private_data); !fits) return fits;
  stop_waiting(*c);
  c->local_qpn = queue.qpn;
  c->responder_resources = queue.responder_resources;
  c->initiator_depth = queue.initiator_depth;
  rep.local_comm_id = c->id;
  rep.remote_comm_id = c->remote_comm_id;
  rep.qkey = queue.qkey;
  rep.qpn = queue.qpn;
  rep.starting_psn = c->receive_psn;
  rep.responder_resources = queue.responder_resources;
  rep.initiator_depth = queue.initiator_depth;
  rep.flow_control = queue.flow_control;
  rep.rnr_retry_count = queue.rnr_retry_count & 7;
  rep.srq = queue.srq;
  rep.ca_guid = config_.guid_at ? config_.guid_at(c->local) : config_.node_guid;
  c->state = State::rep_sent;
  send_until_answered(*c, rep);
  return {};
}

Status Machine::reject(Id id, wire::mad::RejReason reason, std::span<const std::byte> private_data) {
  Connection* const c = lookup(id);
  if (c == nullptr || c->released) return unknown_id(id);
  if (c->state == State::sidr_received) {
    QueueParameters nothing;
    nothing.private_data.assign(private_data.begin(), private_data.end());
    if (private_data.size() > PrivateData<136>{}.size()) return too_long(private_data.size(), 136);
    answer_service(*c, wire::mad::SidrStatus::reject, nothing);
    return {};
  }
  const bool of_response = c->state == State::rep_received;
  if (c->state != State::req_received && !of_response) return wrong_state(*c, "be rejected");
  Rej rej = rejection(*c, reason, of_response ? kRejectsRep : kRejectsReq);
  if (auto fits = put(private_data, rej.private_data); !fits) return fits;
  stop_waiting(*c);
  send(*c, rej);
  // If the rejection is lost the request comes again: the answer is kept for that.
  c->answer = write({c->tid, rej});
  c->refused = true;
  c->state = State::timewait;
  stop_repeating(*c);
  set_due(*c, config_.now() + config_.timewait_ns);
  return {};
}

Status Machine::ready(Id id) {
  Connection* const c = lookup(id);
  if (c == nullptr || c->released) return unknown_id(id);
  if (c->state != State::rep_received) return wrong_state(*c, "be ready");
  const Rtu rtu{c->id, c->remote_comm_id, {}};
  send(*c, rtu);
  c->answer = write({c->tid, rtu});  // a REP that comes again shows that it was lost
  c->state = State::established;
  return {};
}

Status Machine::seen_alive(Id id) {
  Connection* const c = lookup(id);
  if (c == nullptr || c->released) return unknown_id(id);
  if (c->state == State::established) return {};
  if (c->state != State::rep_sent) return wrong_state(*c, "be established");
  stop_repeating(*c);
  c->state = State::established;
  emit(*c, EventKind::established);
  return {};
}

Status Machine::disconnect(Id id) {
  Connection* const c = lookup(id);
  if (c == nullptr || c->released) return unknown_id(id);
  switch (c->state) {
    case State::established:
    case State::rep_sent:
      c->state = State::dreq_sent;
      c->tid = ++next_tid_;
      send_until_answered(*c, Dreq{c->id, c->remote_comm_id, c->remote_qpn, {}});
      return {};
    case State::dreq_received: enter_timewait(*c); return {};
    default: return wrong_state(*c, "be disconnected");
  }
}

void Machine::taken(Id id) {
  if (Connection* const c = lookup(id)) stop_waiting(*c);
}

void Machine::release(Id id) {
  const auto listener = listeners_.find(id);
  if (listener != listeners_.end()) {
    std::vector<Id> untaken;
    for (const auto& [other, c] : connections_) {
      if (c->listener == id && c->waiting) untaken.push_back(other);
    }
    for (const Id other : untaken) release(other);
    listeners_.erase(id);
    return;
  }
  Connection* const c = lookup(id);
  if (c == nullptr) return;
  c->released = true;
  switch (c->state) {
    case State::req_sent: send(*c, rejection(*c, wire::mad::RejReason::timeout, kRejectsReq)); return end(*c);
    case State::req_received:
      // Kept for a while, to refuse the repetitions of its request.
      c->answer = write({c->tid, rejection(*c, wire::mad::RejReason::consumer, kRejectsReq)});
      port_.send(c->local, c->remote, *c->answer);
      ++counts_.sent;
      stop_waiting(*c);
      c->refused = true;
      c->state = State::timewait;
      return set_due(*c, config_.now() + config_.timewait_ns);
    case State::rep_received: send(*c, rejection(*c, wire::mad::RejReason::consumer, kRejectsRep)); return end(*c);
    case State::rep_sent:
    case State::established:
      // It goes on asking until the peer has heard it, without an owner.
      c->state = State::dreq_sent;
      c->tid = ++next_tid_;
      return send_until_answered(*c, Dreq{c->id, c->remote_comm_id, c->remote_qpn, {}});
    case State::dreq_received: return enter_timewait(*c);
    case State::sidr_received: return answer_service(*c, wire::mad::SidrStatus::reject, {});
    case State::dreq_sent:
    case State::timewait:
    case State::sidr_answered: return;  // until its timer ends it
    case State::sidr_sent:
    case State::ended: return end(*c);
  }
}

}  // namespace strait::soft::cm
