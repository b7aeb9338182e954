// SPDX-License-Identifier: Apache-2.0
// Commands that are wrong: sizes, ids, pointers, states. Each has the kernel's errno, and changes nothing.
#include <cerrno>
#include <random>

#include "soft/cm/service.hpp"
#include "soft/cm/service_testing.hpp"

namespace strait::soft::cm {
namespace {

using testing::ip;
using testing::Program;

const IpAddress kHere = IpAddress::v4(127, 0, 0, 1);

struct WrongCommands : ::testing::Test {
  testing::Fabric fabric;
  Program program{fabric, {{kHere, 5}}, testing::fresh_scope(), 3};

  long raw(const void* bytes, std::size_t length) { return program.service->write(*program.channel, bytes, length); }
  long header(std::uint32_t command, std::uint16_t in, std::size_t length) {
    std::vector<std::byte> frame(std::max<std::size_t>(length, 8));
    const rdma_ucm_cmd_hdr head{command, in, 65535};
    std::memcpy(frame.data(), &head, sizeof head);
    return raw(frame.data(), length);
  }
};

TEST_F(WrongCommands, Frames) {
  EXPECT_EQ(header(0, 0, 0), -EINVAL);
  EXPECT_EQ(header(0, 0, 7), -EINVAL);
  EXPECT_EQ(header(0, 24, 31), -EINVAL);  // says more than there is
  EXPECT_EQ(header(23, 0, 8), -EINVAL);
  EXPECT_EQ(header(0xffffffff, 0, 8), -EINVAL);
  EXPECT_EQ(header(RDMA_USER_CM_CMD_GET_OPTION, 0, 8), -ENOSYS);
  EXPECT_EQ(raw(nullptr, 8), -EFAULT);
  EXPECT_EQ(raw(reinterpret_cast<const void*>(1), 100), -EFAULT);
  for (std::uint32_t command = 0; command < 23; ++command) {
    if (command == RDMA_USER_CM_CMD_GET_OPTION) continue;
    EXPECT_EQ(header(command, 0, 8), -EINVAL) << command;
    EXPECT_EQ(header(command, 3, 11), -EINVAL) << command;
  }
  EXPECT_EQ(program.service->idents(), 0u);
}

// Everything about nothing: an id that is not there.
TEST_F(WrongCommands, UnknownIds) {
  constexpr std::uint32_t kNobody = 77;
  ib_uverbs_qp_attr attr{};
  EXPECT_EQ(program.destroy(kNobody), -ENOENT);
  EXPECT_EQ(program.bind(kNobody, ip(kHere, 1)), -ENOENT);
  EXPECT_EQ(program.resolve(kNobody, ip(kHere, 1)), -ENOENT);
  EXPECT_EQ(program.route(kNobody), -ENOENT);
  EXPECT_EQ(program.listen(kNobody), -ENOENT);
  EXPECT_EQ(program.connect(kNobody, 1), -ENOENT);
  EXPECT_EQ(program.accept(kNobody, 1, 2), -ENOENT);
  EXPECT_EQ(program.reject(kNobody), -ENOENT);
  EXPECT_EQ(program.disconnect(kNobody), -ENOENT);
  EXPECT_EQ(program.attributes(kNobody, 1, attr), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{kNobody, 4}), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, kNobody, 0}, 65535), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY_ROUTE, rdma_ucm_query{0, kNobody, 0}, 65535), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_MIGRATE_ID, rdma_ucm_migrate_id{0, kNobody, 0}, 65535), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_SET_OPTION, rdma_ucm_set_option{0, kNobody, 0, 0, 1}), -ENOENT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{0, kNobody, 0}, 65535), -ENOENT);
  const auto other = program.service->open(false).value();
  const std::uint32_t mine = program.create();
  EXPECT_EQ(program.destroy(mine, other.get()), -EINVAL);  // another channel's
  program.service->close(*other);
}

TEST_F(WrongCommands, NoRoomForTheAnswer) {
  const std::uint32_t id = program.create();
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{}, 3), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{0, id, 0}, 3), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY_ROUTE, rdma_ucm_query{0, id, 0}, 100), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 0}, 100), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 1}, 7), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, 9}, 65535), -ENOSYS);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_INIT_QP_ATTR, rdma_ucm_init_qp_attr{0, id, 1}, 100), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, 100), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_MCAST, rdma_ucm_join_mcast{}, 3), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{}, 3), -ENOSPC);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_MIGRATE_ID, rdma_ucm_migrate_id{}, 3), -ENOSPC);
  EXPECT_EQ(program.service->idents(), 1u);
}

