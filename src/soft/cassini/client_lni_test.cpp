// SPDX-License-Identifier: Apache-2.0
// LNIs, resource groups, domains and PIDs, communication profiles.
#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniLni : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};

  int lni_errno(std::uint32_t service) {
    wire::LniAllocResp r{};
    return client.send(make<wire::LniAllocCmd>([&](auto& c) { c.svc_id = service; }), r);
  }
  int domain_errno(std::uint32_t lni, std::uint32_t vni, std::uint32_t pid) {
    wire::DomainAllocResp r{};
    return client.send(make<wire::DomainAllocCmd>([&](auto& c) { c.lni = lni, c.vni = vni, c.pid = pid; }), r);
  }
  // The first PID, or -errno.
  int reserve(std::uint32_t lni, std::uint32_t pid, std::uint32_t count, std::uint32_t vni = 1) {
    wire::DomainReserveResp r{};
    wire::DomainReserveCmd c{};
    c.lni = lni;
    c.vni = vni;
    c.pid = pid;
    c.count = count;
    const int failed = client.send(c, r);
    return failed != 0 ? -failed : static_cast<int>(r.pid);
  }
  int cp_errno(std::uint32_t lni, std::uint32_t vni, std::uint32_t tc, std::uint32_t type,
               wire::CpType cp_type = wire::CpType::any) {
    wire::CpAllocResp r{};
    wire::TrigCpAllocCmd c{};
    c.lni = lni;
    c.vni = vni;
    c.tc = static_cast<wire::TrafficClass>(tc);
    c.tc_type = static_cast<wire::TrafficClassType>(type);
    c.cp_type = cp_type;
    return client.send(c, r);
  }
};

TEST_F(CassiniLni, WhoMayHaveOne) {
  EXPECT_EQ(lni_errno(13), EINVAL);
  card.services.find(1)->access = {{Access::Kind::gid, 5}};
  EXPECT_EQ(lni_errno(1), EPERM) << "root is nobody special here";
  client.client->become({.uid = 7, .gid = 5});
  EXPECT_EQ(lni_errno(1), 0);
  card.services.find(1)->desc.flags &= static_cast<std::uint8_t>(~wire::kSvcEnable);
  EXPECT_EQ(lni_errno(1), EKEYREVOKED);
  wire::CtAllocResp ct{};
  EXPECT_EQ(client.send(make<wire::CtAllocCmd>([](auto& c) { c.lni = 1; }), ct), EKEYREVOKED)
      << "a service that is off gives nothing more to who has an LNI";
}

TEST_F(CassiniLni, ThereAre255Groups) {
  std::vector<std::uint32_t> all;
  for (int i = 0; i < 255; ++i) all.push_back(client.lni());
  EXPECT_EQ(lni_errno(1), ENOSPC);
  EXPECT_EQ(card.rgids_available(), 0u);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(all[100]), 0);
  EXPECT_EQ(client.lni(), all[100]);
}

TEST_F(CassiniLni, LnisShareAGroupWhenTheServiceSaysSo) {
  card.services.find(1)->lnis_per_rgid = 2;
  const std::uint32_t one = client.lni(), two = client.lni(), three = client.lni();
  EXPECT_EQ(card.lnis.find(one)->rgid, card.lnis.find(two)->rgid);
  EXPECT_NE(card.lnis.find(one)->rgid, card.lnis.find(three)->rgid);
  EXPECT_EQ(card.rgids_available(), 253u);
  // LCID 0 is the group's, others are the LNI's.
  EXPECT_EQ(client.cp(one).lcid, 0u);
  EXPECT_EQ(client.cp(two).lcid, 0u);
  EXPECT_EQ(client.cp(one, 1, wire::CpType::non_triggered).lcid, 1u);
  EXPECT_EQ(client.cp(two, 1, wire::CpType::non_triggered).lcid, 2u);
  EXPECT_EQ(client.cp(three, 1, wire::CpType::non_triggered).lcid, 1u);
  // So are address contexts: numbers of one group do not meet.
  Pages pages(1);
  EXPECT_EQ(client.map_memory(one, pages.data(), 1).lac, 0u);
  EXPECT_EQ(client.map_memory(two, pages.data(), 1).lac, 1u);
  EXPECT_EQ(client.map_memory(three, pages.data(), 1).lac, 0u);
}

