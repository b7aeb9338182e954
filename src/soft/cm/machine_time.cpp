// SPDX-License-Identifier: Apache-2.0
// Sending, repeating, giving up.
#include <algorithm>
#include <cerrno>
#include <climits>

#include "soft/cm/machine.hpp"

namespace strait::soft::cm {

namespace {
// With waits from 100 ms doubling to 4.3 s: 50 s in all.
constexpr int kTries = 15;
}  // namespace

void Machine::send_to(const IpAddress& from, const IpAddress& to, std::uint64_t tid, const Body& body) {
  ++counts_.sent;
  port_.send(from, to, write({tid, body}));
}
void Machine::send(const Connection& c, const Body& body) {
  send_to(c.local, c.remote, c.tid, body);
}

void Machine::send_until_answered(Connection& c, const Body& body) {
  c.repeat = write({c.tid, body});
  c.tries_left = kTries;
  c.wait_ns = config_.first_wait_ns;
  ++counts_.sent;
  port_.send(c.local, c.remote, *c.repeat);
  set_due(c, config_.now() + c.wait_ns);
}

void Machine::stop_repeating(Connection& c) {
  c.repeat.reset();
  set_due(c, 0);
}

void Machine::set_due(Connection& c, std::int64_t at_ns) {
  if (c.due_ns != 0) {
    auto [at, last] = timers_.equal_range(c.due_ns);
    while (at != last && at->second != c.id) ++at;
    if (at != last) timers_.erase(at);
  }
  c.due_ns = at_ns;
  if (at_ns != 0) timers_.emplace(at_ns, c.id);
}

std::int64_t Machine::due_ns() const {
  return timers_.empty() ? INT64_MAX : timers_.begin()->first;
}

void Machine::on_time() {
  const std::int64_t now = config_.now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Connection& c = *lookup(timers_.begin()->second);
    set_due(c, 0);
    if (c.state == State::timewait) {
      if (!c.refused) emit(c, EventKind::timewait_exit);
      end(c);
    } else if (c.state == State::sidr_answered) {
      end(c);
    } else if (c.repeat && c.tries_left > 0) {
      --c.tries_left;
      ++counts_.repeated;
      ++counts_.sent;
      port_.send(c.local, c.remote, *c.repeat);
      c.wait_ns = std::min(c.wait_ns * 2, config_.longest_wait_ns);
      set_due(c, now + c.wait_ns);
    } else {
      give_up(c);
    }
  }
}

void Machine::give_up(Connection& c) {
  ++counts_.gave_up;
  switch (c.state) {
    case State::req_sent:
    case State::rep_sent: {
      const bool of_request = c.state == State::rep_sent;  // the message that is taken back answers a request
      send(c, rejection(c, wire::mad::RejReason::timeout, of_request ? kRejectsReq : kRejectsOther));
      emit(c, EventKind::unreachable, -ETIMEDOUT);
      return end(c);
    }
    case State::dreq_sent:
      // The peer is gone: that is disconnected too.
      emit(c, EventKind::disconnected, -ETIMEDOUT);
      c.repeat.reset();
      c.state = State::timewait;
      return set_due(c, config_.now() + config_.timewait_ns);
    case State::sidr_sent: emit(c, EventKind::unreachable, -ETIMEDOUT); return end(c);
    default: return end(c);
  }
}

// The last word of a connection: the answer to the peer's DREQ, kept to be given again.
void Machine::enter_timewait(Connection& c) {
  const Drep drep{c.id, c.remote_comm_id, {}};
  send(c, drep);
  c.answer = write({c.tid, drep});
  stop_repeating(c);
  c.state = State::timewait;
  set_due(c, config_.now() + config_.timewait_ns);
}

}  // namespace strait::soft::cm