TEST_F(WrongCommands, PointersToNothing) {
  constexpr std::uint64_t kBad = 8;
  rdma_ucm_create_id create{};
  create.response = kBad;
  create.ps = RDMA_PS_TCP;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_CREATE_ID, create, 4), -EFAULT);
  EXPECT_EQ(program.service->idents(), 0u);
  const std::uint32_t id = program.create();
  ASSERT_EQ(program.bind(id, ip(kHere, 0)), 0);
  for (const std::uint32_t option : {0u, 1u, 2u})
    EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{kBad, id, option}, 65535), -EFAULT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_QUERY_ROUTE, rdma_ucm_query{kBad, id, 0}, 65535), -EFAULT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_INIT_QP_ATTR, rdma_ucm_init_qp_attr{kBad, id, 1}, 65535), -EFAULT);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_SET_OPTION, rdma_ucm_set_option{kBad, id, 0, 0, 1}), -EFAULT);
  ASSERT_EQ(program.resolve(id, ip(kHere, 1)), 0);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{kBad}, 65535), -EFAULT);
  EXPECT_TRUE(program.readable());  // the event is not lost
  EXPECT_EQ(program.next().id, id);
}

// A request whose answer cannot be written stays a request, and no id is left behind.
TEST_F(WrongCommands, ARequestIsNotLostEither) {
  const std::uint32_t listener = program.create(RDMA_PS_TCP, 0, 0x5000);
  ASSERT_EQ(program.bind(listener, ip(kHere, 7000)), 0);
  ASSERT_EQ(program.listen(listener), 0);
  const std::uint32_t active = program.create();
  ASSERT_EQ(program.resolve(active, ip(kHere, 7000)), 0);
  (void)program.next();
  ASSERT_EQ(program.route(active), 0);
  (void)program.next();
  ASSERT_EQ(program.connect(active, 1), 0);
  ASSERT_TRUE(program.channel->flag().wait(20'000'000'000));
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{8}, 65535), -EFAULT);
  EXPECT_EQ(program.service->idents(), 2u);
  const auto request = program.next();
  EXPECT_EQ(request.event, 4u);
  EXPECT_EQ(program.service->idents(), 3u);
  EXPECT_EQ(program.accept(request.id, 2, 3), 0);
}

TEST_F(WrongCommands, InTheWrongOrder) {
  const std::uint32_t id = program.create();
  ib_uverbs_qp_attr attr{};
  EXPECT_EQ(program.route(id), -EINVAL);
  EXPECT_EQ(program.connect(id, 1), -EINVAL);
  EXPECT_EQ(program.accept(id, 1, 2), -EINVAL);
  EXPECT_EQ(program.ready(id), -EINVAL);
  EXPECT_EQ(program.reject(id), -EINVAL);
  EXPECT_EQ(program.disconnect(id), -EINVAL);
  EXPECT_EQ(program.attributes(id, 1, attr), -EINVAL);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{id, 4}), -EINVAL);
  ASSERT_EQ(program.bind(id, ip(kHere, 0)), 0);
  EXPECT_EQ(program.attributes(id, 1, attr), 0);
  EXPECT_EQ(program.attributes(id, 2, attr), -EINVAL);
  ASSERT_EQ(program.listen(id), 0);
  EXPECT_EQ(program.listen(id), -EINVAL);
  EXPECT_EQ(program.resolve(id, ip(kHere, 1)), -EINVAL);
  EXPECT_EQ(program.accept(id, 1, 2), -EINVAL);
  EXPECT_EQ(program.disconnect(id), -EINVAL);
  rdma_ucm_create_id create{};
  create.ps = 0x1234;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_CREATE_ID, create, 4), -EINVAL);
}

TEST_F(WrongCommands, Addresses) {
  const std::uint32_t id = program.create();
  rdma_ucm_bind bind{};
  bind.id = id;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND, bind), -EINVAL);  // no family
  bind.addr_size = testing::put(ip(kHere, 0), bind.addr);
  bind.reserved = 1;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND, bind), -EINVAL);
  bind.reserved = 0;
  bind.addr_size = 28;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND, bind), -EINVAL);
  bind.addr.ss_family = 1;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND, bind), -EINVAL);
  EXPECT_EQ(program.bind(id, ip(IpAddress::v4(224, 0, 0, 1), 0)), -EADDRNOTAVAIL);
  rdma_ucm_bind_ip old{};
  old.id = id;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND_IP, old), -EINVAL);
  (void)testing::put(ip(kHere, 0), old.addr);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_BIND_IP, old), 0);
  rdma_ucm_resolve_addr resolve{};
  resolve.id = id;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve), -EINVAL);
  resolve.dst_size = testing::put(ip(kHere, 1), resolve.dst_addr);
  resolve.src_size = 5;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve), -EINVAL);
  rdma_ucm_resolve_ip ancient{};
  ancient.id = id;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_RESOLVE_IP, ancient), -EINVAL);
  (void)testing::put(ip(kHere, 1), ancient.dst_addr);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_RESOLVE_IP, ancient), 0);
}

