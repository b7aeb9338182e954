// SPDX-License-Identifier: Apache-2.0
#include "meeting.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace hostile {
namespace {

constexpr int kStepMs = 60'000;
constexpr int kPortSpaceTcp = 0x0106;
constexpr int kConnectRequest = 4;

std::string refused(const char* what) {
  return std::string(what) + ": " + std::strerror(errno);
}

sockaddr_in at_home(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool make_queue(rdma_cm_id* id) {
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {16, 16, 1, 1, 0};
  return rdma_create_qp(id, nullptr, &wanted) == 0;
}

rdma_conn_param ordinary() {
  rdma_conn_param parameters{};
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = 3;
  return parameters;
}

}  // namespace

std::string Meeting::begin() {
  // What went before stays open, as in a program that has more than one connection.
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr) return refused("no event channel");
  return rdma_create_id(channel_, &id_, nullptr, kPortSpaceTcp) == 0 ? "" : refused("no id");
}

std::string Meeting::listen(int port) {
  if (const std::string failure = begin(); !failure.empty()) return failure;
  sockaddr_in address = at_home(port);
  if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&address)) != 0) return refused("binding");
  return rdma_listen(id_, 4) == 0 ? "" : refused("listening");
}

std::string Meeting::connect(int port) {
  if (const std::string failure = begin(); !failure.empty()) return failure;
  sockaddr_in address = at_home(port);
  if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&address), kStepMs) != 0)
    return refused("resolving the address");
  if (const std::string failure = expect("ADDR_RESOLVED"); !failure.empty()) return failure;
  if (rdma_resolve_route(id_, kStepMs) != 0) return refused("resolving the route");
  if (const std::string failure = expect("ROUTE_RESOLVED"); !failure.empty()) return failure;
  if (!make_queue(id_)) return refused("no queue pair");
  rdma_conn_param parameters = ordinary();
  return rdma_connect(id_, &parameters) == 0 ? "" : refused("connecting");
}

std::string Meeting::accept() {
  if (asking_ == nullptr) return "nobody has asked";
  if (!make_queue(asking_)) return refused("no queue pair");
  rdma_conn_param parameters = ordinary();
  return rdma_accept(asking_, &parameters) == 0 ? "" : refused("accepting");
}

std::string Meeting::event(int milliseconds) {
  pollfd waiting{channel_->fd, POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) != 1) return "NONE";
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) return refused("FAILED");
  const std::string name = rdma_event_str(event->event);
  if (event->event == kConnectRequest) asking_ = event->id;
  rdma_ack_cm_event(event);
  constexpr std::string_view kBefore = "RDMA_CM_EVENT_";
  return name.starts_with(kBefore) ? name.substr(kBefore.size()) : name;
}

std::string Meeting::expect(const char* name) {
  const std::string came = event(kStepMs);
  return came == name ? "" : std::string("instead of ") + name + " came " + came;
}

}  // namespace hostile
