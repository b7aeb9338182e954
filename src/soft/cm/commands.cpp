// SPDX-License-Identifier: Apache-2.0
// The write protocol: a header that says which command and how many bytes, the command, and in it where its answer
// goes. Everything comes from a program that may be wrong in any way.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "soft/cm/service.hpp"
#include "soft/cm/take.hpp"

namespace strait::soft::cm {
namespace {

constexpr std::uint32_t kCommands = RDMA_USER_CM_CMD_JOIN_MCAST + 1;

// The least bytes of each command: what came later in the life of the ABI may be missing.
constexpr std::array<std::size_t, kCommands> kLeast = [] {
  std::array<std::size_t, kCommands> least{};
  least[RDMA_USER_CM_CMD_CREATE_ID] = sizeof(rdma_ucm_create_id);
  least[RDMA_USER_CM_CMD_DESTROY_ID] = sizeof(rdma_ucm_destroy_id);
  least[RDMA_USER_CM_CMD_BIND_IP] = sizeof(rdma_ucm_bind_ip) - 4;
  least[RDMA_USER_CM_CMD_RESOLVE_IP] = sizeof(rdma_ucm_resolve_ip);
  least[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = sizeof(rdma_ucm_resolve_route);
  least[RDMA_USER_CM_CMD_QUERY_ROUTE] = sizeof(rdma_ucm_query) - 4;
  least[RDMA_USER_CM_CMD_CONNECT] = offsetof(rdma_ucm_connect, ece);
  least[RDMA_USER_CM_CMD_LISTEN] = sizeof(rdma_ucm_listen);
  least[RDMA_USER_CM_CMD_ACCEPT] = offsetof(rdma_ucm_accept, ece);
  least[RDMA_USER_CM_CMD_REJECT] = sizeof(rdma_ucm_reject);
  least[RDMA_USER_CM_CMD_DISCONNECT] = sizeof(rdma_ucm_disconnect);
  least[RDMA_USER_CM_CMD_INIT_QP_ATTR] = sizeof(rdma_ucm_init_qp_attr);
  least[RDMA_USER_CM_CMD_GET_EVENT] = sizeof(rdma_ucm_get_event);
  least[RDMA_USER_CM_CMD_GET_OPTION] = 0;
  least[RDMA_USER_CM_CMD_SET_OPTION] = sizeof(rdma_ucm_set_option);
  least[RDMA_USER_CM_CMD_NOTIFY] = sizeof(rdma_ucm_notify);
  least[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = sizeof(rdma_ucm_join_ip_mcast) - 4;
  least[RDMA_USER_CM_CMD_LEAVE_MCAST] = sizeof(rdma_ucm_destroy_id);
  least[RDMA_USER_CM_CMD_MIGRATE_ID] = sizeof(rdma_ucm_migrate_id);
  least[RDMA_USER_CM_CMD_QUERY] = sizeof(rdma_ucm_query);
  least[RDMA_USER_CM_CMD_BIND] = sizeof(rdma_ucm_bind);
  least[RDMA_USER_CM_CMD_RESOLVE_ADDR] = sizeof(rdma_ucm_resolve_addr);
  least[RDMA_USER_CM_CMD_JOIN_MCAST] = sizeof(rdma_ucm_join_mcast);
  return least;
}();
static_assert(*std::max_element(kLeast.begin(), kLeast.end()) <= kLongestCommand);

}  // namespace

long Service::write(Channel& channel, const void* bytes, std::size_t length) {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes);
  rdma_ucm_cmd_hdr header{};
  if (length < sizeof header) return -EINVAL;
  if (!settings_.memory->copy_in(at, &header, sizeof header)) return -EFAULT;
  if (header.cmd >= kCommands) return -EINVAL;
  if (header.in + sizeof header > length) return -EINVAL;
  if (header.cmd == RDMA_USER_CM_CMD_GET_OPTION) return -ENOSYS;
  if (header.in < kLeast[header.cmd]) return -EINVAL;
  std::array<std::byte, kLongestCommand> body{};
  const std::size_t in = std::min<std::size_t>(header.in, body.size());
  if (!settings_.memory->copy_in(at + sizeof header, body.data(), in)) return -EFAULT;

  const Call call{channel, {body.data(), in}, header.out};
  long result = 0;
  if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
    result = get_event(channel, call);  // waits without the lock
  } else {
    const std::scoped_lock lock(mutex_);
    result = dispatch(header.cmd, call);
  }
  return result < 0 ? result : static_cast<long>(length);
}

long Service::dispatch(std::uint32_t command, const Call& call) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID: return create_id(call);
    case RDMA_USER_CM_CMD_DESTROY_ID: return destroy_id(call);
    case RDMA_USER_CM_CMD_BIND_IP: return bind(call, true);
    case RDMA_USER_CM_CMD_RESOLVE_IP: return resolve_address(call, true);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE: return resolve_route(call);
    case RDMA_USER_CM_CMD_QUERY_ROUTE: return query_route(call);
    case RDMA_USER_CM_CMD_CONNECT: return connect(call);
    case RDMA_USER_CM_CMD_LISTEN: return listen(call);
    case RDMA_USER_CM_CMD_ACCEPT: return accept(call);
    case RDMA_USER_CM_CMD_REJECT: return reject(call);
    case RDMA_USER_CM_CMD_DISCONNECT: return disconnect(call);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: return init_qp_attr(call);
    case RDMA_USER_CM_CMD_SET_OPTION: return set_option(call);
    case RDMA_USER_CM_CMD_NOTIFY: return notify(call);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: return join(call, true);
    case RDMA_USER_CM_CMD_LEAVE_MCAST: return leave(call);
    case RDMA_USER_CM_CMD_MIGRATE_ID: return migrate(call);
    case RDMA_USER_CM_CMD_QUERY: return query(call);
    case RDMA_USER_CM_CMD_BIND: return bind(call, false);
    case RDMA_USER_CM_CMD_RESOLVE_ADDR: return resolve_address(call, false);
    case RDMA_USER_CM_CMD_JOIN_MCAST: return join(call, false);
    default: return -EINVAL;
  }
}

