// SPDX-License-Identifier: Apache-2.0
// Connecting queue pairs, and the links to other engines underneath.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "sys/interfaces.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::size_t kMaxGreetings = 64;
constexpr std::int64_t kDoorLimitNs = 2'000'000'000;
constexpr std::int64_t kGreetingLimitNs = 2'000'000'000;  // a stranger who says nothing is let go
}  // namespace

Status Engine::adopt(std::unique_ptr<Link> link) {
  if (!link->loopback) STRAIT_CHECK(poller_.add(link->socket.get()));
  if (sleeping_) link->own().sleeping.store(1, std::memory_order_seq_cst);
  for (const std::string& door : link->doors) behind_doors_[door] = link->peer;
  if (!link->cross_reason.empty()) ++counts_.links_bounced;
  links_.push_back(std::move(link));
  ++counts_.links_opened;
  return {};
}

Result<Link*> Engine::link_to(const Address& to, sys::Deadline deadline, std::unique_lock<SpinLock>& lock) {
  const auto known = [&]() -> Link* {
    for (const auto& link : links_) {
      if (link->peer == to.engine && !link->dead) return link.get();
    }
    return nullptr;
  };
  if (Link* link = known()) return link;
  const LinkPolicy policy = link_policy();
  if (to.engine == id_) {
    STRAIT_TRY(LinkPair pair, open_loopback(id_, policy));
    STRAIT_CHECK(adopt(std::move(pair.first)));
    STRAIT_CHECK(adopt(std::move(pair.second)));
    return known();
  }
  // Not under the lock: the other engine may be connecting to this one at the same time, and both must get on.
  lock.unlock();
  auto opened = open_link(id_, socket_name(to.engine), &to.engine, wake_.fd(), policy, deadline, [this] {
    const std::scoped_lock again(mutex_);
    check_sockets();
    pass(0);
  });
  lock.lock();
  if (!opened) return std::move(opened).error();
  Link* link = opened->get();
  STRAIT_CHECK(adopt(std::move(*opened)));
  return link;
}

