// SPDX-License-Identifier: Apache-2.0
// Connections, from the program's side.
#include <cerrno>

#include "soft/cm/service.hpp"
#include "soft/cm/take.hpp"

namespace strait::soft::cm {
namespace {

long errno_of(const Error& error) {
  return -(error.sys_errno != 0 ? error.sys_errno : EIO);
}

QueueParameters parameters(const rdma_ucm_conn_param& in) {
  QueueParameters out;
  out.qpn = in.qp_num & 0xffffff;
  out.srq = in.srq != 0;
  out.responder_resources = in.responder_resources;
  out.initiator_depth = in.initiator_depth;
  out.flow_control = in.flow_control != 0;
  out.retry_count = in.retry_count;
  out.rnr_retry_count = in.rnr_retry_count;
  const auto* const data = reinterpret_cast<const std::byte*>(in.private_data);
  out.private_data.assign(data, data + in.private_data_len);
  return out;
}

}  // namespace

long Service::connect(const Call& call) {
  const auto cmd = take<rdma_ucm_connect>(call.in);
  if (cmd.conn_param.valid == 0) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase != Phase::route_resolved) return -EINVAL;
  if (const Status started = start(); !started) return errno_of(started.error());

  ConnectRequest request;
  request.service_id = service_of(*ident, ident->destination);
  request.source = ident->source.address;
  request.destination = ident->destination.address;
  request.mtu_code = settings_.device->gids()[ident->sgid_index].mtu_code;
  request.ack_timeout = ident->ack_timeout;
  request.traffic_class = ident->traffic_class;
  request.queue = parameters(cmd.conn_param);
  if (ident->source.family == kFamilyIb) {
    request.queue.qkey = cmd.conn_param.qkey;
  } else {
    std::vector<std::byte> with_addresses(kIpHeaderBytes);
    write_ip_header({ident->source.port, ident->source.address, ident->destination.address}, with_addresses);
    with_addresses.insert(with_addresses.end(), request.queue.private_data.begin(), request.queue.private_data.end());
    request.queue.private_data = std::move(with_addresses);
  }
  switch (ident->qp_type) {
    case kQpRc:
    case kQpUd: break;
    case kQpUc: request.transport = wire::mad::Transport::uc; break;
    case kQpXrcSend:
    case kQpXrcRecv:
      request.transport = wire::mad::Transport::extended;
      request.extended_transport = wire::mad::kExtendedXrc;
      break;
    default: return -EINVAL;
  }
  auto made = ident->qp_type == kQpUd ? machine_->resolve(request) : machine_->connect(request);
  if (!made) return errno_of(made.error());
  ident->cm = *made;
  by_cm_[ident->cm] = ident->id;
  ident->phase = Phase::connecting;
  wake();
  return 0;
}

long Service::accept(const Call& call) {
  const auto cmd = take<rdma_ucm_accept>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase != Phase::connecting || ident->cm == 0) return -EINVAL;
  if (cmd.conn_param.valid == 0) {  // of one's own connect(): the queue pair is ready
    const Status ready = machine_->ready(ident->cm);
    return ready ? 0 : errno_of(ready.error());
  }
  QueueParameters queue = parameters(cmd.conn_param);
  if (ident->qp_type == kQpUd) {
    const bool own_key = ident->source.family == kFamilyIb && cmd.conn_param.qkey != 0;
    queue.qkey = own_key ? cmd.conn_param.qkey : kUdpQkey;
  }
  const std::uint64_t before = ident->uid;
  ident->uid = cmd.uid;
  const Status accepted = machine_->accept(ident->cm, queue);
  if (!accepted) {
    ident->uid = before;
    return errno_of(accepted.error());
  }
  wake();
  return 0;
}

long Service::reject(const Call& call) {
  const auto cmd = take<rdma_ucm_reject>(call.in);
  constexpr std::uint8_t kVendorOption = 35;
  constexpr auto kConsumer = static_cast<std::uint8_t>(wire::mad::RejReason::consumer);
  const std::uint8_t reason = cmd.reason == 0 ? kConsumer : cmd.reason;
  if (reason != kConsumer && reason != kVendorOption) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase != Phase::connecting || ident->cm == 0) return -EINVAL;
  const auto* const data = reinterpret_cast<const std::byte*>(cmd.private_data);
  const Status rejected =
      machine_->reject(ident->cm, static_cast<wire::mad::RejReason>(reason), {data, cmd.private_data_len});
  if (!rejected) return errno_of(rejected.error());
  wake();
  return 0;
}

// Asked twice, or of a connection that is over already, it changes nothing and is no mistake.
long Service::disconnect(const Call& call) {
  const auto cmd = take<rdma_ucm_disconnect>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (ident->phase != Phase::connecting || ident->cm == 0 || ident->qp_type == kQpUd) return -EINVAL;
  (void)machine_->disconnect(ident->cm);
  wake();
  return 0;
}

}  // namespace strait::soft::cm
