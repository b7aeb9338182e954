// SPDX-License-Identifier: Apache-2.0
// Connecting: the asking side.
#include "node/peer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/core.hpp"
#include "node/local.hpp"
#include "plan/cost.hpp"
#include "sys/host.hpp"

namespace strait::node {

Result<std::unique_ptr<strait_lane>> Core::make_lane(std::uint32_t depth, std::uint32_t signal_every, bool shared,
                                                     std::uint8_t rail) {
  if (rails_.empty()) {
    return with_remedy(fail(Code::unsupported, "this Node has no NIC, so it cannot talk to peers"),
                       "open the Node with the option nics=soft");
  }
  if (depth == 0) depth = settings_.lane_depth;
  if (depth > post::kMaxDepth || !std::has_single_bit(depth)) {
    return fail(Code::invalid, "a lane's depth is a power of two up to {}, not {}", post::kMaxDepth, depth);
  }
  const sys::NodeWish rings(placement_.ring_node());
  STRAIT_TRY(post::Lane lane, post::Lane::make(*rails_[rail].nic, depth, signal_every));
  auto handle = std::make_unique<strait_lane>(std::move(lane));
  handle->core.set_unstage(unstage);
  handle->mark = &mark_;
  handle->sleeper = &sleeper_;
  handle->shared = shared;
  handle->rail = rail;
  handle->node = shared_from_this();
  return handle;
}

bool Core::same_wire(const Rail& rail) const {
  return std::string_view(rail.nic->ops()->kind) == rails_.front().nic->ops()->kind;
}

Result<std::uint8_t> Core::rail_for(const std::string& near_device) {
  buffer::Providers::Place place;
  if (!near_device.empty()) {
    STRAIT_TRY(place, providers_->find(near_device));
  }
  if (rails_.size() < 2) return std::uint8_t{0};  // make_lane() says when there is none
  std::vector<std::uint8_t> numbers;
  std::vector<plan::Nic> nics;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (!same_wire(rails_[i])) continue;
    numbers.push_back(static_cast<std::uint8_t>(i));
    nics.push_back(record_of(rails_[i]));
  }
  if (place.device != nullptr) {
    const plan::Memory memory = record_of(*place.device);
    return numbers[plan::preferred(memory, nics, machine().rank_of(memory)).front()];
  }
  plan::Memory host;
  host.name = host.kind = "host";
  const std::vector<std::size_t> best = plan::best_group(host, nics);
  return numbers[best[turn_.fetch_add(1) % best.size()]];
}

strait_nic_connect_request Core::connect_settings(const rendezvous::NicAddress& nic, std::uint32_t qpn,
                                                  sys::Deadline deadline) const {
  strait_nic_connect_request request{};
  request.struct_size = sizeof request;
  request.remote_qpn = qpn;
  static_assert(sizeof request.remote.bytes == sizeof nic);
  std::memcpy(request.remote.bytes, nic.data(), nic.size());
  request.deadline_ns = deadline.left_ns();
  request.ack_timeout_ns = settings_.ack_timeout_ns;
  request.retries = settings_.retries;
  request.rnr_retries = settings_.rnr_retries;
  request.rnr_wait_ns = 100'000;
  return request;
}

template <class Queue>
Result<rendezvous::ConnectReply> Core::join(const Queue& queue, std::uint32_t depth, rendezvous::Client& client,
                                            rendezvous::LaneKind kind, std::uint8_t rail, sys::Deadline deadline) {
  rendezvous::ConnectRequest request;
  std::memcpy(request.nic.data(), rails_[rail].nic->address().bytes, request.nic.size());
  request.rail = rail;
  request.qpn = queue.qpn();
  request.lane = kind;
  request.depth = depth;
  request.node = id_;
  request.pid = sys::process_id();
  request.host = host_;
  request.name = address_;
  // The peer's NIC shakes hands with ours while we wait on its socket.
  const DriveMeanwhile driving(*this);
  STRAIT_TRY(rendezvous::ConnectReply reply, client.call_for<rendezvous::ConnectReply>(request, deadline));
  STRAIT_CHECK(queue.connect(connect_settings(reply.nic, reply.qpn, deadline)));
  STRAIT_CHECK(client.call_for<rendezvous::Done>(rendezvous::Ready{queue.qpn()}, deadline));
  sleeper_.rouse_now();  // there is a new link to listen on
  return reply;
}

