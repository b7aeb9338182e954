// SPDX-License-Identifier: Apache-2.0
// Portal table entries as the driver gives them out: options, addresses, states.
#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniPortal : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};
  std::uint32_t lni = client.lni();

  int alloc(std::uint32_t owner, std::uint32_t eq, std::uint64_t options) {
    wire::PteAllocResp r{};
    return client.send(
        make<wire::PteAllocCmd>([&](auto& c) { c.lni_hndl = owner, c.evtq_hndl = eq, c.opts = options; }), r);
  }
  // The index, or -errno.
  int map(std::uint32_t pte, std::uint32_t domain, std::uint32_t offset, bool multicast = false) {
    wire::PteMapResp r{};
    wire::PteMapCmd c{};
    c.pte_number = pte;
    c.domain_hndl = domain;
    c.pid_offset = offset;
    c.is_multicast = multicast ? 1 : 0;
    const int failed = client.send(c, r);
    return failed != 0 ? -failed : static_cast<int>(r.pte_index);
  }
  int to_software(std::uint32_t pte, std::uint32_t drops) {
    return client.send(make<wire::PteTransitionSmCmd>([&](auto& c) { c.pte_index = pte, c.drop_count = drops; }));
  }
};

TEST_F(CassiniPortal, AnEntryThatCannotBe) {
  EXPECT_EQ(alloc(99, 0, 0), EINVAL);
  EXPECT_EQ(alloc(lni, 99, 0), EINVAL);
  client.client->become(kUser);
  EXPECT_EQ(alloc(lni, 0, wire::kPteEthernet), EPERM);
  EXPECT_EQ(alloc(lni, 0, 0), 0) << "without an event queue";
}

TEST_F(CassiniPortal, EveryOptionIsKept) {
  for (unsigned bit = 0; bit <= 16; ++bit) {
    const std::uint64_t option = std::uint64_t{1} << bit;
    const Pte& pte = *card.ptes.find(client.pte(lni, 0, option));
    EXPECT_EQ(pte.options, option);
    EXPECT_EQ(pte.state, option == wire::kPteEthernet ? wire::PteState::ethernet : wire::PteState::disabled);
  }
  EXPECT_EQ(card.ptes.find(client.pte(lni, 0, ~std::uint64_t{0} & ~wire::kPteEthernet))->options >> 17, 0u);
}

TEST_F(CassiniPortal, EntriesTakeTurnsOnTheProcessingElements) {
  std::set<std::uint32_t> elements;
  for (int i = 0; i < 4; ++i) elements.insert(card.ptes.find(client.pte(lni))->pe);
  EXPECT_EQ(elements.size(), 4u);
}

TEST_F(CassiniPortal, AnAddressThatCannotBe) {
  const std::uint32_t pte = client.pte(lni);
  const std::uint32_t domain = client.domain(lni).domain;
  const std::uint32_t other = client.domain(client.lni(), 10).domain;
  EXPECT_EQ(map(pte + 1, domain, 0), -EINVAL);
  EXPECT_EQ(map(pte, domain + 7, 0), -EINVAL);
  EXPECT_EQ(map(pte, other, 0), -EINVAL) << "of another LNI";
  EXPECT_EQ(map(pte, domain, 256), -EINVAL);
  EXPECT_EQ(map(pte, domain, 255), 0);
  EXPECT_EQ(map(pte, domain, 1u << 18, true), -EINVAL);
  EXPECT_EQ(map(pte, domain, (1u << 18) - 1, true), 1);
  EXPECT_EQ(map(pte, domain, 5, true), -EINVAL) << "one multicast to an entry";
  EXPECT_EQ(map(client.pte(lni), domain, (1u << 18) - 1, true), -ENOSPC) << "and one entry to a multicast";
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(2), EINVAL);
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(4000), EINVAL);
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(1), 0);
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(0), 0);
  EXPECT_TRUE(card.addresses.empty());
}

TEST_F(CassiniPortal, WhereTwoEntriesAreMappedTheFirstAnswers) {
  const std::uint32_t one = client.pte(lni), two = client.pte(lni);
  const wire::DomainAllocResp domain = client.domain(lni);
  const int first = map(one, domain.domain, 40), second = map(two, domain.domain, 40);
  const std::uint32_t endpoint = wire::endpoint_of(domain.pid, 9, 40);
  EXPECT_EQ(card.at(1, endpoint, 8), card.ptes.find(one));
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(static_cast<std::uint32_t>(first)), 0);
  EXPECT_EQ(card.at(1, endpoint, 8), card.ptes.find(two));
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(static_cast<std::uint32_t>(second)), 0);
  EXPECT_EQ(card.at(1, endpoint, 8), nullptr);
  EXPECT_EQ(card.at(99, endpoint, 8), nullptr);
}

TEST_F(CassiniPortal, TheTableOfAddressesIsFull) {
  const std::uint32_t pte = client.pte(lni);
  std::uint32_t domain = 0;
  for (std::uint32_t i = 0; i < wire::kNumPteMappings; ++i) {
    if (i % 256 == 0) domain = client.domain(lni).domain;
    ASSERT_EQ(map(pte, domain, i % 256), static_cast<int>(i));
  }
  domain = client.domain(lni).domain;
  EXPECT_EQ(map(pte, domain, 0), -ENOSPC);
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(1234), 0);
  EXPECT_EQ(map(pte, domain, 0), 1234);
}

TEST_F(CassiniPortal, ToSoftwareByTheCountOfDrops) {
  const std::uint32_t pte = client.pte(lni);
  EXPECT_EQ(to_software(99, 0), EINVAL);
  card.ptes.find(pte)->drop_count = 3;
  EXPECT_EQ(to_software(pte, 2), EAGAIN);
  card.ptes.find(pte)->state = wire::PteState::enabled;
  EXPECT_EQ(to_software(pte, 3), EINVAL);
  card.ptes.find(pte)->state = wire::PteState::disabled;
  EXPECT_EQ(to_software(pte, 3), 0);
  EXPECT_EQ(card.ptes.find(pte)->state, wire::PteState::software_managed);
  EXPECT_EQ(to_software(pte, 77), 0) << "it is already";
}

TEST_F(CassiniPortal, StatusIsAQuestionToo) {
  const std::uint32_t pte = client.pte(lni);
  card.ptes.find(pte)->drop_count = 5;
  wire::PteStatus status{};
  const auto ask = [&](std::uint32_t handle) {
    return client.send(make<wire::PteStatusCmd>([&](auto& c) { c.pte_index = handle; }), status);
  };
  EXPECT_EQ(ask(99), EINVAL);
  EXPECT_EQ(client.send(make<wire::PteStatusCmd>([&](auto& c) { c.pte_index = pte; })), EFAULT);
  EXPECT_EQ(ask(pte), 0);
  EXPECT_EQ(status.drop_count, 5u);
  EXPECT_EQ(status.state, static_cast<std::uint8_t>(wire::PteState::disabled));
  EXPECT_EQ(status.les_max, 16384u);
  EXPECT_EQ(status.les_allocated, 0u);
  std::uint64_t offsets[2] = {};
  status.ule_offsets = reinterpret_cast<std::uint64_t>(offsets);
  status.ule_count = 2;
  EXPECT_EQ(ask(pte), 0);
  EXPECT_EQ(status.ule_count, 0u);
  EXPECT_EQ(client.send(make<wire::PteLeInvalidateCmd>([&](auto& c) { c.pte_index = pte, c.buffer_id = 9; })), 0);
  EXPECT_EQ(client.send(make<wire::PteLeInvalidateCmd>([&](auto& c) { c.pte_index = 99; })), EINVAL);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