TEST_F(CassiniLni, ADomainThatCannotBe) {
  const std::uint32_t lni = client.lni();
  EXPECT_EQ(domain_errno(lni + 1, 1, 0), EINVAL);
  EXPECT_EQ(domain_errno(lni + 0x80000000u, 1, 0), EINVAL);
  EXPECT_EQ(domain_errno(lni, 0, 0), EINVAL);
  EXPECT_EQ(domain_errno(lni, 65536, 0), EINVAL);
  EXPECT_EQ(domain_errno(lni, 1, 512), EINVAL);
  EXPECT_EQ(domain_errno(lni, 1, 0), 0);
  EXPECT_EQ(domain_errno(lni, 1, 0), EEXIST);
  EXPECT_EQ(domain_errno(lni, 10, 0), 0) << "another network";
  EXPECT_EQ(client.domain(lni).pid, 1u) << "any";
  client.client->become(kUser);
  EXPECT_EQ(domain_errno(lni, 4711, 0), ENOENT) << "there is no such network";
  client.client->become(kRoot);
  EXPECT_EQ(domain_errno(lni, 4711, 0), 0) << "root has one made";
  client.client->become(kUser);
  EXPECT_EQ(domain_errno(lni, 4711, 1), EPERM) << "it is root's";
}

TEST_F(CassiniLni, AnyPidEndsBeforeTheLast) {
  const std::uint32_t lni = client.lni();
  for (std::uint32_t i = 0; i < 510; ++i) ASSERT_EQ(client.domain(lni).pid, i);
  EXPECT_EQ(domain_errno(lni, 1, wire::kPidAny), ENOSPC);
  EXPECT_EQ(domain_errno(lni, 1, 510), 0) << "by its number it can be had";
}

TEST_F(CassiniLni, ReservedPids) {
  const std::uint32_t lni = client.lni(), other = client.lni();
  EXPECT_EQ(reserve(lni, 0, 0), -EINVAL);
  EXPECT_EQ(reserve(lni, 0, 512), -EINVAL);
  EXPECT_EQ(reserve(lni, 512, 1), -EINVAL);
  EXPECT_EQ(reserve(lni, 0, 1, 10000), -EINVAL) << "no network is made for this";
  EXPECT_EQ(reserve(lni, wire::kPidAny, 10), 0);
  EXPECT_EQ(reserve(lni, 0, 10), -EEXIST);
  EXPECT_EQ(reserve(lni, wire::kPidAny, 10), 10);
  EXPECT_EQ(domain_errno(other, 1, 10), EEXIST) << "another LNI's";
  EXPECT_EQ(domain_errno(lni, 1, 10), 0);
  EXPECT_EQ(domain_errno(lni, 1, 10), EEXIST) << "reserved, and in use";
  EXPECT_EQ(client.domain(other).pid, 20u);
  EXPECT_EQ(reserve(other, 100, 1), 100);
  EXPECT_EQ(reserve(other, 101, 10), 101);
  EXPECT_EQ(reserve(other, 105, 10), 111) << "the first that are free, not far behind";
  // 21 to 99 are free, and what is behind 120.
  EXPECT_EQ(reserve(lni, wire::kPidAny, 390), -ENOSPC) << "the last PID is named, or stays free";
  EXPECT_EQ(reserve(lni, wire::kPidAny, 389), 121);
  EXPECT_EQ(reserve(lni, wire::kPidAny, 80), -ENOSPC);
  EXPECT_EQ(reserve(lni, wire::kPidAny, 79), 21);
  EXPECT_EQ(reserve(other, wire::kPidAny, 1), -ENOSPC);
  EXPECT_EQ(reserve(other, 510, 1), 510);
}

