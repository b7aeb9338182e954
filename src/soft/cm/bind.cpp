// SPDX-License-Identifier: Apache-2.0
// Addresses: whose they are, how a peer is reached, who listens where.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/cm/service.hpp"
#include "soft/cm/take.hpp"
#include "sys/clock.hpp"
#include "sys/interfaces.hpp"
#include "sys/route.hpp"

namespace strait::soft::cm {
namespace {

constexpr std::uint32_t kMostBacklog = 1024;
constexpr std::uint16_t kFirstEphemeral = 32768, kEphemerals = 28232;  // as the kernel's default range

long errno_of(const Error& error, int otherwise) {
  return -(error.sys_errno != 0 ? error.sys_errno : otherwise);
}

template <class Storage>
std::optional<SocketAddress> parse_address(const Storage& storage) {
  return parse_socket_address(std::as_bytes(std::span(&storage, 1)));
}
template <class Storage>
std::optional<SocketAddress> parse_address(const Storage& storage, std::size_t said_bytes) {
  auto out = parse_address(storage);
  if (out && said_bytes != size_of_family(out->family)) out.reset();
  return out;
}

void set_port(SocketAddress& address, std::uint16_t port) {
  address.port = port;
  if (address.family == kFamilyIb) {
    address.service_id = (address.service_id & ~std::uint64_t{0xffff}) | port;
    address.service_mask = ~std::uint64_t{0};
  }
}

}  // namespace

std::uint64_t Service::service_of(const Ident& ident, const SocketAddress& address) const {
  if (address.family == kFamilyIb) return address.service_id;
  return wire::mad::service_id(static_cast<wire::mad::PortSpace>(ident.space), address.port);
}

long Service::take_device(Ident& ident, const IpAddress& address) {
  const auto& gids = settings_.device->gids();
  for (std::size_t i = 0; i < gids.size() && i < 256; ++i) {
    if (gids[i].address != address) continue;
    ident.has_device = true;
    ident.sgid_index = static_cast<std::uint8_t>(i);
    return 0;
  }
  return sys::is_own_address(address.gid) ? -ENODEV : -EADDRNOTAVAIL;
}

// The port, or one that is free for port 0.
long Service::claim_port(Ident& ident, SocketAddress& address) {
  const auto random = static_cast<std::uint32_t>(sys::now_ns() >> 8 ^ ident.id * 2654435761u);
  const auto ephemeral = [&](unsigned i) {
    return static_cast<std::uint16_t>(kFirstEphemeral + (random + i) % kEphemerals);
  };
  if (address.family == kFamilyIb && address.port == 0) {  // nothing to share before it listens
    set_port(address, ephemeral(0));
    return 0;
  }
  if (!neighbours_) {
    auto joined = Neighbours::join(settings_.scope, random);
    if (!joined) return errno_of(joined.error(), EIO);
    neighbours_.emplace(std::move(*joined));
  }
  if (address.port != 0) {
    const Status claimed = neighbours_->claim(service_of(ident, address), address.address);
    ident.claimed = claimed.has_value();
    if (claimed || (ident.reuse_address && claimed.error().sys_errno == EADDRINUSE)) return 0;
    return errno_of(claimed.error(), EADDRINUSE);
  }
  for (unsigned i = 0; i < 256; ++i) {
    set_port(address, ephemeral(i));
    if (neighbours_->claim(service_of(ident, address), address.address)) {
      ident.claimed = true;
      return 0;
    }
  }
  return -EADDRNOTAVAIL;
}

long Service::bind(const Call& call, bool ip_only) {
  std::uint32_t id = 0;
  std::optional<SocketAddress> address;
  if (ip_only) {
    const auto cmd = take<rdma_ucm_bind_ip>(call.in);
    id = cmd.id;
    address = parse_address(cmd.addr);
  } else {
    const auto cmd = take<rdma_ucm_bind>(call.in);
    if (cmd.reserved != 0) return -EINVAL;
    id = cmd.id;
    address = parse_address(cmd.addr, cmd.addr_size);
  }
  if (!address) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, id, ident); error < 0) return error;
  return bind_to(*ident, *address);
}

long Service::bind_to(Ident& ident, SocketAddress address) {
  if (ident.phase != Phase::idle) return -EINVAL;
  if (address.address.is_multicast()) return -EADDRNOTAVAIL;
  if (!address.is_any()) {
    if (const long error = take_device(ident, address.address); error < 0) return error;
  }
  if (const long error = claim_port(ident, address); error < 0) {
    ident.has_device = false;
    return error;
  }
  ident.source = address;
  ident.phase = Phase::bound;
  return 0;
}