long Service::create_id(const Call& call) {
  const auto cmd = take<rdma_ucm_create_id>(call.in);
  rdma_ucm_create_id_resp resp{};
  if (call.out_bytes < sizeof resp) return -ENOSPC;
  std::uint8_t type = 0;
  switch (cmd.ps) {
    case RDMA_PS_TCP: type = kQpRc; break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB: type = kQpUd; break;
    case RDMA_PS_IB: type = cmd.qp_type; break;
    default: return -EINVAL;
  }
  Ident& ident = add_ident(call.channel);
  ident.uid = cmd.uid;
  ident.space = cmd.ps;
  ident.qp_type = type;
  resp.id = ident.id;
  const long answered = answer(cmd.response, resp);
  if (answered < 0) (void)remove_ident(ident.id);
  return answered;
}

long Service::destroy_id(const Call& call) {
  const auto cmd = take<rdma_ucm_destroy_id>(call.in);
  rdma_ucm_destroy_id_resp resp{};
  if (call.out_bytes < sizeof resp) return -ENOSPC;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  resp.events_reported = remove_ident(ident->id);
  return answer(cmd.response, resp);
}

long Service::set_option(const Call& call) {
  const auto cmd = take<rdma_ucm_set_option>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  constexpr std::size_t kMostValue = 65536;
  if (cmd.optlen == 0 || cmd.optlen > kMostValue) return -EINVAL;
  std::vector<std::byte> value(cmd.optlen);
  if (!settings_.memory->copy_in(cmd.optval, value.data(), value.size())) return -EFAULT;
  if (cmd.level == RDMA_OPTION_IB) return cmd.optname == RDMA_OPTION_IB_PATH ? set_path(*ident, value) : -ENOSYS;
  if (cmd.level != RDMA_OPTION_ID) return -ENOSYS;
  const bool is_byte = value.size() == 1;
  const bool is_int = value.size() == sizeof(int);
  const auto byte = std::to_integer<std::uint8_t>(value[0]);
  int number = 0;
  if (is_int) std::memcpy(&number, value.data(), sizeof number);
  switch (cmd.optname) {
    case RDMA_OPTION_ID_TOS:
      if (!is_byte) return -EINVAL;
      ident->traffic_class = byte;
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!is_int) return -EINVAL;
      if (ident->phase != Phase::idle && number == 0) return -EINVAL;
      ident->reuse_address = number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!is_int || (ident->phase != Phase::idle && ident->phase != Phase::bound)) return -EINVAL;
      ident->one_family = number != 0;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!is_byte || byte > 31) return -EINVAL;
      ident->ack_timeout = byte;
      return 0;
    default: return -ENOSYS;
  }
}

// A route that the program found itself. There is one path between two addresses here: it has to be that one.
long Service::set_path(Ident& ident, std::span<const std::byte> value) {
  if (value.size() % sizeof(ib_path_rec_data) != 0) return -EINVAL;
  constexpr std::uint32_t kWanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  for (; !value.empty(); value = value.subspan(sizeof(ib_path_rec_data))) {
    std::uint32_t flags = 0;
    std::memcpy(&flags, value.data(), sizeof flags);
    if (flags == kWanted) break;
  }
  if (value.empty() || ident.phase != Phase::addr_resolved) return -EINVAL;
  ident.phase = Phase::route_resolved;
  report(ident, UserEvent::route_resolved);
  return 0;
}

