// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/services.hpp"

#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniService : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};
  wire::SvcAllocResp answer{};

  // The id, or -errno.
  template <class Fill>
  int alloc(Fill fill) {
    wire::SvcAllocCmd c{};
    fill(c.svc_desc);
    answer = {};
    const int failed = client.send(c, answer);
    return failed != 0 ? -failed : static_cast<int>(answer.svc_id);
  }
  static void vnis(wire::SvcDesc& desc, std::initializer_list<std::uint16_t> list) {
    desc.flags |= wire::kSvcRestrictedVnis;
    desc.num_vld_vnis = static_cast<std::uint8_t>(list.size());
    std::copy(list.begin(), list.end(), desc.vnis);
  }
  static void limits(wire::SvcDesc& desc, Resource resource, std::uint16_t max, std::uint16_t res) {
    desc.flags |= wire::kSvcResourceLimits;
    desc.limits[static_cast<std::size_t>(resource)] = {.max = max, .res = res};
  }
  wire::SvcDesc get(std::uint32_t id) {
    wire::SvcGetResp r{};
    EXPECT_EQ(client.send(make<wire::SvcGetCmd>([&](auto& c) { c.svc_id = id; }), r), 0);
    return r.svc_desc;
  }
  int lni_errno(std::uint32_t id) {
    wire::LniAllocResp r{};
    return client.send(make<wire::LniAllocCmd>([&](auto& c) { c.svc_id = id; }), r);
  }
  int enable(std::uint32_t id, bool on) {
    return client.send(make<wire::SvcEnableCmd>([&](auto& c) { c.svc_id = id, c.enable = on ? 1 : 0; }));
  }
  int range(std::uint32_t id, std::uint32_t min, std::uint32_t max) {
    return client.send_as(wire::Op::svc_set_vni_range, make<wire::SvcVniRangeCmd>([&](auto& c) {
                            c.svc_id = id, c.vni_min = min, c.vni_max = max;
                          }));
  }
  int lpr(std::uint32_t id, std::uint32_t lnis) {
    return client.send_as(wire::Op::svc_set_lpr,
                          make<wire::SvcLprCmd>([&](auto& c) { c.svc_id = id, c.lnis_per_rgid = lnis; }));
  }
  int netns(std::uint32_t id, std::uint32_t value) {
    return client.send(make<wire::SvcSetNetnsCmd>([&](auto& c) { c.svc_id = id, c.netns = value; }));
  }
};

TEST_F(CassiniService, TheDefaultOne) {
  const wire::SvcDesc desc = get(1);
  EXPECT_EQ(desc.flags, wire::kSvcRestrictedVnis | wire::kSvcResourceLimits | wire::kSvcEnable);
  EXPECT_EQ(desc.num_vld_vnis, 2u);
  EXPECT_EQ(desc.vnis[0], 1u);
  EXPECT_EQ(desc.vnis[1], 10u);
  EXPECT_EQ(desc.limits[6].max, 512u);
  EXPECT_EQ(desc.limits[6].res, 512u);
  EXPECT_EQ(desc.limits[4].max, 2047u);
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(1), EINVAL);
}

TEST_F(CassiniService, ADescriptionThatCannotBe) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {2, 0}); }), -EINVAL);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {2}), d.num_vld_vnis = 5; }), -EINVAL);
  EXPECT_EQ(alloc([](auto& d) {
              vnis(d, {2});
              d.flags |= wire::kSvcRestrictedMembers;
              d.members[1].type = static_cast<wire::MemberType>(4);
            }),
            -EINVAL);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {2}), limits(d, Resource::txq, 1000, 1025); }), -EINVAL);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {2}), limits(d, Resource::txq, 1025, 0); }), -EINVAL);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {1}); }), -EEXIST) << "the default service has it";
  EXPECT_EQ(card.profiles.size(), 2u);
  EXPECT_EQ(card.services.taken(), 1u);
}