TEST_F(CassiniLni, ReservationsGoWithTheLniAndPidsWithTheDomain) {
  std::uint32_t lni = client.lni();
  EXPECT_EQ(reserve(lni, 0, 511), 0);
  EXPECT_EQ(domain_errno(client.lni(), 1, 5), EEXIST);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), 0);
  lni = client.lni();
  EXPECT_EQ(reserve(lni, 0, 1), 0);
  const wire::DomainAllocResp domain = client.domain(lni, 1, 0);
  EXPECT_EQ(client.free<wire::DomainFreeCmd>(domain.domain), 0);
  EXPECT_EQ(reserve(lni, 0, 511), 0) << "a domain takes its PID along, reserved or not";
}

TEST_F(CassiniLni, AProfileThatCannotBe) {
  const std::uint32_t lni = client.lni();
  EXPECT_EQ(cp_errno(lni, 1, 0, 0), 0);
  EXPECT_EQ(cp_errno(lni, 1, 2, 0), 0);
  EXPECT_EQ(cp_errno(lni, 10, 3, 2), 0);
  EXPECT_EQ(cp_errno(lni, 1, 1, 0), EINVAL) << "low latency is the device's";
  EXPECT_EQ(cp_errno(lni, 1, 7, 0), EINVAL);
  EXPECT_EQ(cp_errno(lni, 1, 3, 4), EINVAL);
  EXPECT_EQ(cp_errno(lni, 0, 3, 0), EINVAL);
  EXPECT_EQ(cp_errno(lni, 65536, 3, 0), EINVAL);
  EXPECT_EQ(cp_errno(lni + 1, 1, 3, 0), EINVAL);
  EXPECT_EQ(cp_errno(lni, 8, 4, 0), EINVAL) << "a priority has three bits";
  EXPECT_EQ(cp_errno(lni, 7, 4, 0), 0);
  client.client->become(kUser);
  EXPECT_EQ(cp_errno(lni, 7, 4, 0), EPERM) << "Ethernet needs CAP_NET_RAW";
  EXPECT_EQ(cp_errno(lni, 4711, 3, 0), ENOENT);
}

TEST_F(CassiniLni, EachTypeOfATrafficClassIsAProfileOfItsOwn) {
  const std::uint32_t lni = client.lni();
  for (int again = 0; again < 2; ++again) {
    for (std::uint32_t type = 0; type < wire::kTrafficClassTypes; ++type) {
      wire::TrigCpAllocCmd c{};
      c.lni = lni, c.vni = 1, c.tc = wire::TrafficClass::best_effort;
      c.tc_type = static_cast<wire::TrafficClassType>(type);
      c.cp_type = wire::CpType::non_triggered;
      wire::CpAllocResp made{};
      ASSERT_EQ(client.send(c, made), 0) << type;
      EXPECT_EQ(made.lcid, type + 1) << "an equal one is shared, another type is not";
    }
  }
}

TEST_F(CassiniLni, AServiceMayLeaveOutTrafficClasses) {
  const std::uint32_t lni = client.lni();
  card.profile_of(1)->tcs[2] = false;
  EXPECT_EQ(cp_errno(lni, 1, 2, 0), EINVAL);
  EXPECT_EQ(cp_errno(lni, 10, 2, 0), 0);
}

TEST_F(CassiniLni, WhichLcidAProfileGets) {
  const std::uint32_t lni = client.lni();
  EXPECT_EQ(client.cp(lni, 1, wire::CpType::non_triggered).lcid, 1u);
  EXPECT_EQ(client.cp(lni, 1, wire::CpType::triggered).lcid, 0u);
  EXPECT_EQ(client.cp(lni, 1, wire::CpType::any).lcid, 0u) << "an equal one is shared";
  EXPECT_EQ(client.cp(lni, 1, wire::CpType::non_triggered).lcid, 1u);
  EXPECT_EQ(cp_errno(lni, 10, 3, 0, wire::CpType::triggered), ENOSPC) << "there is one LCID 0";
  EXPECT_EQ(client.cp(lni, 10, wire::CpType::any).lcid, 2u);
  for (std::uint32_t lcid = 3; lcid < 16; ++lcid) EXPECT_EQ(client.cp(lni, 100 + lcid).lcid, lcid);
  EXPECT_EQ(cp_errno(lni, 99, 3, 0), ENOSPC);
  const std::size_t networks = card.profiles.size();
  EXPECT_EQ(cp_errno(lni, 98, 3, 0), ENOSPC);
  EXPECT_EQ(card.profiles.size(), networks) << "what was made for it went again";
}

