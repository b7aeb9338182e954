// SPDX-License-Identifier: Apache-2.0
// Programs without librdmacm: they speak the write protocol to services whose NICs are a map in this process.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "soft/cm/service.hpp"
#include "soft/cm/service_fakes.hpp"
#include "sys/event_set.hpp"
#include "sys/host.hpp"

namespace strait::soft::cm::testing {

inline std::string fresh_scope() {
  static int count = 0;
  return fmt::format("strait-cm-test/{}/{}", sys::process_id(), ++count);
}

inline SocketAddress ip(const IpAddress& address, std::uint16_t port) {
  SocketAddress out;
  out.family = address.is_v4() ? kFamilyIp4 : kFamilyIp6;
  out.address = address;
  out.port = port;
  return out;
}
template <class Storage>
std::uint16_t put(const SocketAddress& address, Storage& into) {
  return static_cast<std::uint16_t>(write_socket_address(address, std::as_writable_bytes(std::span(&into, 1))));
}

// One process with one channel.
class Program {
 public:
  Program(Fabric& fabric, std::vector<GidInfo> gids, std::string scope, std::uint32_t seed = 0,
          std::shared_ptr<Memory> memory = std::make_shared<OwnMemory>())
      : Program(std::make_shared<FakeDevice>(fabric, std::move(gids)), std::move(scope), seed, std::move(memory)) {}
  Program(std::shared_ptr<Device> device, std::string scope, std::uint32_t seed = 0,
          std::shared_ptr<Memory> memory = std::make_shared<OwnMemory>()) {
    ServiceSettings settings;
    settings.device = std::move(device);
    settings.memory = std::move(memory);
    settings.scope = std::move(scope);
    settings.seed = seed;
    settings.machine.first_wait_ns = 20'000'000;
    settings.machine.timewait_ns = 20'000'000;
    service = std::make_unique<Service>(std::move(settings));
    channel = service->open(false).value();
  }
  ~Program() { service->close(*channel); }

  template <class Command>
  long call(std::uint32_t number, const Command& command, std::size_t out_bytes = 0, Channel* through = nullptr) {
    struct {
      rdma_ucm_cmd_hdr header;
      Command command;
    } frame{{number, sizeof command, static_cast<std::uint16_t>(out_bytes)}, command};
    const long result = service->write(through != nullptr ? *through : *channel, &frame, sizeof frame);
    EXPECT_TRUE(result < 0 || result == static_cast<long>(sizeof frame));
    return result < 0 ? result : 0;
  }