TEST_F(CassiniService, WhatIsLeftIsSaidWhenItDoesNotSuffice) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}), limits(d, Resource::txq, 1008, 1008); }), 2);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {9}), limits(d, Resource::txq, 17, 17); }), -ENOSPC);
  EXPECT_EQ(answer.fail_info.rsrc_avail[1], 16u);
  EXPECT_EQ(card.profile_of(9), nullptr);
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(2), 0);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {9}), limits(d, Resource::txq, 17, 17); }), 2);
}

TEST_F(CassiniService, PoolsOfTriggeredAndOfListEntries) {
  // Four pools of triggered entries; the default service has one. No limits means one, too.
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {20}); }), 2);
  EXPECT_EQ(get(2).limits[6].res, 8u);
  EXPECT_EQ(get(2).limits[6].max, 8u);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {21}), limits(d, Resource::tle, 100, 3); }), 3);
  EXPECT_EQ(get(3).limits[6].max, 8u);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {22}), limits(d, Resource::tle, 100, 100); }), 4);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {23}); }), -ENOSPC);
  EXPECT_EQ(answer.fail_info.no_tle_pools, 1u);
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(3), 0);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {23}); }), 3);
  // Fifteen of list entries, for those who reserve some.
  for (std::uint16_t i = 0; i < 15; ++i)
    EXPECT_EQ(alloc([i](auto& d) { vnis(d, {static_cast<std::uint16_t>(30 + i)}), limits(d, Resource::le, 10, 10); }),
              5 + i);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {60}), limits(d, Resource::le, 10, 10); }), -ENOSPC);
  EXPECT_EQ(answer.fail_info.no_le_pools, 1u);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {60}), limits(d, Resource::le, 10, 0); }), 20);
}

TEST_F(CassiniService, AReservationIsTakenFirst) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}), limits(d, Resource::ct, 3, 2); }), 2);
  Service& service = *card.services.find(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take(card, service, Resource::ct), 0);
  EXPECT_EQ(take(card, service, Resource::ct), -ENOSPC);
  EXPECT_EQ(card.resources[4].shared_use, 1u);
  give_back(card, service, Resource::ct);
  EXPECT_EQ(card.resources[4].shared_use, 0u);
  give_back(card, service, Resource::ct);
  EXPECT_EQ(card.resources[4].shared_use, 0u);
  EXPECT_EQ(card.resources[4].shared, 2045u);
}

TEST_F(CassiniService, MembersAreLookedAtWhenTheyCall) {
  EXPECT_EQ(alloc([](auto& d) {
              vnis(d, {8});
              d.flags |= wire::kSvcRestrictedMembers;
              d.members[0] = {.id = 200, .type = wire::MemberType::uid};
              d.members[1] = {.id = 300, .type = wire::MemberType::gid};
            }),
            2);
  EXPECT_EQ(lni_errno(2), EPERM) << "root is no member";
  client.client->become({.uid = 200});
  EXPECT_EQ(lni_errno(2), 0);
  client.client->become({.uid = 201, .gid = 300});
  EXPECT_EQ(lni_errno(2), 0);
  client.client->become({.uid = 201, .gid = 301});
  EXPECT_EQ(lni_errno(2), EPERM);
  EXPECT_EQ(lni_errno(1), 0);
}

TEST_F(CassiniService, OneThatIsInUseStaysAsItIs) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}); }), 2);
  const std::uint32_t lni = client.lni(2);
  wire::SvcUpdateCmd update{};
  update.svc_desc = get(2);
  wire::SvcUpdateResp updated{};
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(2), EBUSY);
  EXPECT_EQ(enable(2, false), EBUSY);
  EXPECT_EQ(lpr(2, 2), EBUSY);
  EXPECT_EQ(client.send(update, updated), EBUSY);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), 0);
  EXPECT_EQ(enable(2, false), 0);
  EXPECT_EQ(lni_errno(2), EKEYREVOKED);
  EXPECT_EQ(card.profile_of(8), nullptr) << "its network is off";
  EXPECT_EQ(enable(2, true), 0);
  EXPECT_NE(card.profile_of(8), nullptr);
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(2), 0);
  EXPECT_EQ(client.free<wire::SvcDestroyCmd>(2), EINVAL);
  EXPECT_EQ(enable(2, true), EINVAL);
  EXPECT_EQ(lpr(2, 2), EINVAL);
  EXPECT_EQ(client.send(update, updated), EINVAL);
  EXPECT_EQ(card.profile_of(8), nullptr);
}

