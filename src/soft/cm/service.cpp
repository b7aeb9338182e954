// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/service.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "sys/clock.hpp"
#include "sys/event_set.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::soft::cm {
namespace {

// What of a message's private data is the program's: all but the addresses in front of it.
std::size_t user_data_at(const Ident& ident, EventKind kind) {
  const bool request = kind == EventKind::request || kind == EventKind::service_request;
  return request && ident.source.family != kFamilyIb ? kIpHeaderBytes : 0;
}

}  // namespace

Service::~Service() {
  ending_ = true;
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  if (machine_) {
    settings_.device->stop();
    machine_.reset();
  }
}

Result<std::shared_ptr<Channel>> Service::open(bool nonblocking) {
  STRAIT_TRY(auto flag, sys::PollFlag::make(nonblocking));
  auto channel = std::make_shared<Channel>(std::move(flag));
  const std::scoped_lock lock(mutex_);
  channels_.push_back(channel.get());
  return channel;
}

void Service::close(Channel& channel) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint32_t> mine;
  for (const auto& [id, ident] : idents_) {
    if (ident.channel == &channel) mine.push_back(id);
  }
  for (const std::uint32_t id : mine) (void)remove_ident(id);
  channels_.erase(std::remove(channels_.begin(), channels_.end(), &channel), channels_.end());
}

void Service::farewell() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !machine_ || !settings_.device->may_send_at_exit()) return;
  for (const auto& [cm, id] : by_cm_) machine_->release(cm);
}

std::size_t Service::idents() {
  const std::scoped_lock lock(mutex_);
  return idents_.size();
}
std::size_t Service::connections() {
  const std::scoped_lock lock(mutex_);
  return machine_ ? machine_->connections() : 0;
}

// With the first address that a program names: one that only asks has no thread and no sockets.
Status Service::start() {
  if (machine_) return {};
  const auto seed =
      settings_.seed != 0 ? settings_.seed : static_cast<std::uint32_t>(sys::wall_ns() >> 10 ^ sys::now_ns());
  if (!neighbours_) {
    STRAIT_TRY(auto joined, Neighbours::join(settings_.scope, seed));
    neighbours_.emplace(std::move(joined));
  }
  if (!wake_.valid()) {
    STRAIT_TRY(wake_, sys::Event::make());
  }
  MachineConfig config = settings_.machine;
  config.node_guid = settings_.device->node_guid();
  config.guid_at = [this](const IpAddress& local) {
    const auto& gids = settings_.device->gids();
    const auto at = std::find_if(gids.begin(), gids.end(), [&](const GidInfo& gid) { return gid.address == local; });
    return at != gids.end() && at->node_guid != 0 ? at->node_guid : settings_.device->node_guid();
  };
  config.range = neighbours_->range();
  config.seed = seed;
  MadPort& port = *this;
  Sink& sink = *this;
  auto machine = std::make_unique<Machine>(config, port, sink);
  STRAIT_CHECK(
      settings_.device->start([this](const IpAddress& from, const IpAddress& to, std::span<const std::byte> mad) {
        if (mad.size() != wire::mad::kBytes) return;
        Arrived arrived{from, to, {}};
        std::copy(mad.begin(), mad.end(), arrived.mad.begin());
        {
          const std::scoped_lock lock(arrived_mutex_);
          arrived_.push_back(arrived);
        }
        wake();
      }));
  machine_ = std::move(machine);
  auto thread = sys::start_quiet_thread([this] { run(); });
  if (!thread) {
    settings_.device->stop();
    machine_.reset();
    return std::move(thread).error();
  }
  thread_ = std::move(*thread);
  return {};
}

// A process that was killed has said goodbye to nobody, as a kernel would have for it: its claim has gone.
void Service::look_for_peers() {
  const auto& gids = settings_.device->gids();
  std::map<std::uint8_t, bool> alive;
  machine_->look_for_peers([&](const IpAddress& remote, std::uint32_t comm_id) {
    if (std::none_of(gids.begin(), gids.end(), [&](const GidInfo& gid) { return gid.address == remote; })) return true;
    const auto [at, fresh] = alive.try_emplace(static_cast<std::uint8_t>(comm_id >> 24), true);
    if (fresh) at->second = neighbours_->is_range_alive(at->first);
    return at->second;
  });
}

