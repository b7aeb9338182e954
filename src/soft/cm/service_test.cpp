// SPDX-License-Identifier: Apache-2.0
// The write protocol between programs on one address, from bind to the end of a connection. Commands that are wrong are
// in commands_test.cpp.
#include "soft/cm/service.hpp"

#include <cerrno>
#include <thread>

#include "soft/cm/service_testing.hpp"

namespace strait::soft::cm {
namespace {

using testing::ip;
using testing::number;
using testing::Program;

const IpAddress kHome = IpAddress::v4(127, 0, 0, 1);  // routes know the way to it

struct Rdmacm : ::testing::Test {
  testing::Fabric fabric;
  std::string scope = testing::fresh_scope();
  std::vector<GidInfo> gids{{IpAddress::v4(10, 9, 8, 7), 3}, {kHome, 5}};
  Program server{fabric, gids, scope, 1}, client{fabric, gids, scope, 2};
  std::uint32_t listener = 0, active = 0, passive = 0;

  // Up to the listener's event.
  rdma_ucm_event_resp ask(std::uint16_t space = RDMA_PS_TCP) {
    listener = server.create(space, 0, 0x5000);
    EXPECT_EQ(server.bind(listener, ip(IpAddress::v4(0, 0, 0, 0), 7471)), 0);
    EXPECT_EQ(server.listen(listener, 8), 0);
    active = client.create(space, 0, 0xc000);
    EXPECT_EQ(client.resolve(active, ip(kHome, 7471)), 0);
    EXPECT_EQ(client.next().event, number(UserEvent::addr_resolved));
    EXPECT_EQ(client.route(active), 0);
    EXPECT_EQ(client.next().event, number(UserEvent::route_resolved));
    EXPECT_EQ(client.connect(active, 0x111, "question"), 0);
    const auto request = server.next();
    EXPECT_EQ(request.event, number(UserEvent::connect_request));
    EXPECT_EQ(request.uid, 0x5000u);
    passive = request.id;
    return request;
  }
  void establish() {
    ask();
    ASSERT_EQ(server.accept(passive, 0x222, 0x6000, "answer"), 0);
    ASSERT_EQ(client.next().event, number(UserEvent::connect_response));
    ASSERT_EQ(client.ready(active), 0);
    const auto established = server.next();
    ASSERT_EQ(established.event, number(UserEvent::established));
    ASSERT_EQ(established.uid, 0x6000u);
    ASSERT_EQ(established.id, passive);
  }
};

TEST_F(Rdmacm, AWholeConnection) {
  const auto request = ask();
  EXPECT_EQ(request.param.conn.qp_num, 0x111u);
  EXPECT_EQ(request.param.conn.responder_resources, 2);
  EXPECT_EQ(request.param.conn.initiator_depth, 4);
  EXPECT_EQ(request.param.conn.private_data_len, 56);
  EXPECT_EQ(std::memcmp(request.param.conn.private_data, "question", 9), 0);
  ASSERT_EQ(server.accept(passive, 0x222, 0x6000, "answer"), 0);
  const auto response = client.next();
  ASSERT_EQ(response.event, number(UserEvent::connect_response));
  EXPECT_EQ(response.uid, 0xc000u);
  EXPECT_EQ(response.param.conn.qp_num, 0x222u);
  EXPECT_EQ(response.param.conn.private_data_len, 196);
  EXPECT_EQ(std::memcmp(response.param.conn.private_data, "answer", 7), 0);
  ASSERT_EQ(client.ready(active), 0);
  ASSERT_EQ(server.next().event, number(UserEvent::established));

  ASSERT_EQ(client.disconnect(active), 0);
  ASSERT_EQ(server.next().event, number(UserEvent::disconnected));
  ASSERT_EQ(server.disconnect(passive), 0);
  const auto end = client.next();
  EXPECT_EQ(end.event, number(UserEvent::disconnected));
  EXPECT_EQ(end.status, 0u);
  EXPECT_EQ(client.next().event, number(UserEvent::timewait_exit));
  EXPECT_EQ(server.next().event, number(UserEvent::timewait_exit));
  EXPECT_EQ(client.disconnect(active), 0);  // no harm
  EXPECT_EQ(client.destroy(active), 5);     // as many events as were read
  EXPECT_EQ(server.destroy(passive), 3);
  EXPECT_EQ(server.destroy(listener), 1);
  EXPECT_EQ(client.service->idents(), 0u);
  EXPECT_EQ(server.service->idents(), 0u);
}

TEST_F(Rdmacm, TheDescriptorIsReadableWhileAnEventWaits) {
  EXPECT_FALSE(client.readable());
  active = client.create();
  ASSERT_EQ(client.resolve(active, ip(kHome, 7471)), 0);
  EXPECT_TRUE(client.readable());
  ASSERT_EQ(client.route(active), 0);
  (void)client.next();
  EXPECT_TRUE(client.readable());
  (void)client.next();
  EXPECT_FALSE(client.readable());
  ASSERT_EQ(client.resolve(client.create(), ip(kHome, 7471)), 0);
  EXPECT_TRUE(client.readable());
  EXPECT_EQ(client.destroy(active), 2);
  EXPECT_TRUE(client.readable());
}

TEST_F(Rdmacm, DestroyTakesUnreadEventsAlong) {
  active = client.create();
  ASSERT_EQ(client.resolve(active, ip(kHome, 7471)), 0);
  EXPECT_EQ(client.destroy(active), 0);
  EXPECT_FALSE(client.readable());
}

TEST_F(Rdmacm, NonblockingSaysTryAgain) {
  const auto other = client.service->open(true).value();
  rdma_ucm_event_resp resp{};
  EXPECT_EQ(client.get_event(resp, other.get()), -EAGAIN);
  client.service->close(*other);
}

TEST_F(Rdmacm, ABlockedProgramIsWoken) {
  rdma_ucm_event_resp resp{};
  std::thread waiter([&] { EXPECT_EQ(client.get_event(resp), 0); });
  ASSERT_EQ(client.resolve(client.create(), ip(kHome, 1)), 0);
  waiter.join();
  EXPECT_EQ(resp.event, number(UserEvent::addr_resolved));
}

TEST_F(Rdmacm, AddressesOfBothEnds) {
  establish();
  const auto near = client.addresses(active);
  EXPECT_EQ(near.src_size, 16);
  EXPECT_EQ(near.dst_size, 16);
  EXPECT_EQ(near.port_num, 1);
  const unsigned char guid[] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(std::memcmp(&near.node_guid, guid, 8), 0);
  const auto parsed = [](const auto& storage) {
    return parse_socket_address(std::as_bytes(std::span(&storage, 1))).value();
  };
  EXPECT_EQ(parsed(near.src_addr).address, kHome);
  EXPECT_NE(parsed(near.src_addr).port, 0);
  EXPECT_EQ(parsed(near.dst_addr), ip(kHome, 7471));
  const auto far = server.addresses(passive);
  EXPECT_EQ(parsed(far.src_addr), parsed(near.dst_addr));
  EXPECT_EQ(parsed(far.dst_addr), parsed(near.src_addr));
  const auto gid = client.addresses(active, RDMA_USER_CM_QUERY_GID);
  EXPECT_EQ(gid.src_size, 48);
  EXPECT_EQ(parsed(gid.src_addr).family, kFamilyIb);
  EXPECT_EQ(parsed(gid.src_addr).address, kHome);
  EXPECT_EQ(parsed(gid.dst_addr).service_id, 0x1061d2fu);
  const auto any = server.addresses(listener);
  EXPECT_EQ(any.node_guid, 0u);  // all devices
  EXPECT_EQ(parsed(any.src_addr), ip(IpAddress::v4(0, 0, 0, 0), 7471));
}

TEST_F(Rdmacm, RouteInBothForms) {
  ask();
  rdma_ucm_query_route_resp route{};
  rdma_ucm_query cmd{reinterpret_cast<std::uintptr_t>(&route), active, 0};
  ASSERT_EQ(client.call(RDMA_USER_CM_CMD_QUERY_ROUTE, cmd, sizeof route), 0);
  EXPECT_EQ(route.num_paths, 1u);
  EXPECT_EQ(std::memcmp(route.ib_route[0].dgid, kHome.gid.data(), 16), 0);
  EXPECT_EQ(std::memcmp(route.ib_route[0].sgid, kHome.gid.data(), 16), 0);
  EXPECT_EQ(route.ib_route[0].mtu, 5u);
  EXPECT_EQ(route.ib_route[0].pkey, 0xffff);
  struct {
    std::uint32_t num_paths, reserved;
    ib_path_rec_data path;
  } path{};
  cmd.response = reinterpret_cast<std::uintptr_t>(&path);
  cmd.option = RDMA_USER_CM_QUERY_PATH;
  ASSERT_EQ(client.call(RDMA_USER_CM_CMD_QUERY, cmd, sizeof path), 0);
  EXPECT_EQ(path.num_paths, 1u);
  EXPECT_EQ(path.path.flags, 0x2bu);  // GMP, primary, outbound, inbound reverse
  const auto* const record = reinterpret_cast<const unsigned char*>(path.path.path_rec);
  EXPECT_EQ(std::memcmp(record + 8, kHome.gid.data(), 16), 0);
  EXPECT_EQ(record[47], 64);        // hops
  EXPECT_EQ(record[54] & 0x3f, 5);  // MTU
}

TEST_F(Rdmacm, QueuePairAttributes) {
  ib_uverbs_qp_attr attr{};
  ask();
  // Before the answer the one who asks knows how to begin, and no more.
  EXPECT_EQ(client.attributes(active, 2, attr), -EINVAL);
  ASSERT_EQ(client.attributes(active, 1, attr), 0);
  EXPECT_EQ(attr.qp_attr_mask, 0x39u);  // state, access, pkey index, port
  EXPECT_EQ(attr.port_num, 1);
  ASSERT_EQ(server.attributes(passive, 2, attr), 0);
  EXPECT_EQ(attr.qp_attr_mask, 0x121181u | 1u << 15);
  EXPECT_EQ(attr.dest_qp_num, 0x111u);
  EXPECT_EQ(attr.path_mtu, 5u);
  EXPECT_EQ(attr.max_dest_rd_atomic, 2);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(std::memcmp(attr.ah_attr.grh.dgid, kHome.gid.data(), 16), 0);
  const std::uint32_t server_receives_at = attr.rq_psn;
  ASSERT_EQ(server.attributes(passive, 3, attr), 0);
  EXPECT_EQ(attr.qp_attr_mask, 0x12e01u);
  EXPECT_EQ(attr.retry_cnt, 7);
  EXPECT_EQ(attr.rnr_retry, 6);
  EXPECT_EQ(attr.max_rd_atomic, 4);
  EXPECT_GT(attr.timeout, 0);
  const std::uint32_t server_sends_at = attr.sq_psn;

  ASSERT_EQ(server.accept(passive, 0x222, 0x6000), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::connect_response));
  ASSERT_EQ(client.attributes(active, 1, attr), 0);
  EXPECT_EQ(attr.qp_access_flags, 0xeu);
  ASSERT_EQ(client.attributes(active, 2, attr), 0);
  EXPECT_EQ(attr.dest_qp_num, 0x222u);
  EXPECT_EQ(attr.rq_psn, server_sends_at);
  ASSERT_EQ(client.attributes(active, 3, attr), 0);
  EXPECT_EQ(attr.sq_psn, server_receives_at);
  EXPECT_EQ(client.attributes(active, 6, attr), -EINVAL);
  EXPECT_EQ(client.attributes(active, 77, attr), -EINVAL);
}

TEST_F(Rdmacm, Rejected) {
  ask();
  EXPECT_EQ(server.reject(passive, 1), -EINVAL);
  ASSERT_EQ(server.reject(passive, 0, "no"), 0);
  const auto event = client.next();
  EXPECT_EQ(event.event, number(UserEvent::rejected));
  EXPECT_EQ(event.status, 28u);
  EXPECT_EQ(event.param.conn.private_data_len, 148);
  EXPECT_EQ(std::memcmp(event.param.conn.private_data, "no", 3), 0);
  EXPECT_EQ(server.accept(passive, 1, 2), -EINVAL);
}

TEST_F(Rdmacm, NobodyListens) {
  active = client.create();
  ASSERT_EQ(client.resolve(active, ip(kHome, 7472)), 0);
  (void)client.next();
  ASSERT_EQ(client.route(active), 0);
  (void)client.next();
  ASSERT_EQ(client.connect(active, 0x111), 0);
  const auto event = client.next();
  EXPECT_EQ(event.event, number(UserEvent::rejected));
  EXPECT_EQ(event.status, 8u);
}

TEST_F(Rdmacm, MessagesAreLost) {
  fabric.lose = 2;
  ask();
  fabric.lose = 2;
  ASSERT_EQ(server.accept(passive, 0x222, 0x6000), 0);
  ASSERT_EQ(client.next().event, number(UserEvent::connect_response));
  fabric.lose = 1;
  ASSERT_EQ(client.ready(active), 0);
  ASSERT_EQ(server.next().event, number(UserEvent::established));
}

TEST_F(Rdmacm, Datagrams) {
  const auto request = ask(RDMA_PS_UDP);
  EXPECT_EQ(request.param.ud.private_data_len, 180);
  EXPECT_EQ(std::memcmp(request.param.ud.private_data, "question", 9), 0);
  ib_uverbs_qp_attr attr{};
  ASSERT_EQ(server.attributes(passive, 1, attr), 0);
  EXPECT_EQ(attr.qp_attr_mask, 0x71u);
  EXPECT_EQ(attr.qkey, 0x01234567u);
  ASSERT_EQ(server.accept(passive, 0x333, 0x6000, "answer"), 0);
  const auto event = client.next();
  ASSERT_EQ(event.event, number(UserEvent::established));
  EXPECT_EQ(event.param.ud.qp_num, 0x333u);
  EXPECT_EQ(event.param.ud.qkey, 0x01234567u);
  EXPECT_EQ(event.param.ud.ah_attr.is_global, 1);
  EXPECT_EQ(event.param.ud.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(std::memcmp(event.param.ud.ah_attr.grh.dgid, kHome.gid.data(), 16), 0);
  EXPECT_EQ(std::memcmp(event.param.ud.private_data, "answer", 7), 0);
  EXPECT_EQ(client.disconnect(active), -EINVAL);
}

TEST_F(Rdmacm, ACrashIsToldByTheNextWhoHears) {
  establish();
  server.service->close(*server.channel);  // as exit does
  EXPECT_EQ(client.next().event, number(UserEvent::disconnected));
}

TEST_F(Rdmacm, MigrateTakesWaitingEventsAlong) {
  active = client.create();
  ASSERT_EQ(client.resolve(active, ip(kHome, 1)), 0);
  (void)client.next();
  ASSERT_EQ(client.route(active), 0);
  const auto other = client.service->open(false).value();
  rdma_ucm_migrate_resp resp{};
  const rdma_ucm_migrate_id cmd{reinterpret_cast<std::uintptr_t>(&resp), active, 0};
  ASSERT_EQ(client.call(RDMA_USER_CM_CMD_MIGRATE_ID, cmd, sizeof resp, other.get()), 0);
  EXPECT_EQ(resp.events_reported, 1u);
  EXPECT_FALSE(client.readable());
  EXPECT_EQ(client.next(other.get()).event, number(UserEvent::route_resolved));
  EXPECT_EQ(client.destroy(active), -EINVAL);  // it is not that channel's any more
  EXPECT_EQ(client.destroy(active, other.get()), 2);
  client.service->close(*other);
}

TEST_F(Rdmacm, PortsBelongToOneProcess) {
  const std::uint32_t mine = server.create();
  ASSERT_EQ(server.bind(mine, ip(kHome, 7000)), 0);
  const std::uint32_t theirs = client.create();
  EXPECT_EQ(client.bind(theirs, ip(kHome, 7000)), -EADDRINUSE);
  EXPECT_EQ(client.bind(theirs, ip(IpAddress::v4(10, 9, 8, 7), 7000)), 0);  // another address
  const std::uint32_t datagrams = client.create(RDMA_PS_UDP, 0);
  EXPECT_EQ(client.bind(datagrams, ip(kHome, 7000)), 0);  // another port space
  EXPECT_EQ(server.destroy(mine), 0);
  const std::uint32_t again = client.create();
  EXPECT_EQ(client.bind(again, ip(kHome, 7000)), 0);
  // Whoever has all addresses has each of them.
  const std::uint32_t all = server.create();
  ASSERT_EQ(server.bind(all, ip(IpAddress::v4(0, 0, 0, 0), 7001)), 0);
  EXPECT_EQ(client.bind(client.create(), ip(kHome, 7001)), -EADDRINUSE);
  // With permission to share, until one of them listens.
  const std::uint32_t sharing = client.create();
  const int one = 1;
  const rdma_ucm_set_option option{reinterpret_cast<std::uintptr_t>(&one), sharing, RDMA_OPTION_ID,
                                   RDMA_OPTION_ID_REUSEADDR, sizeof one};
  ASSERT_EQ(client.call(RDMA_USER_CM_CMD_SET_OPTION, option), 0);
  EXPECT_EQ(client.bind(sharing, ip(IpAddress::v4(0, 0, 0, 0), 7001)), 0);
  EXPECT_EQ(client.listen(sharing), -EADDRINUSE);
}

TEST_F(Rdmacm, PortZeroIsAnyThatIsFree) {
  const std::uint32_t id = server.create();
  ASSERT_EQ(server.bind(id, ip(kHome, 0)), 0);
  const auto found = server.addresses(id);
  EXPECT_GE(parse_socket_address(std::as_bytes(std::span(&found.src_addr, 1)))->port, 32768);
  const std::uint32_t unbound = server.create();
  ASSERT_EQ(server.listen(unbound), 0);
  EXPECT_NE(server.addresses(unbound).src_size, 0);
}

TEST_F(Rdmacm, AddressesThatDoNotWork) {
  const std::uint32_t id = client.create();
  EXPECT_EQ(client.bind(id, ip(IpAddress::v4(192, 0, 2, 1), 0)), -EADDRNOTAVAIL);
  EXPECT_EQ(client.bind(id, ip(IpAddress::v4(127, 0, 0, 9), 0)), -ENODEV);  // the host's, and no GID
  EXPECT_EQ(client.bind(id, ip(kHome, 0)), 0);
  EXPECT_EQ(client.bind(id, ip(kHome, 0)), -EINVAL);  // once
  EXPECT_EQ(client.resolve(id, ip(IpAddress::parse("fd00::1").value(), 1)), -EINVAL);
  // Reached from an address that is no GID.
  const std::uint32_t other = client.create();
  ASSERT_EQ(client.resolve(other, ip(IpAddress::v4(127, 0, 0, 9), 1), {}), 0);
  const auto event = client.next();
  EXPECT_TRUE(event.event == number(UserEvent::addr_error) || event.event == number(UserEvent::addr_resolved));
}

TEST_F(Rdmacm, InfinibandAddressesNameServices) {
  const auto ib = [](const IpAddress& address, std::uint64_t service) {
    SocketAddress out;
    out.family = kFamilyIb;
    out.address = address;
    out.pkey = 0xffff;
    out.service_id = service;
    out.service_mask = ~std::uint64_t{0};
    return out;
  };
  // What librdmacm tries first, to see whether this is understood.
  SocketAddress probe = ib({}, 0x01060000);
  probe.service_mask = 0xffffffffffff0000;
  const std::uint32_t tried = client.create(RDMA_PS_IB, kQpRc);
  EXPECT_EQ(client.bind(tried, probe), 0);
  EXPECT_EQ(client.destroy(tried), 0);

  listener = server.create(RDMA_PS_IB, kQpRc, 0x5000);
  ASSERT_EQ(server.bind(listener, ib(kHome, 0x013f1234)), 0);
  ASSERT_EQ(server.listen(listener), 0);
  active = client.create(RDMA_PS_IB, kQpRc, 0xc000);
  ASSERT_EQ(client.resolve(active, ib(kHome, 0x013f1234)), 0);
  (void)client.next();
  ASSERT_EQ(client.route(active), 0);
  (void)client.next();
  ASSERT_EQ(client.connect(active, 0x111, "plain"), 0);
  const auto request = server.next();
  EXPECT_EQ(request.param.conn.private_data_len, 92);  // no addresses in front
  EXPECT_EQ(std::memcmp(request.param.conn.private_data, "plain", 6), 0);
  const auto far = server.addresses(request.id);
  EXPECT_EQ(parse_socket_address(std::as_bytes(std::span(&far.dst_addr, 1)))->address, kHome);
}

}  // namespace
}  // namespace strait::soft::cm
