// SPDX-License-Identifier: Apache-2.0
// Connecting queue pairs, and the links to other engines underneath.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::size_t kMaxGreetings = 64;
constexpr std::int64_t kGreetingLimitNs = 2'000'000'000;  // a stranger who says nothing is let go
}  // namespace

Status Engine::adopt(std::unique_ptr<Link> link) {
  if (!link->loopback) STRAIT_CHECK(poller_.add(link->socket.get()));
  if (sleeping_) link->own().sleeping.store(1, std::memory_order_seq_cst);
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
  auto opened = open_link(id_, to, wake_.fd(), policy, deadline, [this] {
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
  while (greeting_.size() < kMaxGreetings) {
    auto socket = sys::accept_one(listener_.get());
    if (!socket) break;
    greeting_.push_back({std::move(*socket), sys::now_ns()});
  }
  const LinkPolicy policy = link_policy();
  for (std::size_t i = 0; i < greeting_.size();) {
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
  ++counts_.links_lost;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    QueuePair& qp = *active_[i];
    if (qp.link != nullptr && qp.link->peer == link.peer) {
      read_doorbell(qp);
      fail_oldest(qp, m::Syndrome::transport_retry_exceeded, kVendorPeerLost);
    }
  }
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

Status Engine::connect_packets(std::uint32_t qpn, const PacketPath& path) {
  const std::scoped_lock lock(mutex_);
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
  if (link.peer_reaches_us()) return fmt::format("ring grant to process {}, one copy by the owner", link.peer_pid);
  return fmt::format("ring grant to process {}, two copies through the ring ({})", link.peer_pid,
                     link.cross_reason.empty() ? "the other process may not read this one" : link.cross_reason);
}

}  // namespace strait::soft::nic
