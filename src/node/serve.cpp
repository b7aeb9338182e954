// SPDX-License-Identifier: Apache-2.0
// Connecting: the side that is asked. Runs on the rendezvous' thread, one call at a time.
#include <cstring>

#include "node/core.hpp"
#include "node/incoming.hpp"
#include "node/peer.hpp"
#include "sys/host.hpp"

namespace strait::node {
namespace {

constexpr std::uint32_t kPassiveBlocks = 16;

}  // namespace

strait_peer* Core::find_served_locked(rendezvous::PeerId id) {
  if (const auto found = incoming_.find(id); found != incoming_.end()) return found->second->peer.get();
  for (const auto& peer : waiting_) {
    if (peer->served == id) return peer.get();
  }
  for (strait_peer* peer : peers_) {
    if (peer->served == id) return peer;
  }
  return nullptr;
}

Result<rendezvous::ConnectReply> Core::on_connect(rendezvous::PeerId id, const rendezvous::ConnectRequest& request) {
  wait_until_open();
  if (rails_.empty()) return fail(Code::unsupported, "the Node at {} has no NIC", address_);
  const sys::Deadline deadline = connect_deadline(-1);
  rendezvous::ConnectReply reply;
  // As the far end counts its own: where NICs of one number are on one network, that is the one that reaches it.
  const std::size_t asked = request.rail % rails_.size();
  reply.rail = same_wire(rails_[asked]) ? static_cast<std::uint8_t>(asked) : std::uint8_t{0};
  const rail::Nic& nic = *rails_[reply.rail].nic;
  std::memcpy(reply.nic.data(), nic.address().bytes, reply.nic.size());
  reply.node = id_;
  reply.pid = sys::process_id();
  reply.host = host_;
  reply.name = address_;
  const strait_nic_connect_request settings = connect_settings(request.nic, request.qpn, deadline);

  if (request.lane == rendezvous::LaneKind::extra) {
    STRAIT_TRY(auto queue, rail::Queue::make(nic, {kPassiveBlocks, 0}));
    STRAIT_CHECK(queue->connect(settings));
    sleeper_.rouse_now();
    reply.qpn = queue->qpn();
    const Locked lock(peers_mutex_);
    strait_peer* peer = find_served_locked(id);
    if (peer == nullptr) return fail(Code::invalid, "a further lane was asked for before the first one");
    peer->passive.push_back(std::move(queue));
    return reply;
  }

  STRAIT_TRY(std::unique_ptr<strait_lane> lane, make_lane(0, 1, true, reply.rail));
  lane->far_rail = request.rail;
  STRAIT_CHECK(lane->core.queue().connect(settings));
  sleeper_.rouse_now();  // there is a new link to listen on
  reply.qpn = lane->core.queue().qpn();
  auto incoming = std::make_unique<Incoming>();
  incoming->remote_qpn = request.qpn;
  incoming->peer = std::make_unique<strait_peer>();
  strait_peer& peer = *incoming->peer;
  peer.node = shared_from_this();
  peer.served = id;
  peer.address = request.name;
  peer.pid = request.pid;
  peer.same_host = request.host == host_;
  peer.node_id = request.node;
  peer.name = fmt::format("{} (process {})", request.name, request.pid);
  describe_lane(*lane, peer.name);
  peer.lane = std::move(lane);
  const Locked lock(peers_mutex_);
  incoming_[id] = std::move(incoming);
  return reply;
}

Status Core::on_ready(rendezvous::PeerId id, const rendezvous::Ready& ready) {
  std::unique_ptr<Incoming> incoming;
  {
    const Locked lock(peers_mutex_);
    const auto found = incoming_.find(id);
    if (found == incoming_.end()) {
      // A further lane: its queue has been serving since it was connected.
      return find_served_locked(id) != nullptr ? Status{} : fail(Code::invalid, "ready was said before connect");
    }
    if (found->second->remote_qpn != ready.qpn) return Status{};
    incoming = std::move(found->second);
    incoming_.erase(found);
  }
  add_lane(incoming->peer->lane.get());
  log_.write(Level::info, "{} has connected: {}", incoming->peer->name, incoming->peer->lane->path);
  {
    const Locked lock(peers_mutex_);
    waiting_.push_back(std::move(incoming->peer));
  }
  accepted_.notify_one();
  counters_.get("peers_accepted").add();
  return {};
}

void Core::on_gone(rendezvous::PeerId id) {
  std::vector<std::unique_ptr<strait_peer>> dropped;
  std::vector<std::unique_ptr<rail::Queue>> passive;
  std::string left;
  {
    const Locked lock(peers_mutex_);
    if (const auto found = incoming_.find(id); found != incoming_.end()) {
      dropped.push_back(std::move(found->second->peer));
      incoming_.erase(found);
    }
    for (auto& peer : waiting_) {
      if (peer->served == id) dropped.push_back(std::move(peer));
    }
    std::erase(waiting_, nullptr);
    for (strait_peer* peer : peers_) {
      if (peer->served != id) continue;
      peer->gone.store(true);
      left = peer->name;
      peer->lane->peer_gone.store(true);
      peer->lane->core.queue().fail();  // what waits on it ends now, and says that the peer is gone
      passive.swap(peer->passive);
    }
  }
  if (!left.empty() && !closed()) log_.write(Level::info, "{} has gone: its connection ended", left);
  for (auto& peer : dropped) {
    if (peer->lane) remove_lane(peer->lane.get());
  }
}

Result<strait_peer*> Core::accept(sys::Deadline deadline) {
  Locked lock(peers_mutex_);
  while (waiting_.empty()) {
    if (closed()) return fail(Code::gone, "the Node was closed while waiting for a peer");
    if (deadline.passed()) return fail(Code::timeout, "no peer connected to {} before the deadline", address_);
    // With progress=caller nobody else drives the NIC that the peer wants to shake hands with.
    if (settings_.progress != ProgressMode::thread) {
      lock.unlock();
      drive_all();
      lock.lock();
    }
    const std::int64_t nap_ns = settings_.progress == ProgressMode::thread ? 100'000'000 : 1'000'000;
    lock.wait(accepted_, std::min(nap_ns, deadline.left_ns()));
  }
  std::unique_ptr<strait_peer> peer = std::move(waiting_.front());
  waiting_.pop_front();
  peers_.push_back(peer.get());
  return peer.release();
}

}  // namespace strait::node