TEST_F(CassiniLni, TheOlderCallIsForAnyLcid) {
  const std::uint32_t lni = client.lni();
  wire::CpAllocCmd c{};
  c.lni = lni;
  c.vni = 1;
  c.tc = wire::TrafficClass::best_effort;
  wire::CpAllocResp first{}, second{};
  EXPECT_EQ(client.send(c, first), 0);
  EXPECT_EQ(first.lcid, 0u);
  EXPECT_EQ(client.cp(lni, 1, wire::CpType::any).lcid, 0u) << "the same profile";
  c.vni = 10;
  EXPECT_EQ(client.send(c, second), 0);
  EXPECT_EQ(second.lcid, 1u);
  c.tc = static_cast<wire::TrafficClass>(7);
  EXPECT_EQ(client.send(c, second), EINVAL);
  EXPECT_EQ(client.free<wire::CpFreeCmd>(first.cp_hndl), 0);
}

TEST_F(CassiniLni, ASharedProfileStaysUntilItsLastHandle) {
  const std::uint32_t lni = client.lni();
  const wire::CpAllocResp one = client.cp(lni), two = client.cp(lni);
  EXPECT_EQ(one.cp_hndl, 0u);
  EXPECT_EQ(two.cp_hndl, 1u);
  EXPECT_EQ(client.free<wire::CpFreeCmd>(one.cp_hndl), 0);
  EXPECT_NE(card.lnis.find(lni)->cps[0], nullptr);
  EXPECT_EQ(client.cp(lni).cp_hndl, 0u) << "the lowest handle that is free";
  EXPECT_EQ(client.free<wire::CpFreeCmd>(0), 0);
  EXPECT_EQ(client.free<wire::CpFreeCmd>(two.cp_hndl), 0);
  EXPECT_EQ(card.lnis.find(lni)->cps[0], nullptr);
}

TEST_F(CassiniLni, OnlyAnExclusiveProfileMayChangeItsVni) {
  const std::uint32_t lni = client.lni();
  const auto modify = [&](std::uint32_t handle, std::uint32_t vni) {
    return client.send(make<wire::CpModifyCmd>([&](auto& c) { c.cp_hndl = handle, c.vni = vni; }));
  };
  const wire::CpAllocResp shared = client.cp(lni);
  EXPECT_EQ(modify(shared.cp_hndl, 10), EINVAL);
  EXPECT_EQ(modify(99, 10), EINVAL);
  auto range = std::make_shared<Profile>();
  range->match = 16;
  range->ignore = 15;
  range->access = {Access{}};
  range->tcs.fill(true);
  range->enabled = range->exclusive_cp = true;
  card.profiles.push_back(range);
  const wire::CpAllocResp own = client.cp(lni, 16), again = client.cp(lni, 16);
  EXPECT_NE(own.lcid, again.lcid) << "never shared";
  EXPECT_EQ(modify(own.cp_hndl, 31), 0);
  EXPECT_EQ(card.lnis.find(lni)->cps[own.lcid]->vni, 31u);
  EXPECT_EQ(modify(own.cp_hndl, 32), EINVAL) << "no network";
  // One PID table for the range: the second domain of a PID is refused.
  EXPECT_EQ(domain_errno(lni, 16, 3), 0);
  EXPECT_EQ(domain_errno(lni, 31, 3), EEXIST);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