template <class Queue>
Result<std::shared_ptr<rendezvous::Client>> Core::join_peer(const Queue& queue, std::uint32_t depth, strait_peer& peer,
                                                            std::uint8_t rail, std::uint8_t& far_rail,
                                                            sys::Deadline deadline) {
  STRAIT_TRY(std::shared_ptr<rendezvous::Client> client, client_of(peer, secret_, deadline));
  const std::lock_guard joining(peer.join_mutex);
  // A peer that connected to us has never heard of the connection we make now: to it we are a new peer.
  const auto kind = peer.joined ? rendezvous::LaneKind::extra : rendezvous::LaneKind::peer;
  STRAIT_TRY(const rendezvous::ConnectReply reply, join(queue, depth, *client, kind, rail, deadline));
  far_rail = reply.rail;
  peer.joined = true;
  return client;
}
template Result<std::shared_ptr<rendezvous::Client>> Core::join_peer(const rail::DeviceQueue&, std::uint32_t,
                                                                     strait_peer&, std::uint8_t, std::uint8_t&,
                                                                     sys::Deadline);

void Core::describe_lane(strait_lane& lane, const std::string& peer_name) const {
  lane.peer_name = peer_name;
  lane.path = fmt::format("{} -> {} -> {}", rails_[lane.rail].nic->name(), lane.core.queue().describe(), peer_name);
}

// Before anybody else sees the lane.
void Core::mention_grants(strait_lane& lane, strait_peer& peer) const {
  if (!peer.same_host) return;
  if (!door_) {
    // Whose options asked for that knows it, and strait_node_info says it too; unless another option asked for grants.
    if (settings_.grants == Grants::map || settings_.grants == Grants::copy)
      lane.path += fmt::format("; no map or copy grants: {}", no_grants_because_);
    return;
  }
  const std::lock_guard lock(peer.host_mutex);
  if (lane.near_side == nullptr) {
    lane.path += fmt::format("; no map or copy grants: {}", peer.no_grants_because);
  } else if (const std::string& why = peer.host->no_copies_because(); !why.empty()) {
    lane.path += fmt::format("; memory it grants by map: without the NIC (no copy grants: {})", why);
  } else {
    lane.path += "; memory it grants by map or copy: without the NIC";
  }
}

Result<strait_peer*> Core::connect(const std::string& address, sys::Deadline deadline) {
  STRAIT_TRY(const sys::Endpoint to, sys::parse_endpoint(address));
  if (to.port == 0) return fail(Code::invalid, "\"{}\" names no port: peers are named host:port", address);
  STRAIT_TRY(const std::uint8_t rail, rail_for({}));
  STRAIT_TRY(std::unique_ptr<strait_lane> lane, make_lane(0, 1, true, rail));
  auto peer = std::make_unique<strait_peer>();
  STRAIT_TRY(peer->client, rendezvous::Client::connect(to, secret_, deadline));
  STRAIT_TRY(const rendezvous::ConnectReply reply,
             join(lane->core.queue(), lane->core.depth(), *peer->client, rendezvous::LaneKind::peer, rail, deadline));
  lane->far_rail = reply.rail;
  peer->node = shared_from_this();
  peer->address = to.text();
  peer->pid = reply.pid;
  peer->same_host = reply.host == host_;
  peer->node_id = reply.node;
  peer->joined = true;
  peer->name = fmt::format("{} (process {})", peer->address, reply.pid);
  lane->client = peer->client;
  describe_lane(*lane, peer->name);
  peer->lane = std::move(lane);
  bring_near(*peer->lane, *peer, deadline);
  mention_grants(*peer->lane, *peer);
  add_lane(peer->lane.get());
  log_.write(Level::info, "connected to {}: {}", peer->name, peer->lane->path);
  const Locked lock(peers_mutex_);
  peers_.push_back(peer.get());
  return peer.release();
}