TEST_F(CassiniService, Updating) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}); }), 2);
  wire::SvcUpdateCmd update{};
  wire::SvcUpdateResp updated{};
  update.svc_desc = get(2);
  update.svc_desc.flags = wire::kSvcRestrictedVnis | wire::kSvcRestrictedMembers;
  update.svc_desc.members[0] = {.id = 5, .type = wire::MemberType::uid};
  EXPECT_EQ(client.send(update, updated), 0);
  EXPECT_EQ(get(2).members[0].id, 5u);
  EXPECT_EQ(get(2).limits[6].res, 8u);
  EXPECT_EQ(lni_errno(2), EKEYREVOKED) << "not enabled by it";
  EXPECT_EQ(enable(2, true), 0);
  EXPECT_EQ(lni_errno(2), 0) << "who is admitted was settled before";
  update.svc_desc.flags |= wire::kSvcResourceLimits;
  update.svc_desc.svc_id = 1;
  update.svc_desc.flags = wire::kSvcRestrictedVnis;
  EXPECT_EQ(client.send(update, updated), EINVAL) << "limits cannot be taken away";
}

TEST_F(CassiniService, ARangeOfNetworks) {
  EXPECT_EQ(alloc([](auto& d) { d.num_vld_vnis = 1; }), 2) << "it waits for its range";
  EXPECT_EQ(lni_errno(2), EKEYREVOKED);
  wire::SvcGetVniRangeResp got{};
  const auto ask = [&](std::uint32_t id) {
    wire::SvcVniRangeCmd c{};
    c.svc_id = id;
    c.resp = reinterpret_cast<std::uint64_t>(&got);
    return client.send_as(wire::Op::svc_get_vni_range, c);
  };
  const auto exclusive = [&](std::uint32_t id) {
    return client.send(make<wire::SvcSetExclusiveCpCmd>([&](auto& c) { c.svc_id = id, c.exclusive_cp = 1; }));
  };
  wire::SvcGetExclusiveCpResp is{};
  const auto is_exclusive = make<wire::SvcGetExclusiveCpCmd>([](auto& c) { c.svc_id = 2; });
  EXPECT_EQ(ask(1), EINVAL);
  EXPECT_NE(ask(2), 0);
  EXPECT_EQ(exclusive(2), EINVAL) << "there is no network yet";
  EXPECT_EQ(client.send(is_exclusive, is), ENOENT);
  EXPECT_EQ(exclusive(1), EINVAL);
  EXPECT_EQ(range(1, 16, 31), EINVAL);
  EXPECT_EQ(range(9, 16, 31), EINVAL);
  EXPECT_EQ(range(2, 0, 15), EINVAL);
  EXPECT_EQ(range(2, 16, 65536), EINVAL);
  EXPECT_EQ(range(2, 31, 16), EINVAL);
  EXPECT_EQ(range(2, 16, 30), EINVAL) << "no power of two";
  EXPECT_EQ(range(2, 24, 39), EINVAL) << "not aligned";
  EXPECT_EQ(range(2, 8, 15), EEXIST) << "it meets 10";
  EXPECT_EQ(range(2, 16, 31), 0);
  EXPECT_EQ(exclusive(2), 0);
  EXPECT_EQ(enable(2, true), 0);
  EXPECT_EQ(exclusive(2), EBUSY) << "too late";
  EXPECT_EQ(client.send(is_exclusive, is), 0);
  EXPECT_EQ(is.exclusive_cp, 1u);
  EXPECT_EQ(ask(2), 0);
  EXPECT_EQ(got.vni_min, 16u);
  EXPECT_EQ(got.vni_max, 31u);
  EXPECT_EQ(card.profile_of(31), card.profile_of(16));
  EXPECT_EQ(card.profile_of(32), nullptr);
  EXPECT_EQ(lni_errno(2), 0);
}

