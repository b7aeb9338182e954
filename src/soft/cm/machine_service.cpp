// SPDX-License-Identifier: Apache-2.0
// Datagram services: one question, one answer.
#include <algorithm>

#include "soft/cm/machine.hpp"

namespace strait::soft::cm {

Result<Id> Machine::resolve(const ConnectRequest& request) {
  SidrReq req;
  if (request.queue.private_data.size() > req.private_data.size())
    return Error{Code::invalid,
                 EINVAL,
                 0,
                 fmt::format("{} bytes of private data, and the message holds {}.", request.queue.private_data.size(),
                             req.private_data.size()),
                 {}};
  std::copy(request.queue.private_data.begin(), request.queue.private_data.end(), req.private_data.begin());
  Connection& c = add(new_id());
  c.state = State::sidr_sent;
  c.service_id = request.service_id;
  c.local = request.source;
  c.remote = request.destination;
  c.pkey = request.pkey;
  c.local_qpn = request.queue.qpn;
  c.traffic_class = request.traffic_class;
  req.request_id = c.id;
  req.pkey = c.pkey;
  req.service_id = c.service_id;
  send_until_answered(c, req);
  return c.id;
}

bool Machine::on(const From& where, const SidrReq& m) {
  const auto known = by_peer_.find({where.from, m.request_id, true});
  if (known != by_peer_.end()) {
    ++counts_.duplicates;
    const Connection& c = *lookup(known->second);
    if (c.answer) {
      ++counts_.sent;
      port_.send(c.local, c.remote, *c.answer);
    }
    return true;
  }
  const auto addresses = parse_ip_header(m.private_data);
  const auto* const found = find_listener(m.service_id, addresses ? addresses->destination : where.to);
  const bool full = found != nullptr && found->second.waiting >= found->second.backlog;
  if (found == nullptr || full) {
    ++counts_.refused;
    SidrRep rep;
    rep.request_id = m.request_id;
    rep.service_id = m.service_id;
    rep.status = static_cast<std::uint8_t>(full ? wire::mad::SidrStatus::reject : wire::mad::SidrStatus::unsupported);
    send_to(where.to, where.from, where.tid, rep);
    return found != nullptr;
  }
  const Id listener = found->first;
  Connection& c = add(new_id());
  c.passive = true;
  c.state = State::sidr_received;
  c.tid = where.tid;
  c.remote_comm_id = m.request_id;
  c.service_id = m.service_id;
  c.local = where.to;
  c.remote = where.from;
  c.pkey = m.pkey;
  c.listener = listener;
  c.waiting = true;
  ++listeners_[listener].waiting;
  by_peer_[{c.remote, c.remote_comm_id, true}] = c.id;
  QueueParameters peer;
  peer.private_data.assign(m.private_data.begin(), m.private_data.end());
  emit(c, EventKind::service_request, 0, std::move(peer));
  return true;
}

void Machine::answer_service(Connection& c, wire::mad::SidrStatus status, const QueueParameters& queue) {
  stop_waiting(c);
  SidrRep rep;
  rep.request_id = c.remote_comm_id;
  rep.status = static_cast<std::uint8_t>(status);
  rep.service_id = c.service_id;
  if (status == wire::mad::SidrStatus::ok) {
    rep.qpn = queue.qpn;
    rep.qkey = queue.qkey;
    c.local_qpn = queue.qpn;
  }
  std::copy(queue.private_data.begin(), queue.private_data.end(), rep.private_data.begin());
  send(c, rep);
  // The question comes again if the answer is lost.
  c.answer = write({c.tid, rep});
  c.state = State::sidr_answered;
  set_due(c, config_.now() + 2 * config_.longest_wait_ns);
}

bool Machine::on(const From& where, const SidrRep& m) {
  Connection* const c = lookup(m.request_id);
  if (c == nullptr || c->remote != where.from || c->passive || c->state < State::sidr_sent) return false;
  if (c->state != State::sidr_sent) {
    ++counts_.duplicates;
    return true;
  }
  QueueParameters peer;
  peer.private_data.assign(m.private_data.begin(), m.private_data.end());
  if (m.status != 0) {
    emit(*c, EventKind::unreachable, m.status, std::move(peer));
  } else {
    c->remote_qpn = peer.qpn = m.qpn;
    c->remote_qkey = peer.qkey = m.qkey;
    emit(*c, EventKind::established, 0, std::move(peer));
  }
  end(*c);
  return true;
}

}  // namespace strait::soft::cm
