// SPDX-License-Identifier: Apache-2.0
// How much there is of everything, and when what was freed can be had again.
#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniLimits : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};
  std::uint32_t lni = client.lni();

  int ct() {
    wire::CtAllocResp r{};
    return client.send(make<wire::CtAllocCmd>([&](auto& c) { c.lni = lni; }), r);
  }
  int pte() {
    wire::PteAllocResp r{};
    return client.send(make<wire::PteAllocCmd>([&](auto& c) { c.lni_hndl = lni; }), r);
  }
  int cq(std::uint32_t flags, std::uint32_t* handle = nullptr) {
    wire::CqAllocResp r{};
    const int failed = client.send(make<wire::CqAllocCmd>([&](auto& c) { c.lni = lni, c.opts.flags = flags; }), r);
    if (handle != nullptr) *handle = r.cq;
    return failed;
  }
  void limit(Resource resource, std::uint16_t max) {
    card.services.find(1)->desc.limits[static_cast<std::size_t>(resource)].max = max;
  }
  std::uint32_t used(Resource resource) {
    wire::SvcRsrcGetResp r{};
    EXPECT_EQ(client.send(make<wire::SvcRsrcGetCmd>([](auto& c) { c.svc_id = 1; }), r), 0);
    return r.rsrcs.in_use[static_cast<std::size_t>(resource)];
  }
};

TEST_F(CassiniLimits, Counters) {
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i <= 2047; ++i) ASSERT_EQ(last = client.ct(lni).ctn, i);
  EXPECT_EQ(ct(), ENOSPC);
  EXPECT_EQ(used(Resource::ct), 2047u);
  EXPECT_EQ(client.free<wire::CtFreeCmd>(last), 0);
  EXPECT_EQ(ct(), ENOSPC) << "its number returns with the LNI";
  EXPECT_EQ(used(Resource::ct), 2047u);
  for (std::uint32_t i = 1; i < 2047; ++i) ASSERT_EQ(client.free<wire::CtFreeCmd>(i), 0);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), 0);
  lni = client.lni();
  EXPECT_EQ(client.ct(lni).ctn, 1u);
  EXPECT_EQ(used(Resource::ct), 1u);
}

TEST_F(CassiniLimits, PortalEntriesAreUsedAgainByTheirLni) {
  for (std::uint32_t i = 1; i <= 2047; ++i) ASSERT_EQ(client.pte(lni), i);
  EXPECT_EQ(pte(), ENOSPC);
  EXPECT_EQ(client.free<wire::PteFreeCmd>(700), 0);
  EXPECT_EQ(used(Resource::pte), 2047u) << "still paid for";
  const std::uint32_t first = lni;
  lni = client.lni();
  EXPECT_EQ(pte(), ENOSPC) << "not for another LNI";
  EXPECT_EQ(client.pte(first), 700u);
}

TEST_F(CassiniLimits, EventQueuesAreUsedAgainByTheirLni) {
  Pages pages(1);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  limit(Resource::eq, 2);
  EXPECT_EQ(client.eq(lni, md, pages.data(), 4096).eq, 1u);
  EXPECT_EQ(client.eq(lni, md, pages.data(), 4096).eq, 2u);
  wire::EqAllocResp r{};
  wire::EqAllocCmd c{};
  c.lni = lni;
  c.queue_md = md.id;
  c.attr.queue = pages.address();
  c.attr.queue_len = 4096;
  EXPECT_EQ(client.send(c, r), ENOSPC);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(1), 0);
  EXPECT_EQ(client.eq(lni, md, pages.data(), 4096).eq, 1u);
}

TEST_F(CassiniLimits, EventQueues) {
  Pages pages(1);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  for (std::uint32_t i = 1; i <= 2047; ++i) ASSERT_EQ(client.eq(lni, md, pages.data(), 4096).eq, i) << "0 is none";
  wire::EqAllocResp r{};
  wire::EqAllocCmd c{};
  c.lni = lni;
  c.queue_md = md.id;
  c.attr.queue = pages.address();
  c.attr.queue_len = 4096;
  EXPECT_EQ(client.send(c, r), ENOSPC);
}

// Eight to a group, 1022 in all. A flag that means nothing makes another kind of memory, and so another context.
TEST_F(CassiniLimits, AddressContexts) {
  Pages pages(1);
  wire::AtuMapResp r{};
  const auto map = [&](std::uint32_t owner, std::uint32_t kind) {
    wire::AtuMapCmd c{};
    c.lni = owner;
    c.va = pages.address();
    c.len = 1;
    c.flags = wire::kMapPin | wire::kMapRead | kind << 20;
    return client.send(c, r);
  };
  std::uint32_t owner = lni;
  for (std::uint32_t i = 0; i < 1022; ++i) {
    if (i != 0 && i % 8 == 0) owner = client.lni();
    ASSERT_EQ(map(owner, i % 8), 0) << i;
    ASSERT_EQ(r.md.lac, i % 8);
  }
  EXPECT_EQ(map(owner, 6), ENOSPC) << "its group has room, the card has none";
  EXPECT_EQ(map(lni, 8), ENOSPC) << "nor has the first group";
  EXPECT_EQ(map(lni, 7), 0) << "what exists is used again";
}

TEST_F(CassiniLimits, TransmitQueuesReturnOnDemand) {
  (void)client.cp(lni);
  std::uint32_t handle = 0;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(cq(wire::kCqIsTx, &handle), 0);
    ASSERT_EQ(handle, i);
  }
  EXPECT_EQ(cq(wire::kCqIsTx), ENOSPC);
  EXPECT_EQ(client.free<wire::CqFreeCmd>(5), 0);
  EXPECT_EQ(used(Resource::txq), 1024u) << "not cleaned yet";
  EXPECT_EQ(cq(wire::kCqIsTx, &handle), 0) << "cleaned because somebody needs it";
  EXPECT_EQ(handle, 5u);
}

TEST_F(CassiniLimits, TargetQueues) {
  std::uint32_t handle = 0;
  for (std::uint32_t i = 0; i < 512; ++i) {
    ASSERT_EQ(cq(0, &handle), 0);
    ASSERT_EQ(handle, 1024 + i);
  }
  EXPECT_EQ(cq(0), ENOSPC);
}

TEST_F(CassiniLimits, OfAService) {
  (void)client.cp(lni);
  limit(Resource::ct, 1);
  limit(Resource::pte, 1);
  limit(Resource::txq, 1);
  limit(Resource::tgq, 1);
  EXPECT_EQ(ct(), 0);
  EXPECT_EQ(ct(), ENOSPC);
  EXPECT_EQ(pte(), 0);
  EXPECT_EQ(pte(), ENOSPC);
  EXPECT_EQ(cq(wire::kCqIsTx), 0);
  EXPECT_EQ(cq(wire::kCqIsTx), ENOSPC);
  EXPECT_EQ(cq(0), 0);
  EXPECT_EQ(cq(0), ENOSPC);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