TEST_F(CassiniService, NetworkNamespaces) {
  EXPECT_EQ(netns(1, 5), EEXIST) << "everybody is admitted there";
  EXPECT_EQ(netns(9, 5), EINVAL);
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}), d.flags |= wire::kSvcRestrictedMembers; }), 2);
  wire::SvcGetValueResp value{};
  const auto ask = make<wire::SvcGetNetnsCmd>([](auto& c) { c.svc_id = 2; });
  EXPECT_EQ(client.send(ask, value), EINVAL);
  EXPECT_EQ(lni_errno(2), EPERM) << "nobody is";
  EXPECT_EQ(netns(2, 4711), 0);
  EXPECT_EQ(netns(2, 1), 0) << "the last one counts";
  EXPECT_EQ(client.send(ask, value), 0);
  EXPECT_EQ(value.value, 1u);
  EXPECT_EQ(lni_errno(2), 0) << "root's namespace here is 1";
  client.client->become({.uid = 0, .netns = 2, .admin = true});
  EXPECT_EQ(lni_errno(2), EPERM);
}

TEST_F(CassiniService, LnisToAGroup) {
  EXPECT_EQ(lpr(1, 9), EINVAL);
  EXPECT_EQ(lpr(1, 2), 0);
  wire::SvcGetValueResp value{};
  wire::SvcLprCmd ask{};
  ask.svc_id = 1;
  ask.resp = reinterpret_cast<std::uint64_t>(&value);
  EXPECT_EQ(client.send_as(wire::Op::svc_get_lpr, ask), 0);
  EXPECT_EQ(value.value, 2u);
  ask.svc_id = 9;
  EXPECT_EQ(client.send_as(wire::Op::svc_get_lpr, ask), EINVAL);
  for (int i = 0; i < 510; ++i) ASSERT_EQ(lni_errno(1), 0);
  EXPECT_EQ(lni_errno(1), ENOSPC);
  EXPECT_EQ(card.rgids_available(), 0u);
}

TEST_F(CassiniService, ListsAreCopiedWhereThereIsRoomForAll) {
  EXPECT_EQ(alloc([](auto& d) { vnis(d, {8}); }), 2);
  wire::SvcDesc list[3] = {};
  wire::RsrcUse uses[3] = {};
  wire::SvcListGetResp count{};
  wire::SvcRsrcListGetResp uses_count{};
  wire::SvcListGetCmd c{};
  c.count = 1;
  c.svc_list = reinterpret_cast<std::uint64_t>(list);
  EXPECT_EQ(client.send(c, count), 0);
  EXPECT_EQ(count.count, 2u);
  EXPECT_EQ(list[0].svc_id, 0u);
  c.count = 3;
  EXPECT_EQ(client.send(c, count), 0);
  EXPECT_EQ(list[0].svc_id, 1u);
  EXPECT_EQ(list[1].svc_id, 2u);
  EXPECT_EQ(list[2].svc_id, 0u);
  c.svc_list = 0;
  EXPECT_EQ(client.send(c, count), EFAULT);
  (void)client.ct(client.lni(2));
  wire::SvcRsrcListGetCmd u{};
  u.count = 2;
  u.rsrc_list = reinterpret_cast<std::uint64_t>(uses);
  EXPECT_EQ(client.send(u, uses_count), 0);
  EXPECT_EQ(uses[1].svc_id, 2u);
  EXPECT_EQ(uses[1].in_use[4], 1u);
  EXPECT_EQ(uses[1].in_use[5], 0xffffu) << "it shares its list entries";
  EXPECT_EQ(uses[1].tle_pool_id, 1u);
  wire::SvcGetResp gone{};
  EXPECT_EQ(client.send(make<wire::SvcGetCmd>([](auto& g) { g.svc_id = 13; }), gone), EINVAL);
  wire::SvcRsrcGetResp use{};
  EXPECT_EQ(client.send(make<wire::SvcRsrcGetCmd>([](auto& g) { g.svc_id = 13; }), use), EINVAL);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
