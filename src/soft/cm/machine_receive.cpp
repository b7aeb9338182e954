// SPDX-License-Identifier: Apache-2.0
// What a peer says. Every message may be lost, come twice, or come late: what a connection is not waiting for is
// answered as before, or ignored.
#include <cerrno>

#include "soft/cm/machine.hpp"

namespace strait::soft::cm {
namespace {

// Half a minute and more for a program to make up its mind, once it was told of a request.
constexpr std::uint8_t kServiceTimeout = 24;

template <std::size_t count>
std::vector<std::byte> all_of(const std::array<std::byte, count>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

bool Machine::on_mad(const IpAddress& from, const IpAddress& to, std::span<const std::byte> bytes) {
  Message message;
  const Refusal refusal = parse(bytes, message);
  if (refusal != Refusal::none) {
    ++counts_.garbage[static_cast<std::size_t>(refusal)];
    return false;
  }
  ++counts_.received;
  const From where{from, to, message.tid};
  const bool ours = std::visit([&](const auto& m) { return on(where, m); }, message.body);
  if (!ours) ++counts_.strangers;
  return ours;
}

namespace {

// What a message calls the receiver's end; 0: it does not know it yet.
struct Addressee {
  std::uint32_t operator()(const Req&) const { return 0; }
  std::uint32_t operator()(const SidrReq&) const { return 0; }
  std::uint32_t operator()(const SidrRep& m) const { return m.request_id; }
  template <class Other>
  std::uint32_t operator()(const Other& m) const {
    return m.remote_comm_id;
  }
};

}  // namespace

std::uint32_t addressee(const Message& message) {
  return std::visit(Addressee{}, message.body);
}

std::optional<Asked> asked(const IpAddress& to, const Message& message) {
  const auto of = [&](std::uint64_t service_id, std::span<const std::byte> private_data) {
    const auto addresses = parse_ip_header(private_data);
    return Asked{service_id, addresses ? addresses->destination : to};
  };
  if (const auto* req = std::get_if<Req>(&message.body)) return of(req->service_id, req->private_data);
  if (const auto* req = std::get_if<SidrReq>(&message.body)) return of(req->service_id, req->private_data);
  return std::nullopt;
}

Machine::Concern Machine::concern(const IpAddress& from, const IpAddress& to, const Message& message) const {
  const auto known_peer = [&](std::uint32_t comm_id, bool service) {
    return by_peer_.count({from, comm_id, service}) != 0 ? Concern::exact : Concern::none;
  };
  if (const auto service = asked(to, message)) {
    const auto* req = std::get_if<Req>(&message.body);
    const Concern known = req != nullptr ? known_peer(req->local_comm_id, false)
                                         : known_peer(std::get<SidrReq>(message.body).request_id, true);
    if (known != Concern::none) return known;
    const auto* const found = find_listener(service->service_id, service->address);
    if (found == nullptr) return Concern::none;
    return found->second.address.is_any() ? Concern::wildcard : Concern::exact;
  }
  const std::uint32_t id = addressee(message);
  if (id != 0) return connections_.count(id) != 0 ? Concern::exact : Concern::none;
  const auto* rej = std::get_if<Rej>(&message.body);
  return rej != nullptr ? known_peer(rej->local_comm_id, false) : Concern::none;
}

// The connection that both ids name. A peer that has not told us its id yet has none to be compared.
Connection* Machine::partner(const From& where, std::uint32_t ours, std::uint32_t theirs) {
  Connection* const c = lookup(ours);
  if (c == nullptr || c->remote != where.from || c->state >= State::sidr_sent) return nullptr;
  if (c->remote_comm_id != 0 && c->remote_comm_id != theirs) return nullptr;
  return c;
}

bool Machine::on(const From& where, const Req& m) {
  const auto known = by_peer_.find({where.from, m.local_comm_id, false});
  if (known != by_peer_.end()) {
    Connection& c = *lookup(known->second);
    if (c.remote_qpn == m.qpn && c.send_psn == m.starting_psn) {
      on_repeated_req(c, where);
      return true;
    }
    by_peer_.erase(known);  // the peer has begun anew, and its numbers too
  }
  const auto refuse = [&](wire::mad::RejReason reason) {
    ++counts_.refused;
    Rej rej;
    rej.remote_comm_id = m.local_comm_id;
    rej.message = kRejectsReq;
    rej.reason = static_cast<std::uint16_t>(reason);
    send_to(where.to, where.from, where.tid, rej);
  };
  // The address that was asked for is in the private data; a service without one has the packet's.
  const auto addresses = parse_ip_header(m.private_data);
  const auto* const found = find_listener(m.service_id, addresses ? addresses->destination : where.to);
  if (found == nullptr) {
    refuse(wire::mad::RejReason::invalid_service_id);
    return false;
  }
  const Id listener_id = found->first;
  Listener& listener = listeners_[listener_id];
  const bool xrc = m.transport == wire::mad::Transport::extended && m.extended_transport == wire::mad::kExtendedXrc;
  if (m.transport != wire::mad::Transport::rc && m.transport != wire::mad::Transport::uc && !xrc) {
    refuse(wire::mad::RejReason::invalid_transport_type);
    return true;
  }
  if (m.mtu_code < 1 || m.mtu_code > 5) {
    refuse(wire::mad::RejReason::invalid_mtu);
    return true;
  }
  if (m.local_comm_id == 0 || m.qpn == 0) {
    refuse(m.qpn == 0 ? wire::mad::RejReason::no_qp : wire::mad::RejReason::invalid_comm_id);
    return true;
  }
  if (listener.waiting >= listener.backlog) {
    refuse(wire::mad::RejReason::consumer);
    return true;
  }

  Connection& c = add(new_id());
  c.passive = true;
  c.state = State::req_received;
  c.tid = where.tid;
  c.remote_comm_id = m.local_comm_id;
  c.remote_guid = m.ca_guid;
  c.service_id = m.service_id;
  c.local = where.to;
  c.remote = where.from;
  c.pkey = m.pkey;
  c.transport = m.transport;
  c.extended_transport = m.extended_transport;
  c.remote_qpn = m.qpn;
  c.remote_qkey = m.qkey;
  c.send_psn = m.starting_psn;
  c.responder_resources = m.initiator_depth;
  c.initiator_depth = m.responder_resources;
  c.retry_count = m.retry_count;
  c.rnr_retry_count = m.rnr_retry_count;
  c.mtu_code = m.mtu_code;
  c.ack_timeout = m.primary.ack_timeout;
  c.traffic_class = m.primary.traffic_class;
  c.listener = listener_id;
  c.waiting = true;
  ++listener.waiting;
  by_peer_[{c.remote, c.remote_comm_id, false}] = c.id;

  QueueParameters peer;
  peer.qpn = m.qpn;
  peer.qkey = m.qkey;
  peer.srq = m.srq;
  peer.responder_resources = m.initiator_depth;
  peer.initiator_depth = m.responder_resources;
  peer.flow_control = m.flow_control;
  peer.retry_count = m.retry_count;
  peer.rnr_retry_count = m.rnr_retry_count;
  peer.private_data = all_of(m.private_data);
  emit(c, EventKind::request, 0, std::move(peer));
  return true;
}

void Machine::on_repeated_req(Connection& c, const From& where) {
  ++counts_.duplicates;
  switch (c.state) {
    case State::req_received: {  // the program takes its time: the peer need not hurry
      Mra mra;
      mra.local_comm_id = c.id;
      mra.remote_comm_id = c.remote_comm_id;
      mra.service_timeout = kServiceTimeout;
      return send_to(c.local, where.from, c.tid, mra);
    }
    case State::rep_sent:
      if (c.repeat) {
        ++counts_.sent;
        port_.send(c.local, c.remote, *c.repeat);
      }
      return;
    case State::timewait:
    case State::ended:
      if (c.refused) {
        ++counts_.sent;
        port_.send(c.local, c.remote, *c.answer);
        return;
      }
      return send(c, rejection(c, wire::mad::RejReason::stale_connection, kRejectsReq));
    default: return;  // an old one: the connection has gone on
  }
}

bool Machine::on(const From& where, const Mra& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  if (c == nullptr) return false;
  const bool awaited =
      (m.message == 0 && c->state == State::req_sent) || (m.message == 1 && c->state == State::rep_sent);
  if (awaited) c->asked_to_wait_by = m.local_comm_id;
  if (awaited) set_due(*c, config_.now() + (std::int64_t{4096} << m.service_timeout) + config_.longest_wait_ns);
  return true;
}

bool Machine::on(const From& where, const Rej& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id == 0 ? 0 : m.local_comm_id);
  if (c == nullptr) {
    // One end rejects before it has heard the other's id.
    Connection* const passive = [&]() -> Connection* {
      const auto at = by_peer_.find({where.from, m.local_comm_id, false});
      return m.remote_comm_id == 0 && at != by_peer_.end() ? lookup(at->second) : nullptr;
    }();
    if (passive == nullptr) return false;
    if (passive->state == State::req_received || passive->state == State::rep_sent) {
      emit(*passive, EventKind::rejected, m.reason);
      end(*passive);
    }
    return true;
  }
  switch (c->state) {
    case State::req_sent:
    case State::rep_sent:
    case State::rep_received:
    case State::req_received: {
      QueueParameters peer;
      peer.private_data = all_of(m.private_data);
      emit(*c, EventKind::rejected, m.reason, std::move(peer));
      end(*c);
      return true;
    }
    case State::established:  // the peer has forgotten it
      emit(*c, EventKind::disconnected, 0);
      stop_repeating(*c);
      c->state = State::timewait;
      set_due(*c, config_.now() + config_.timewait_ns);
      return true;
    case State::dreq_sent:
      emit(*c, EventKind::disconnected, 0);
      c->repeat.reset();
      c->state = State::timewait;
      set_due(*c, config_.now() + config_.timewait_ns);
      return true;
    default: return true;
  }
}

void Machine::look_for_peers(const std::function<bool(const IpAddress&, std::uint32_t)>& is_there) {
  std::vector<Id> dead;
  for (const auto& [id, c] : connections_) {
    const bool waits = c->state == State::req_sent || c->state == State::req_received ||
                       c->state == State::rep_received || c->state == State::established;
    const std::uint32_t peer = c->remote_comm_id != 0 ? c->remote_comm_id : c->asked_to_wait_by;
    if (waits && peer != 0 && !is_there(c->remote, peer)) dead.push_back(id);
  }
  for (const Id id : dead) {
    const Connection& c = *lookup(id);
    Rej last_word;
    last_word.local_comm_id = c.remote_comm_id;
    last_word.remote_comm_id = id;
    last_word.reason = static_cast<std::uint16_t>(wire::mad::RejReason::timeout);
    (void)on(From{c.remote, c.local, c.tid}, last_word);
  }
}

bool Machine::on(const From& where, const Rep& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  if (c == nullptr) {
    Rej rej;
    rej.remote_comm_id = m.local_comm_id;
    rej.local_comm_id = m.remote_comm_id;
    rej.message = kRejectsRep;
    rej.reason = static_cast<std::uint16_t>(wire::mad::RejReason::invalid_comm_id);
    send_to(where.to, where.from, where.tid, rej);
    return false;
  }
  if (c->state != State::req_sent) {
    ++counts_.duplicates;
    if (c->state == State::rep_received) {
      Mra mra;
      mra.local_comm_id = c->id;
      mra.remote_comm_id = c->remote_comm_id;
      mra.message = 1;
      mra.service_timeout = kServiceTimeout;
      send(*c, mra);
    } else if (c->answer && !c->passive && (c->state == State::established || c->refused)) {
      ++counts_.sent;
      port_.send(c->local, c->remote, *c->answer);
    }
    return true;
  }
  stop_repeating(*c);
  c->remote_comm_id = m.local_comm_id;
  c->remote_guid = m.ca_guid;
  c->remote_qpn = m.qpn;
  c->remote_qkey = m.qkey;
  c->send_psn = m.starting_psn;
  c->responder_resources = m.initiator_depth;
  c->initiator_depth = m.responder_resources;
  c->rnr_retry_count = m.rnr_retry_count;
  c->state = State::rep_received;
  QueueParameters peer;
  peer.qpn = m.qpn;
  peer.qkey = m.qkey;
  peer.srq = m.srq;
  peer.responder_resources = m.initiator_depth;
  peer.initiator_depth = m.responder_resources;
  peer.flow_control = m.flow_control;
  peer.retry_count = c->retry_count;
  peer.rnr_retry_count = m.rnr_retry_count;
  peer.private_data = all_of(m.private_data);
  emit(*c, EventKind::response, 0, std::move(peer));
  return true;
}

bool Machine::on(const From& where, const Rtu& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  if (c == nullptr) return false;
  if (c->state != State::rep_sent) {
    ++counts_.duplicates;
    return true;
  }
  stop_repeating(*c);
  c->state = State::established;
  emit(*c, EventKind::established);
  return true;
}

bool Machine::on(const From& where, const Dreq& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  if (c == nullptr) {  // so that the peer can stop asking
    send_to(where.to, where.from, where.tid, Drep{m.remote_comm_id, m.local_comm_id, {}});
    return false;
  }
  if (m.remote_qpn != c->local_qpn) return true;  // of an earlier connection with the same ids
  switch (c->state) {
    case State::rep_sent:
    case State::rep_received:
    case State::established:
      stop_repeating(*c);
      c->tid = where.tid;
      c->state = State::dreq_received;
      return emit(*c, EventKind::disconnected), true;
    case State::dreq_sent: {  // both at once: nobody will ask for the answer again
      c->tid = where.tid;
      emit(*c, EventKind::disconnected);
      enter_timewait(*c);
      return true;
    }
    case State::timewait:
      ++counts_.duplicates;
      send_to(c->local, c->remote, where.tid, Drep{c->id, c->remote_comm_id, {}});
      return true;
    default: ++counts_.duplicates; return true;
  }
}

bool Machine::on(const From& where, const Drep& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  if (c == nullptr) return false;
  if (c->state != State::dreq_sent) {
    ++counts_.duplicates;
    return true;
  }
  emit(*c, EventKind::disconnected);
  c->repeat.reset();
  c->state = State::timewait;
  set_due(*c, config_.now() + config_.timewait_ns);
  return true;
}

// A connection has one path here.
bool Machine::on(const From& where, const Lap& m) {
  Connection* const c = partner(where, m.remote_comm_id, m.local_comm_id);
  Apr apr;
  apr.local_comm_id = m.remote_comm_id;
  apr.remote_comm_id = m.local_comm_id;
  apr.status = static_cast<std::uint8_t>(c == nullptr ? wire::mad::AprStatus::invalid_comm_id
                                                      : wire::mad::AprStatus::unsupported);
  send_to(where.to, where.from, where.tid, apr);
  return c != nullptr;
}

bool Machine::on(const From& where, const Apr& m) {
  return partner(where, m.remote_comm_id, m.local_comm_id) != nullptr;  // nobody here asked
}

}  // namespace strait::soft::cm