  std::uint32_t create(std::uint16_t space = RDMA_PS_TCP, std::uint8_t type = kQpRc, std::uint64_t uid = 0x1000) {
    rdma_ucm_create_id cmd{};
    rdma_ucm_create_id_resp resp{};
    cmd.uid = uid;
    cmd.response = reinterpret_cast<std::uintptr_t>(&resp);
    cmd.ps = space;
    cmd.qp_type = type;
    EXPECT_EQ(call(RDMA_USER_CM_CMD_CREATE_ID, cmd, sizeof resp), 0);
    return resp.id;
  }
  long destroy(std::uint32_t id, Channel* through = nullptr) {
    rdma_ucm_destroy_id cmd{};
    rdma_ucm_destroy_id_resp resp{};
    cmd.response = reinterpret_cast<std::uintptr_t>(&resp);
    cmd.id = id;
    const long result = call(RDMA_USER_CM_CMD_DESTROY_ID, cmd, sizeof resp, through);
    return result < 0 ? result : static_cast<long>(resp.events_reported);
  }
  long bind(std::uint32_t id, const SocketAddress& to) {
    rdma_ucm_bind cmd{};
    cmd.id = id;
    cmd.addr_size = put(to, cmd.addr);
    return call(RDMA_USER_CM_CMD_BIND, cmd);
  }
  long listen(std::uint32_t id, std::uint32_t backlog = 0) {
    return call(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, backlog});
  }
  long resolve(std::uint32_t id, const SocketAddress& to, const SocketAddress& from = {}) {
    rdma_ucm_resolve_addr cmd{};
    cmd.id = id;
    cmd.timeout_ms = 2000;
    cmd.src_size = put(from, cmd.src_addr);
    cmd.dst_size = put(to, cmd.dst_addr);
    return call(RDMA_USER_CM_CMD_RESOLVE_ADDR, cmd);
  }
  long route(std::uint32_t id) { return call(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, 2000}); }
  static rdma_ucm_conn_param parameters(std::uint32_t qpn, std::string_view text = "") {
    rdma_ucm_conn_param p{};
    p.qp_num = qpn;
    p.responder_resources = 4;
    p.initiator_depth = 2;
    p.retry_count = 7;
    p.rnr_retry_count = 6;
    p.valid = 1;
    p.private_data_len = static_cast<std::uint8_t>(text.size());
    std::memcpy(p.private_data, text.data(), text.size());
    return p;
  }
  long connect(std::uint32_t id, std::uint32_t qpn, std::string_view text = "") {
    rdma_ucm_connect cmd{};
    cmd.id = id;
    cmd.conn_param = parameters(qpn, text);
    return call(RDMA_USER_CM_CMD_CONNECT, cmd);
  }
  long accept(std::uint32_t id, std::uint32_t qpn, std::uint64_t uid, std::string_view text = "") {
    rdma_ucm_accept cmd{};
    cmd.id = id;
    cmd.uid = uid;
    cmd.conn_param = parameters(qpn, text);
    return call(RDMA_USER_CM_CMD_ACCEPT, cmd);
  }
  long ready(std::uint32_t id) {
    rdma_ucm_accept cmd{};
    cmd.id = id;
    return call(RDMA_USER_CM_CMD_ACCEPT, cmd);
  }
  long reject(std::uint32_t id, std::uint8_t reason = 0, std::string_view text = "") {
    rdma_ucm_reject cmd{};
    cmd.id = id;
    cmd.reason = reason;
    cmd.private_data_len = static_cast<std::uint8_t>(text.size());
    std::memcpy(cmd.private_data, text.data(), text.size());
    return call(RDMA_USER_CM_CMD_REJECT, cmd);
  }
  long disconnect(std::uint32_t id) { return call(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id}); }

  long get_event(rdma_ucm_event_resp& resp, Channel* through = nullptr) {
    rdma_ucm_get_event cmd{reinterpret_cast<std::uintptr_t>(&resp)};
    return call(RDMA_USER_CM_CMD_GET_EVENT, cmd, sizeof resp, through);
  }
  // Waits for it, as a program would.
  rdma_ucm_event_resp next(Channel* through = nullptr) {
    rdma_ucm_event_resp resp{};
    EXPECT_TRUE((through != nullptr ? *through : *channel).flag().wait(20'000'000'000)) << "no event within 20 s";
    EXPECT_EQ(get_event(resp, through), 0);
    return resp;
  }
  rdma_ucm_query_addr_resp addresses(std::uint32_t id, std::uint32_t option = RDMA_USER_CM_QUERY_ADDR) {
    rdma_ucm_query_addr_resp resp{};
    rdma_ucm_query cmd{reinterpret_cast<std::uintptr_t>(&resp), id, option};
    EXPECT_EQ(call(RDMA_USER_CM_CMD_QUERY, cmd, sizeof resp), 0);
    return resp;
  }
  long attributes(std::uint32_t id, std::uint32_t state, ib_uverbs_qp_attr& resp) {
    rdma_ucm_init_qp_attr cmd{reinterpret_cast<std::uintptr_t>(&resp), id, state};
    return call(RDMA_USER_CM_CMD_INIT_QP_ATTR, cmd, sizeof resp);
  }
  [[nodiscard]] bool readable() const { return sys::nap_on(channel->flag().copy().value().get(), 0); }

  std::unique_ptr<Service> service;
  std::shared_ptr<Channel> channel;
};

inline std::uint32_t number(UserEvent event) {
  return static_cast<std::uint32_t>(event);
}

}  // namespace strait::soft::cm::testing