void Service::run() {
  constexpr std::int64_t kLookEveryNs = 500'000'000;
  std::int64_t looked = sys::now_ns();
  std::vector<Arrived> batch;
  while (!ending_) {
    wake_.clear();
    batch.clear();
    {
      const std::scoped_lock lock(arrived_mutex_);
      batch.swap(arrived_);
    }
    std::int64_t due = INT64_MAX;
    {
      const std::scoped_lock lock(mutex_);
      for (const Arrived& arrived : batch) handle(arrived);
      machine_->on_time();
      if (sys::now_ns() - looked >= kLookEveryNs) {
        look_for_peers();
        looked = sys::now_ns();
      }
      due = machine_->due_ns();
    }
    const std::int64_t now = sys::now_ns();
    if (due > now) (void)sys::nap_on(wake_.fd(), std::min<std::int64_t>(due - now, 1'000'000'000));
  }
}

// A message comes to all processes on an address; nobody may answer for another.
void Service::handle(const Arrived& arrived) {
  Message message;
  if (parse(arrived.mad, message) == Refusal::none) {
    const Machine::Concern concern = machine_->concern(arrived.from, arrived.to, message);
    if (const auto service = asked(arrived.to, message)) {
      const auto elsewhere = [&](const IpAddress& address) {
        return neighbours_->is_claimed_elsewhere(service->service_id, address);
      };
      if (concern != Machine::Concern::exact && elsewhere(service->address)) return;
      if (concern == Machine::Concern::none && (elsewhere(IpAddress{}) || is_early(arrived.from, message))) return;
    } else if (concern == Machine::Concern::none) {
      const auto range = static_cast<std::uint8_t>(addressee(message) >> 24);
      if (range != neighbours_->range() && neighbours_->is_range_alive(range)) return;
    }
  }
  (void)machine_->on_mad(arrived.from, arrived.to, arrived.mad);
}

// Servers let go of a port and take it again between two connections (perftest does): a request for a service that
// nobody has is refused only when its repetitions have found nobody either.
bool Service::is_early(const IpAddress& from, const Message& message) {
  constexpr std::int64_t kGraceNs = 600'000'000;
  constexpr std::size_t kMostRemembered = 1024;
  const std::int64_t now = sys::now_ns();
  if (unserved_.size() >= kMostRemembered) unserved_.clear();
  const auto [at, fresh] = unserved_.try_emplace({from, message.tid}, now);
  if (fresh || now - at->second < kGraceNs) return true;
  unserved_.erase(at);
  return false;
}

void Service::send(const IpAddress& from, const IpAddress& to, const Mad& mad) {
  const auto& gids = settings_.device->gids();
  for (std::size_t i = 0; i < gids.size() && i < 256; ++i) {
    if (gids[i].address == from) return settings_.device->send(static_cast<std::uint8_t>(i), to, mad);
  }
}

// ---- idents --------------------------------------------------------------------------------------------------------

Ident& Service::add_ident(Channel& channel) {
  while (idents_.count(next_ident_) != 0) ++next_ident_;
  Ident& ident = idents_[next_ident_];
  ident.id = next_ident_++;
  ident.channel = &channel;
  return ident;
}

long Service::find(const Channel& channel, std::uint32_t id, Ident*& out) {
  const auto at = idents_.find(id);
  if (at == idents_.end()) return -ENOENT;
  if (at->second.channel != &channel) return -EINVAL;
  out = &at->second;
  return 0;
}

// Returns how many of its events the program has seen: it waits until it has acknowledged as many.
std::uint32_t Service::remove_ident(std::uint32_t id) {
  Ident& ident = idents_.at(id);
  auto& queue = ident.channel->queue_;
  queue.erase(std::remove_if(queue.begin(), queue.end(), [&](const Waiting& w) { return w.ident == id; }), queue.end());
  if (queue.empty()) ident.channel->flag_.clear();
  if (ident.cm != 0) {
    by_cm_.erase(ident.cm);
    machine_->release(ident.cm);
    wake();
  }
  if (ident.claimed) neighbours_->drop(service_of(ident, ident.source), ident.source.address);
  const std::uint32_t reported = ident.events_reported;
  idents_.erase(id);
  return reported;
}

// ---- events --------------------------------------------------------------------------------------------------------

void Service::push(Channel& channel, Waiting waiting) {
  channel.queue_.push_back(std::move(waiting));
  channel.flag_.raise();
}

void Service::report(Ident& ident, UserEvent kind, int status, const Event* event) {
  // A program that has not accepted yet has no name for it: its accept will fail.
  if (ident.uid == 0) return;
  Waiting waiting;
  waiting.ident = ident.id;
  waiting.response.uid = ident.uid;
  waiting.response.id = ident.id;
  waiting.response.event = static_cast<std::uint32_t>(kind);
  waiting.response.status = static_cast<std::uint32_t>(status);
  if (event != nullptr) fill(waiting.response, ident, *event);
  push(*ident.channel, std::move(waiting));
}

void Service::fill(rdma_ucm_event_resp& out, const Ident& ident, const Event& event) {
  const std::size_t at = user_data_at(ident, event.kind);
  const auto data = std::span(event.peer.private_data).subspan(std::min(at, event.peer.private_data.size()));
  const auto bytes = std::min<std::size_t>(data.size(), 255);
  if (ident.qp_type == kQpUd) {
    auto& ud = out.param.ud;
    std::copy_n(data.begin(), bytes, reinterpret_cast<std::byte*>(ud.private_data));
    ud.private_data_len = static_cast<std::uint8_t>(bytes);
    ud.qp_num = event.peer.qpn;
    ud.qkey = event.peer.qkey;
    if (event.kind == EventKind::established) fill_ah(ud.ah_attr, ident, machine_->find(event.id));
    return;
  }
  auto& conn = out.param.conn;
  std::copy_n(data.begin(), bytes, reinterpret_cast<std::byte*>(conn.private_data));
  conn.private_data_len = static_cast<std::uint8_t>(bytes);
  conn.qp_num = event.peer.qpn;
  conn.qkey = event.peer.qkey;
  conn.srq = event.peer.srq ? 1 : 0;
  conn.responder_resources = event.peer.responder_resources;
  conn.initiator_depth = event.peer.initiator_depth;
  conn.flow_control = event.peer.flow_control ? 1 : 0;
  conn.retry_count = event.peer.retry_count;
  conn.rnr_retry_count = event.peer.rnr_retry_count;
}

void Service::fill_ah(ib_uverbs_ah_attr& out, const Ident& ident, const Connection* c) const {
  const IpAddress& remote = c != nullptr ? c->remote : ident.destination.address;
  std::copy(remote.gid.begin(), remote.gid.end(), out.grh.dgid);
  out.grh.sgid_index = ident.sgid_index;
  out.grh.hop_limit = 64;
  out.grh.traffic_class = c != nullptr ? c->traffic_class : ident.traffic_class;
  out.is_global = 1;
  out.port_num = 1;
}

void Service::on_event(Event event) {
  if (event.kind == EventKind::request || event.kind == EventKind::service_request) return on_request(event);
  const auto at = by_cm_.find(event.id);
  if (at == by_cm_.end()) return;  // a request that the program has not seen
  Ident& ident = idents_.at(at->second);
  switch (event.kind) {
    case EventKind::response: return report(ident, UserEvent::connect_response, 0, &event);
    case EventKind::established: return report(ident, UserEvent::established, 0, &event);
    case EventKind::rejected: return report(ident, UserEvent::rejected, event.status, &event);
    case EventKind::unreachable: return report(ident, UserEvent::unreachable, event.status, &event);
    case EventKind::disconnected: return report(ident, UserEvent::disconnected, event.status, &event);
    case EventKind::timewait_exit: return report(ident, UserEvent::timewait_exit, 0, &event);
    case EventKind::request:
    case EventKind::service_request: return;
  }
}

void Service::on_request(const Event& event) {
  const auto at = by_cm_.find(event.listener);
  const Connection* const c = machine_->find(event.id);
  if (at == by_cm_.end() || c == nullptr) return;
  Ident& listener = idents_.at(at->second);
  Waiting waiting;
  waiting.ident = listener.id;
  waiting.request = event.id;
  waiting.response.uid = listener.uid;
  waiting.response.event = static_cast<std::uint32_t>(UserEvent::connect_request);
  fill(waiting.response, listener, event);

  waiting.source = listener.source;
  waiting.source.address = c->local;
  waiting.destination.address = c->remote;
  if (listener.source.family == kFamilyIb) {
    waiting.destination.family = kFamilyIb;
    waiting.source.service_id = c->service_id;
  } else {
    const auto addresses = parse_ip_header(event.peer.private_data);
    if (addresses) {
      waiting.source.address = addresses->destination;
      waiting.destination.address = addresses->source;
      waiting.destination.port = addresses->source_port;
    }
    const std::uint16_t family = waiting.destination.address.is_v4() ? kFamilyIp4 : kFamilyIp6;
    waiting.source.family = waiting.destination.family = family;
  }
  push(*listener.channel, std::move(waiting));
}

}  // namespace strait::soft::cm