long Service::resolve_address(const Call& call, bool ip_only) {
  std::uint32_t id = 0;
  std::optional<SocketAddress> source, destination;
  if (ip_only) {
    const auto cmd = take<rdma_ucm_resolve_ip>(call.in);
    id = cmd.id;
    if (cmd.src_addr.sin6_family != 0) {
      source = parse_address(cmd.src_addr);
      if (!source) return -EINVAL;
    }
    destination = parse_address(cmd.dst_addr);
  } else {
    const auto cmd = take<rdma_ucm_resolve_addr>(call.in);
    if (cmd.reserved != 0) return -EINVAL;
    id = cmd.id;
    if (cmd.src_size != 0) {
      source = parse_address(cmd.src_addr, cmd.src_size);
      if (!source) return -EINVAL;
    }
    destination = parse_address(cmd.dst_addr, cmd.dst_size);
  }
  if (!destination) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, id, ident); error < 0) return error;
  if (ident->phase == Phase::idle && source && (!source->is_any() || source->port != 0)) {
    if (const long error = bind_to(*ident, *source); error < 0) return error;
  }
  if (ident->phase != Phase::idle && ident->phase != Phase::bound) return -EINVAL;
  if (ident->phase == Phase::bound && ident->source.family != destination->family) return -EINVAL;
  return resolve_to(*ident, ident->source, *destination);
}

// What cannot be resolved is told by an event, as it would be by a kernel that asks the network.
long Service::resolve_to(Ident& ident, const SocketAddress& bound, const SocketAddress& wanted) {
  SocketAddress destination = wanted;
  SocketAddress source = bound;
  source.family = destination.family;
  if (ident.phase == Phase::idle) {
    source.address = destination.address.is_v4() ? IpAddress::v4(0, 0, 0, 0) : IpAddress{};
    if (source.family == kFamilyIb) source.pkey = destination.pkey;
  }
  const auto refuse = [&](long error) {
    report(ident, UserEvent::addr_error, static_cast<int>(error));
    return 0L;
  };
  if (destination.address.is_multicast() && ident.qp_type != kQpUd) return refuse(-EINVAL);
  const auto& gids = settings_.device->gids();
  if (destination.is_any()) {  // this host
    const bool v4 = destination.address.is_v4() || destination.family == kFamilyIp4;
    const auto own = std::find_if(gids.begin(), gids.end(), [&](const GidInfo& g) { return g.address.is_v4() == v4; });
    if (own == gids.end()) return refuse(-ENODEV);
    destination.address = source.is_any() ? own->address : source.address;
  }
  if (source.is_any()) {
    const auto found = sys::source_towards(destination.address.gid, static_cast<unsigned>(destination.scope));
    if (!found) return refuse(errno_of(found.error(), ENETUNREACH));
    source.address.gid = *found;
  }
  if (source.address.is_v4() != destination.address.is_v4()) return refuse(-EINVAL);
  if (take_device(ident, source.address) < 0) return refuse(-ENODEV);
  if (source.port == 0) {
    const auto random = static_cast<std::uint32_t>(sys::now_ns() >> 8 ^ ident.id * 2654435761u);
    set_port(source, static_cast<std::uint16_t>(kFirstEphemeral + random % kEphemerals));
  }
  if (ident.claimed && ident.source.address != source.address) {  // the claim goes by the address that was bound
    neighbours_->drop(service_of(ident, ident.source), ident.source.address);
    ident.claimed = neighbours_->claim(service_of(ident, source), source.address).has_value();
  }
  ident.source = source;
  ident.destination = destination;
  ident.phase = Phase::addr_resolved;
  report(ident, UserEvent::addr_resolved);
  return 0;
}

long Service::resolve_route(const Call& call) {
  const auto cmd = take<rdma_ucm_resolve_route>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase != Phase::addr_resolved) return -EINVAL;
  ident->phase = Phase::route_resolved;
  report(*ident, UserEvent::route_resolved);
  return 0;
}

long Service::listen(const Call& call) {
  const auto cmd = take<rdma_ucm_listen>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase == Phase::idle) {
    SocketAddress any;
    any.family = kFamilyIp4;
    any.address = IpAddress::v4(0, 0, 0, 0);
    if (const long error = bind_to(*ident, any); error < 0) return error;
  }
  if (ident->phase != Phase::bound) return -EINVAL;
  if (const Status started = start(); !started) return errno_of(started.error(), EIO);
  const std::uint64_t service = service_of(*ident, ident->source);
  if (!ident->claimed) {
    const Status claimed = neighbours_->claim(service, ident->source.address);
    if (!claimed) return errno_of(claimed.error(), EADDRINUSE);
    ident->claimed = true;
  }
  const std::uint32_t backlog = cmd.backlog > 0 && cmd.backlog < kMostBacklog ? cmd.backlog : kMostBacklog;
  auto listener = machine_->listen(service, ident->source.address, backlog, ident->one_family);
  if (!listener) return errno_of(listener.error(), EADDRINUSE);
  ident->cm = *listener;
  by_cm_[ident->cm] = ident->id;
  ident->phase = Phase::listening;
  return 0;
}

}  // namespace strait::soft::cm