TEST_F(WrongCommands, Options) {
  const std::uint32_t id = program.create();
  std::uint32_t value = 1;
  const auto set = [&](std::uint32_t level, std::uint32_t name, std::uint32_t length) {
    return program.call(RDMA_USER_CM_CMD_SET_OPTION,
                        rdma_ucm_set_option{reinterpret_cast<std::uintptr_t>(&value), id, level, name, length});
  };
  EXPECT_EQ(set(0, RDMA_OPTION_ID_TOS, 1), 0);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_TOS, 4), -EINVAL);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_TOS, 0), -EINVAL);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_REUSEADDR, 4), 0);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_REUSEADDR, 1), -EINVAL);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_AFONLY, 4), 0);
  EXPECT_EQ(set(0, RDMA_OPTION_ID_ACK_TIMEOUT, 1), 0);
  value = 32;
  EXPECT_EQ(set(0, RDMA_OPTION_ID_ACK_TIMEOUT, 1), -EINVAL);
  EXPECT_EQ(set(0, 99, 1), -ENOSYS);
  EXPECT_EQ(set(1, 99, 1), -ENOSYS);
  EXPECT_EQ(set(2, 0, 1), -ENOSYS);
  EXPECT_EQ(set(1, RDMA_OPTION_IB_PATH, 4), -EINVAL);
  EXPECT_EQ(set(0, 0, 0x80000000), -EINVAL);
}

TEST_F(WrongCommands, GroupsAreNotCarriedAndThatIsSaid) {
  const std::uint32_t datagrams = program.create(RDMA_PS_UDP, 0);
  rdma_ucm_join_mcast join{};
  join.id = datagrams;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_MCAST, join, 65535), -EINVAL);
  join.addr_size = testing::put(ip(IpAddress::v4(224, 0, 0, 1), 0), join.addr);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_MCAST, join, 65535), -EOPNOTSUPP);
  join.join_flags = 2;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_MCAST, join, 65535), -EINVAL);
  join.join_flags = 0;
  join.id = program.create();
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_MCAST, join, 65535), -EINVAL);
  rdma_ucm_join_ip_mcast old{};
  old.id = datagrams;
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_IP_MCAST, old, 65535), -EINVAL);
  (void)testing::put(ip(IpAddress::v4(224, 0, 0, 1), 0), old.addr);
  EXPECT_EQ(program.call(RDMA_USER_CM_CMD_JOIN_IP_MCAST, old, 65535), -EOPNOTSUPP);
}

TEST_F(WrongCommands, TooMuchPrivateData) {
  const std::uint32_t id = program.create();
  ASSERT_EQ(program.resolve(id, ip(kHere, 1)), 0);
  ASSERT_EQ(program.route(id), 0);
  EXPECT_EQ(program.connect(id, 1, std::string(57, 'x')), -EINVAL);
  EXPECT_EQ(program.connect(id, 1, std::string(56, 'x')), 0);
}

// Whatever a program writes, the service stands.
TEST(Commands, Noise) {
  std::mt19937_64 random(11);
  alignas(8) std::byte answers[4096];
  std::byte frame[400];
  const auto memory = std::make_shared<testing::WalledMemory>();
  memory->allow(0, answers, sizeof answers);
  memory->allow(1, frame, sizeof frame);
  testing::Fabric fabric;
  Program program{fabric, {{kHere, 5}}, testing::fresh_scope(), 3, memory};
  const auto nonblocking = program.service->open(true).value();
  for (int round = 0; round < 20'000; ++round) {
    for (std::byte& b : frame) b = random() % 3 == 0 ? static_cast<std::byte>(random()) : std::byte{0};
    const rdma_ucm_cmd_hdr head{static_cast<std::uint32_t>(random() % 23), static_cast<std::uint16_t>(random() % 392),
                                static_cast<std::uint16_t>(random() % 2 == 0 ? 1024 : random())};
    std::memcpy(frame, &head, sizeof head);
    const std::uint64_t where = reinterpret_cast<std::uintptr_t>(answers);
    std::memcpy(frame + (random() % 2 == 0 ? 8 : 16), &where, sizeof where);
    // Ids are small numbers.
    for (const std::size_t at : {8u, 12u, 16u, 20u, 24u}) {
      if (random() % 4 != 0) continue;
      const auto id = static_cast<std::uint32_t>(random() % 8);
      std::memcpy(frame + at, &id, sizeof id);
    }
    const long result = program.service->write(*nonblocking, frame, sizeof frame);
    ASSERT_TRUE(result == sizeof frame || (result < 0 && result > -200)) << result;
  }
  program.service->close(*nonblocking);
}

}  // namespace
}  // namespace strait::soft::cm