long Service::notify(const Call& call) {
  const auto cmd = take<rdma_ucm_notify>(call.in);
  constexpr std::uint32_t kCommunicationEstablished = 4;  // IB_EVENT_COMM_EST
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (cmd.event != kCommunicationEstablished || ident->phase != Phase::connecting || ident->cm == 0) return -EINVAL;
  return machine_->seen_alive(ident->cm) ? 0 : -EINVAL;
}

// Datagrams to groups are not carried: said at once, instead of an event that never comes.
long Service::join(const Call& call, bool ip_only) {
  if (call.out_bytes < sizeof(rdma_ucm_create_id_resp)) return -ENOSPC;
  std::uint32_t id = 0;
  std::optional<SocketAddress> group;
  if (ip_only) {
    const auto cmd = take<rdma_ucm_join_ip_mcast>(call.in);
    id = cmd.id;
    group = parse_socket_address(std::as_bytes(std::span(&cmd.addr, 1)));
  } else {
    const auto cmd = take<rdma_ucm_join_mcast>(call.in);
    id = cmd.id;
    group = parse_socket_address(std::as_bytes(std::span(&cmd.addr, 1)));
    if (cmd.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return -EINVAL;
    if (group && cmd.addr_size != size_of_family(group->family)) return -EINVAL;
  }
  if (!group) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, id, ident); error < 0) return error;
  return ident->qp_type == kQpUd ? -EOPNOTSUPP : -EINVAL;
}

long Service::leave(const Call& call) {
  if (call.out_bytes < sizeof(rdma_ucm_destroy_id_resp)) return -ENOSPC;
  return -ENOENT;  // nobody has joined
}

// From another channel of this program to this one, with the events that wait.
long Service::migrate(const Call& call) {
  const auto cmd = take<rdma_ucm_migrate_id>(call.in);
  rdma_ucm_migrate_resp resp{};
  if (call.out_bytes < sizeof resp) return -ENOSPC;
  const auto at = idents_.find(cmd.id);
  if (at == idents_.end()) return -ENOENT;
  Ident& ident = at->second;
  Channel& old = *ident.channel;
  if (&old != &call.channel) {
    ident.channel = &call.channel;
    std::deque<Waiting> stay;
    for (Waiting& waiting : old.queue_) {
      if (waiting.ident == ident.id)
        push(call.channel, std::move(waiting));
      else
        stay.push_back(std::move(waiting));
    }
    old.queue_ = std::move(stay);
    if (old.queue_.empty()) old.flag_.clear();
  }
  resp.events_reported = ident.events_reported;
  return answer(cmd.response, resp);
}

long Service::get_event(Channel& channel, const Call& call) {
  const auto cmd = take<rdma_ucm_get_event>(call.in);
  constexpr std::size_t kLeastResponse = offsetof(rdma_ucm_event_resp, reserved);
  if (call.out_bytes < kLeastResponse) return -ENOSPC;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (channel.queue_.empty()) {
      lock.unlock();
      if (channel.flag_.nonblocking()) return -EAGAIN;
      if (!channel.flag_.wait(-1)) return -EINTR;
      continue;
    }
    Waiting& first = channel.queue_.front();
    const std::uint32_t owner = first.ident;
    if (first.request != 0) {
      Ident& made = add_ident(channel);
      const Ident& listener = idents_.at(owner);
      made.space = listener.space;
      made.qp_type = listener.qp_type;
      made.phase = Phase::connecting;
      made.passive = true;
      made.source = first.source;
      made.destination = first.destination;
      made.cm = first.request;
      const Connection* const c = machine_->find(made.cm);
      (void)take_device(made, c != nullptr ? c->local : made.source.address);
      first.response.id = made.id;
    }
    const std::size_t bytes = std::min<std::size_t>(call.out_bytes, sizeof first.response);
    if (answer(cmd.response, first.response, bytes) < 0) {
      if (first.request != 0) {
        idents_.at(first.response.id).cm = 0;
        (void)remove_ident(first.response.id);
      }
      return -EFAULT;
    }
    if (first.request != 0) {
      by_cm_[first.request] = first.response.id;
      machine_->taken(first.request);
    }
    ++idents_.at(owner).events_reported;
    channel.queue_.pop_front();
    if (channel.queue_.empty()) channel.flag_.clear();
    return 0;
  }
}

}  // namespace strait::soft::cm