void Engine::accept_strangers() {
  const auto answer = [&](int listener, bool door) {
    while (greeting_.size() < kMaxGreetings) {
      auto socket = sys::accept_one(listener);
      if (!socket) break;
      greeting_.push_back({std::move(*socket), sys::now_ns(), door});
    }
  };
  answer(listener_.get(), false);
  for (const sys::ProcessFd& door : doors_) answer(door.get(), true);
  LinkPolicy policy = link_policy();
  for (std::size_t i = 0; i < greeting_.size();) {
    policy.shunned = greeting_[i].at_door ? &shunned_ : nullptr;
    auto link = accept_link(id_, greeting_[i].socket, wake_.fd(), policy);
    if (!link && link.error().code == Code::again && sys::now_ns() - greeting_[i].since_ns < kGreetingLimitNs) {
      ++i;
      continue;
    }
    if (link) {
      if (!adopt(std::move(*link))) ++counts_.garbage;
    } else {
      ++counts_.garbage;
    }
    greeting_.erase(greeting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// The other process is gone or speaks nonsense: its queue pairs fail, nothing else does.
void Engine::lose_link(Link& link) {
  if (link.dead) return;
  link.dead = true;
  // The link itself stays while queue pairs lead there. Its socket would be readable for ever, and keep awake who
  // sleeps on event_fd().
  link.socket.reset();
  ++counts_.links_lost;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    QueuePair& qp = *active_[i];
    if (qp.link != nullptr && qp.link->peer == link.peer) {
      read_doorbell(qp);
      // A queue pair that asks nothing of its peer does not notice that it is gone, as on any network.
      if (qp.verbs && qp.idle()) continue;
      nobody_answers(qp);
    }
  }
}

// A NIC learns that from its timer alone, and verbs programs need the time: what the peer did before it left is polled
// first, and a program that has all it wanted ends without looking at the rest. Without a timer, and for our own
// library, it is an error at once.
void Engine::nobody_answers(QueuePair& qp) {
  if (qp.verbs && qp.answer_limit_ns != 0) return;
  fail_oldest(qp, m::Syndrome::transport_retry_exceeded, kVendorPeerLost);
}

void Engine::drop_dead_links() {
  std::erase_if(links_, [this](const std::unique_ptr<Link>& link) {
    if (!link->dead) return false;
    return std::none_of(active_.begin(), active_.end(), [&](const QueuePair* qp) { return qp->link == link.get(); });
  });
}

Status Engine::connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request) {
  Address to{};
  std::memcpy(&to, request.remote.bytes, sizeof to);
  if (to.magic != kAddressMagic || to.version != kAddressVersion) {
    return fail(Code::unsupported, "the peer's NIC address is not that of a software NIC of this version");
  }
  std::unique_lock lock(mutex_);
  STRAIT_CHECK(there());
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  if (qp->state != QpState::init) return fail(Code::invalid, "queue pair {:#x} was connected before", qpn);
  if (config_.carrier == Carrier::packets) return connect_over_packets(*qp, to, request, "asked for by option carrier");
  if (to.wants_packets != 0) return connect_over_packets(*qp, to, request, "asked for by the peer");
  if (to.host != this_host()) return connect_over_packets(*qp, to, request, "the peer is on another host");
  auto link = link_to(to, sys::Deadline::after_ns(request.deadline_ns), lock);
  qp = find_qp(qpn);  // the lock was let go meanwhile
  if (qp == nullptr) return fail(Code::gone, "queue pair {:#x} was destroyed while it was being connected", qpn);
  if (!link) {
    // Refused on one side is refused on the other, so both come here.
    if (link.error().code != Code::denied || !packets_ || to.packet_bytes == 0) return std::move(link).error();
    return connect_over_packets(*qp, to, request, "no ring grant: " + link.error().text);
  }
  qp->link = *link;
  qp->remote_qpn = request.remote_qpn;
  qp->answer_limit_ns = request.ack_timeout_ns * (std::int64_t{request.retries} + 1);
  qp->rnr_retries = request.rnr_retries;
  qp->rnr_wait_ns = request.rnr_wait_ns;
  qp->state = QpState::ready;
  return {};
}

Status Engine::open_doors() {
  for (std::size_t i = 0; i < packets_->port_count(); ++i) {
    STRAIT_TRY(sys::Fd door, sys::unix_listen(door_name(packets_->port(i).address().gid, qpn_range_), *config_.calls));
    STRAIT_CHECK(poller_.add(door.get()));
    doors_.emplace_back(std::move(door));
  }
  return {};
}

// The link to whoever has queue pair `qpn` at `gid`, if that is an engine on this host with which there can be one.
// Null: packets. Both ends come to the same answer: a link has two ends, and who did not answer in time is shunned by
// this side from then on, whoever asks.
Result<Link*> Engine::link_by_gid(const Gid& gid, std::uint32_t qpn, std::unique_lock<SpinLock>& lock) {
  const auto range = static_cast<std::uint8_t>(qpn >> 16);
  if (config_.carrier == Carrier::packets || range == 0 || doors_.empty()) return static_cast<Link*>(nullptr);
  check_sockets();  // perhaps the other side has opened one just now
  const auto own = gids();
  if (range == qpn_range_ && std::find(own.begin(), own.end(), gid) != own.end()) {
    Address self{};
    self.engine = id_;
    return link_to(self, sys::Deadline::after_ns(kDoorLimitNs), lock);
  }
  const std::string name = door_name(gid, range);
  const auto known = [&]() -> Link* {
    const auto found = behind_doors_.find(name);
    if (found == behind_doors_.end()) return nullptr;
    for (const auto& link : links_) {
      if (link->peer == found->second && !link->dead) return link.get();
    }
    return nullptr;
  };
  if (Link* const link = known()) return link;
  if (!sys::is_own_address(gid)) return static_cast<Link*>(nullptr);
  LinkPolicy policy = link_policy();
  const Shunned shunned = shunned_;
  policy.shunned = &shunned;
  std::optional<pid_t> silent;
  lock.unlock();
  auto opened = open_link(
      id_, name, nullptr, wake_.fd(), policy, sys::Deadline::after_ns(kDoorLimitNs),
      [this] {
        const std::scoped_lock again(mutex_);
        check_sockets();
        pass(0);
      },
      &silent);
  lock.lock();
  if (!opened) {
    if (silent) shunned_.add(*silent, name);
    if (config_.carrier == Carrier::grant) return std::move(opened).error();
    return static_cast<Link*>(nullptr);
  }
  behind_doors_[name] = (*opened)->peer;
  Link* const link = opened->get();
  STRAIT_CHECK(adopt(std::move(*opened)));
  return link;
}

Status Engine::connect_packets(std::uint32_t qpn, const PacketPath& path) {
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  if (qp->state != QpState::init) return fail(Code::invalid, "queue pair {:#x} was connected before", qpn);
  if (!packets_) return fail(Code::unsupported, "this NIC has no port for packets");
  STRAIT_CHECK(packets_->connect(*qp, path));
  qp->state = QpState::ready;
  return {};
}

Result<std::string> Engine::describe_qp(std::uint32_t qpn) {
  const std::scoped_lock lock(mutex_);
  QueuePair* qp = find_qp(qpn);
  if (qp == nullptr) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  if (qp->packets) return packets_->describe(*qp);
  if (qp->link == nullptr) return std::string("not connected");
  Link& link = *qp->link;
  if (link.peer_reaches_us())
    return fmt::format("ring grant to {}, one copy by the owner{}", process_text(link.peer_pid),
                       memory_.any_behind_ports() ? " (of memory behind a port: two, by its vendor's copies)" : "");
  return fmt::format("ring grant to {}, two copies through the ring ({})", process_text(link.peer_pid),
                     link.cross_reason.empty() ? "the other process may not read this one" : link.cross_reason);
}

}  // namespace strait::soft::nic