Result<strait_lane*> Core::open_lane(strait_peer& peer, std::uint32_t depth, std::uint32_t signal_every,
                                     const std::string& near_device, sys::Deadline deadline) {
  STRAIT_TRY(const std::uint8_t rail, rail_for(near_device));
  STRAIT_TRY(std::unique_ptr<strait_lane> lane, make_lane(depth, signal_every, false, rail));
  STRAIT_TRY(lane->client, join_peer(lane->core.queue(), lane->core.depth(), peer, rail, lane->far_rail, deadline));
  describe_lane(*lane, peer.name);
  bring_near(*lane, peer, deadline);
  mention_grants(*lane, peer);
  add_lane(lane.get());
  log_.write(Level::debug, "another lane to {}: {}", peer.name, lane->path);
  return lane.release();
}

Result<std::shared_ptr<rendezvous::Client>> client_of(strait_peer& peer, const rendezvous::Secret& secret,
                                                      sys::Deadline deadline) {
  const std::lock_guard lock(peer.client_mutex);
  if (peer.client) return peer.client;
  if (peer.gone.load()) return fail(Code::gone, "the peer {} has closed its connection", peer.name);
  STRAIT_TRY(const sys::Endpoint to, sys::parse_endpoint(peer.address));
  STRAIT_TRY(peer.client, rendezvous::Client::connect(to, secret, deadline));
  return peer.client;
}

namespace {

// Before anything is asked: what does not fit there would be written behind it.
Status fits(const strait_target& out) {
  if (out.struct_size >= sizeof out) return {};
  return fail(Code::invalid, "strait_target.struct_size is {}, not {}", out.struct_size, sizeof out);
}

void copy_target(const rendezvous::Target& from, strait_target& out) {
  strait_target all{};
  all.struct_size = out.struct_size;
  all.access = from.access;
  all.region_id = from.region_id;
  all.epoch = from.epoch;
  all.address = from.address;
  all.length_bytes = from.length_bytes;
  all.rkey = from.rkey;
  all.signal_rkey = from.signal_rkey;
  all.signal_address = from.signal_address;
  static_assert(sizeof all.more_rkeys == sizeof from.more_rkeys && kMaxRails == rendezvous::kLastRail + 1);
  std::ranges::copy(from.more_rkeys, all.more_rkeys);
  std::ranges::copy(from.more_signal_rkeys, all.more_signal_rkeys);
  out = all;
}

}  // namespace

Status Core::lookup(strait_peer& peer, const std::string& name, sys::Deadline deadline, strait_target& out) {
  STRAIT_CHECK(fits(out));
  if (name.empty() || name.size() > rendezvous::kMaxNameBytes) {
    return fail(Code::invalid, "a published name has 1 to {} bytes, this one has {}", rendezvous::kMaxNameBytes,
                name.size());
  }
  STRAIT_TRY(const auto client, client_of(peer, secret_, deadline));
  STRAIT_TRY(const rendezvous::LookupReply reply,
             client->call_for<rendezvous::LookupReply>(rendezvous::Lookup{name}, deadline));
  copy_target(reply.target, out);
  ask_for_grant(peer, reply.target, deadline);
  return {};
}

Status Core::redeem(strait_peer& peer, const strait_ticket& ticket, sys::Deadline deadline, strait_target& out) {
  STRAIT_CHECK(fits(out));
  rendezvous::Redeem request;
  std::memcpy(request.ticket.data(), ticket.bytes, sizeof ticket.bytes);
  STRAIT_TRY(const auto client, client_of(peer, secret_, deadline));
  STRAIT_TRY(const rendezvous::RedeemReply reply, client->call_for<rendezvous::RedeemReply>(request, deadline));
  copy_target(reply.target, out);
  ask_for_grant(peer, reply.target, deadline);
  return {};
}

void Core::close_lane(strait_lane* raw) {
  std::unique_ptr<strait_lane> lane(raw);
  remove_lane(raw);
  lane.reset();  // destroys the queue: whatever was under way is flushed and uses no memory any more
  sweep();
}

void Core::close_peer(strait_peer* raw) {
  std::unique_ptr<strait_peer> peer(raw);
  {
    const Locked lock(peers_mutex_);
    std::erase(peers_, raw);
  }
  if (peer->lane) remove_lane(peer->lane.get());
  peer.reset();
  sweep();
}

}  // namespace strait::node
