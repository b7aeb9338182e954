// SPDX-License-Identifier: Apache-2.0
// Which commands there are, how long they are, who may send them; handles, cookies, and the end of a client.
#include "soft/cassini/client.hpp"

#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

std::vector<std::byte> zeros(std::uint32_t op, std::size_t bytes) {
  std::vector<std::byte> command(std::max<std::size_t>(bytes, 4));
  std::memcpy(command.data(), &op, sizeof op);
  command.resize(bytes);
  return command;
}

int errno_of(TestClient& client, wire::Op op, std::size_t bytes) {
  return client.send_raw(zeros(static_cast<std::uint32_t>(op), bytes));
}

TEST(CassiniClient, TheDeviceSaysThatItIsASimulator) {
  Fabric fabric(2);
  TestClient client(*fabric.card(1));
  wire::DevInfo info{};
  ASSERT_EQ(client.send(wire::DevInfoGetCmd{}, info), 0);
  EXPECT_EQ(info.device_platform, wire::Platform::netsim);
  EXPECT_EQ(info.cassini_version, wire::CassiniVersion::v1_1);
  EXPECT_EQ(info.nid, fabric.card(1)->settings().nid);
  EXPECT_EQ(info.pid_bits, 9u);
  EXPECT_EQ(info.pid_count, 511u);
  EXPECT_EQ(info.pid_granule, 256u);
  EXPECT_EQ(info.rdzv_get_idx, 255u);
  EXPECT_EQ(info.num_cts, 2047u);
  EXPECT_EQ(info.num_les, 16384u);
  EXPECT_EQ(info.link_state, 1u);
  wire::DevProperties properties{};
  ASSERT_EQ(client.send(wire::GetDevPropertiesCmd{}, properties), 0);
  EXPECT_EQ(properties.nid, info.nid);
  EXPECT_EQ(properties.rsrcs[7].max, 1022u);
  EXPECT_EQ(properties.amo_remap_to_pcie_fadd, -1);
}

TEST(CassiniClient, NumbersThatAreNoCommand) {
  Fabric fabric(1);
  TestClient client(*fabric.card(0));
  EXPECT_EQ(client.send_raw({}), EINVAL);
  EXPECT_EQ(client.send_raw(zeros(0, 24)), EINVAL);
  EXPECT_EQ(client.send_raw(zeros(wire::kOpMax, 24)), EINVAL);
  EXPECT_EQ(client.send_raw(zeros(0x80000001u, 24)), EINVAL);
  for (std::uint32_t op = 1; op < wire::kOpMax; ++op) {
    if (!wire::is_obsolete(static_cast<wire::Op>(op)) && !wire::is_profile_op(static_cast<wire::Op>(op))) continue;
    EXPECT_EQ(client.send_raw(zeros(op, 24)), EOPNOTSUPP) << op;
  }
  EXPECT_EQ(errno_of(client, wire::Op::retry_handler_running, 16), EOPNOTSUPP);
  EXPECT_EQ(errno_of(client, wire::Op::phys_lac_alloc, 24), EOPNOTSUPP);
}

TEST(CassiniClient, TheLengthIsExactlyTheCommands) {
  Fabric fabric(1);
  TestClient client(*fabric.card(0));
  const struct {
    wire::Op op;
    std::size_t bytes;
  } kLengths[] = {{wire::Op::lni_alloc, 24},     {wire::Op::lni_free, 8},     {wire::Op::domain_reserve, 32},
                  {wire::Op::cp_alloc, 32},      {wire::Op::cq_alloc, 48},    {wire::Op::cq_alloc_buf, 72},
                  {wire::Op::atu_map, 88},       {wire::Op::eq_alloc, 80},    {wire::Op::pte_alloc, 32},
                  {wire::Op::ct_alloc, 32},      {wire::Op::svc_alloc, 88},   {wire::Op::trig_cp_alloc, 40},
                  {wire::Op::svc_set_netns, 12}, {wire::Op::inbound_wait, 4}, {wire::Op::map_csrs, 16}};
  for (const auto& [op, bytes] : kLengths) {
    EXPECT_EQ(errno_of(client, op, bytes - 1), EINVAL) << static_cast<std::uint32_t>(op);
    EXPECT_EQ(errno_of(client, op, bytes + 1), EINVAL) << static_cast<std::uint32_t>(op);
  }
  EXPECT_EQ(errno_of(client, wire::Op::inbound_wait, 4), 0);
}

TEST(CassiniClient, WhatOnlyAnAdministratorMay) {
  Fabric fabric(1);
  TestClient client(*fabric.card(0), kUser);
  EXPECT_EQ(errno_of(client, wire::Op::svc_alloc, 88), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_update, 88), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_destroy, 8), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_enable, 24), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_set_lpr, 24), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_set_exclusive_cp, 12), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_set_vni_range, 32), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_set_netns, 12), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::map_csrs, 16), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::sbus_op_reset, 4), EPERM);
  EXPECT_EQ(errno_of(client, wire::Op::svc_alloc, 87), EINVAL) << "the length comes first";
  wire::SvcGetResp service{};
  EXPECT_EQ(client.send(make<wire::SvcGetCmd>([](auto& c) { c.svc_id = 1; }), service), 0) << "reading is free";
}

TEST(CassiniClient, AnAnswerThatCannotBeGivenUndoesTheCommand) {
  Fabric fabric(1);
  Card& card = *fabric.card(0);
  TestClient client(card);
  EXPECT_EQ(client.send(make<wire::LniAllocCmd>([](auto& c) { c.svc_id = 1; })), EFAULT);
  EXPECT_EQ(card.lnis.taken(), 0u);
  EXPECT_EQ(card.rgids_available(), 255u);
  const std::uint32_t lni = client.lni();
  (void)client.cp(lni);
  EXPECT_EQ(client.send(make<wire::DomainAllocCmd>([&](auto& c) { c.lni = lni, c.vni = 1; })), EFAULT);
  EXPECT_EQ(client.domain(lni, 1, 0).pid, 0u) << "its PID is free again";
  EXPECT_EQ(client.send(make<wire::CqAllocCmd>([&](auto& c) { c.lni = lni, c.opts.flags = wire::kCqIsTx; })), EFAULT);
  EXPECT_EQ(client.send(make<wire::CtAllocCmd>([&](auto& c) { c.lni = lni; })), EFAULT);
  EXPECT_EQ(client.send(make<wire::PteAllocCmd>([&](auto& c) { c.lni_hndl = lni; })), EFAULT);
  EXPECT_EQ(client.send(make<wire::WaitAllocCmd>([&](auto& c) { c.lni = lni; })), EFAULT);
  EXPECT_EQ(card.lnis.find(lni)->refs, 2u) << "the profile and the domain";
}

TEST(CassiniClient, ObjectsComeAndGo) {
  Fabric fabric(1);
  TestClient client(*fabric.card(0));
  const std::uint32_t lni = client.lni();
  const wire::CpAllocResp cp = client.cp(lni);
  const wire::DomainAllocResp domain = client.domain(lni);
  Pages pages(2);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  const wire::EqAllocResp eq = client.eq(lni, md, pages.data(), pages.size());
  const wire::CqAllocResp cq = client.cq(lni, wire::kCqIsTx, cp.lcid, eq.eq);
  std::uint64_t word = 0;
  const wire::CtAllocResp ct = client.ct(lni, &word);
  const std::uint32_t pte = client.pte(lni, eq.eq);
  const std::uint32_t index = client.map_pte(pte, domain.domain, 3);
  EXPECT_EQ(fabric.card(0)->at(1, wire::endpoint_of(domain.pid, 9, 3), 3), fabric.card(0)->ptes.find(pte));

  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), EBUSY);
  EXPECT_EQ(client.free<wire::PteFreeCmd>(pte), EBUSY);
  EXPECT_EQ(client.free<wire::DomainFreeCmd>(domain.domain), EBUSY);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(md.id), EBUSY);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(eq.eq), EBUSY);
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(index), 0);
  EXPECT_EQ(client.free<wire::PteFreeCmd>(pte), 0);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(eq.eq), EBUSY) << "the command queue reports to it";
  EXPECT_EQ(client.free<wire::CqFreeCmd>(cq.cq), 0);
  EXPECT_EQ(client.free<wire::CtFreeCmd>(ct.ctn), 0);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(eq.eq), 0);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(md.id), 0);
  EXPECT_EQ(client.free<wire::DomainFreeCmd>(domain.domain), 0);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), EBUSY) << "a communication profile is left";
  EXPECT_EQ(client.free<wire::CpFreeCmd>(cp.cp_hndl), 0);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), 0);
  EXPECT_EQ(fabric.card(0)->rgids_available(), 255u);
  // Every handle is unknown now.
  EXPECT_EQ(client.free<wire::PteUnmapCmd>(index), EINVAL);
  EXPECT_EQ(client.free<wire::PteFreeCmd>(pte), EINVAL);
  EXPECT_EQ(client.free<wire::CqFreeCmd>(cq.cq), EINVAL);
  EXPECT_EQ(client.free<wire::CtFreeCmd>(ct.ctn), EINVAL);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(eq.eq), EINVAL);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(md.id), EINVAL);
  EXPECT_EQ(client.free<wire::DomainFreeCmd>(domain.domain), EINVAL);
  EXPECT_EQ(client.free<wire::CpFreeCmd>(cp.cp_hndl), EINVAL);
  EXPECT_EQ(client.free<wire::LniFreeCmd>(lni), EINVAL);
  EXPECT_EQ(client.free<wire::WaitFreeCmd>(1), EINVAL);
}

TEST(CassiniClient, HandlesOfOthersAreUnknown) {
  Fabric fabric(1);
  TestClient owner(*fabric.card(0)), other(*fabric.card(0), kRoot, 2);
  const std::uint32_t lni = owner.lni();
  const std::uint32_t mine = other.lni();
  Pages pages(1);
  const wire::Md md = owner.map_memory(lni, pages.data(), pages.size());
  const wire::CtAllocResp ct = owner.ct(lni);
  const std::uint32_t pte = owner.pte(lni);
  EXPECT_EQ(other.free<wire::LniFreeCmd>(lni), EINVAL);
  EXPECT_EQ(other.free<wire::AtuUnmapCmd>(md.id), EINVAL);
  EXPECT_EQ(other.free<wire::CtFreeCmd>(ct.ctn), EINVAL);
  EXPECT_EQ(other.free<wire::PteFreeCmd>(pte), EINVAL);
  wire::EqAllocResp eq{};
  wire::EqAllocCmd c{};
  c.lni = mine;
  c.queue_md = md.id;
  c.attr.queue = pages.address();
  c.attr.queue_len = pages.size();
  EXPECT_EQ(other.send(c, eq), EINVAL) << "the memory is another's";
}

TEST(CassiniClient, ACookieIsGoodForOneMappingOfItsSize) {
  Fabric fabric(1);
  TestClient client(*fabric.card(0));
  const std::uint32_t lni = client.lni();
  const wire::CpAllocResp cp = client.cp(lni);
  const wire::CqAllocResp cq = client.cq(lni, wire::kCqIsTx, cp.lcid, 0, 100);
  EXPECT_EQ(cq.count, 128u);
  EXPECT_EQ(cq.wp_addr.offset, 4096u) << "the first cookie";
  EXPECT_EQ(cq.wp_addr.size, 4096u);
  EXPECT_EQ(cq.cmds.size, 8192u);
  EXPECT_EQ(client.client->page(cq.cmds.offset), Client::Page::ring);
  EXPECT_EQ(client.client->page(cq.wp_addr.offset), Client::Page::launch);
  EXPECT_EQ(client.client->page(12345), Client::Page::none);
  EXPECT_EQ(client.client->map(cq.cmds.offset, 4096), -EINVAL);
  EXPECT_EQ(client.client->map(cq.cmds.offset + 4096, 4096), -EINVAL);
  EXPECT_EQ(client.client->map(0, 4096), -EINVAL);
  const sys::Mapping ring = client.map(cq.cmds);
  ASSERT_TRUE(ring.valid());
  wire::QueueStatus status{};
  std::memcpy(&status, ring.data(), sizeof status);
  EXPECT_EQ(status.rd_ptr(), 4u);
  EXPECT_EQ(status.return_code(), wire::ReturnCode::ok);
  EXPECT_EQ(client.client->map(cq.cmds.offset, cq.cmds.size), -EINVAL) << "it was used";
  EXPECT_EQ(client.free<wire::CqFreeCmd>(cq.cq), EBUSY) << "it is mapped";
  client.client->unmap(cq.cmds.offset);
  client.client->unmap(cq.cmds.offset);
  EXPECT_EQ(client.client->map(cq.cmds.offset, cq.cmds.size), -EINVAL) << "once is once";
  EXPECT_EQ(client.free<wire::CqFreeCmd>(cq.cq), 0);
  EXPECT_EQ(client.client->map(cq.wp_addr.offset, 4096), -EINVAL) << "it went with the queue";
  const wire::CtAllocResp ct = client.ct(lni);
  EXPECT_EQ(client.client->page(ct.doorbell.offset), Client::Page::doorbell);
  EXPECT_GT(ct.doorbell.offset, cq.cmds.offset) << "cookies are not used again";
  EXPECT_EQ(client.client->map(ct.doorbell.offset, 4096), 0);
  EXPECT_EQ(client.free<wire::CtFreeCmd>(ct.ctn), EBUSY);
}

TEST(CassiniClient, AnAdministratorMapsRegisters) {
  Fabric fabric(1);
  Card& card = *fabric.card(0);
  card.registers.triggers(1, 6);
  card.registers.triggers(1, 2);
  TestClient client(card), other(card);
  EXPECT_EQ(client.send(wire::MapCsrsCmd{}), EFAULT);
  wire::MapCsrsResp mine{}, its{};
  ASSERT_EQ(client.send(wire::MapCsrsCmd{}, mine), 0) << "what failed has left nothing";
  ASSERT_EQ(other.send(wire::MapCsrsCmd{}, its), 0);
  EXPECT_EQ(client.send(wire::MapCsrsCmd{}, mine), EALREADY);
  EXPECT_EQ(client.client->page(mine.csr.offset), Client::Page::registers);
  EXPECT_EQ(mine.csr.size, 4096u);
  const sys::Mapping page = client.map(mine.csr), its_page = other.map(its.csr);
  ASSERT_TRUE(page.valid() && its_page.valid());
  const auto reg = [](const sys::Mapping& of, std::uint32_t offset) -> std::uint64_t& {
    return *reinterpret_cast<std::uint64_t*>(of.data() + offset + std::size_t{8});
  };
  EXPECT_EQ(reg(page, wire::kCsrTlesInUse), 2u);
  EXPECT_EQ(reg(page, wire::kCsrMostTlesInUse), 6u) << "from before it was mapped";
  reg(page, wire::kCsrMostTlesInUse) = 0;
  card.registers.triggers(1, 3);
  card.registers.triggers(1, 1);
  EXPECT_EQ(reg(page, wire::kCsrTlesInUse), 1u);
  EXPECT_EQ(reg(page, wire::kCsrMostTlesInUse), 3u);
  EXPECT_EQ(reg(its_page, wire::kCsrMostTlesInUse), 6u);
  other.client.reset();
  card.registers.triggers(1, 7);
  EXPECT_EQ(reg(page, wire::kCsrMostTlesInUse), 7u);
  EXPECT_EQ(reg(its_page, wire::kCsrMostTlesInUse), 6u) << "nobody writes there any more";
}

TEST(CassiniClient, ItsEndFreesEverything) {
  Fabric fabric(1);
  Card& card = *fabric.card(0);
  {
    TestClient client(card);
    const std::uint32_t lni = client.lni();
    const wire::CpAllocResp cp = client.cp(lni, 77);
    const wire::DomainAllocResp domain = client.domain(lni, 77);
    Pages pages(1);
    const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
    wire::WaitAllocResp wait{};
    ASSERT_EQ(client.send(make<wire::WaitAllocCmd>([&](auto& c) { c.lni = lni; }), wait), 0);
    EXPECT_EQ(wait.client_id, 1u);
    EXPECT_EQ(wait.wait, 1u);
    const wire::EqAllocResp eq = client.eq(lni, md, pages.data(), pages.size(), 0, wait.wait);
    EXPECT_EQ(client.free<wire::WaitFreeCmd>(wait.wait), EBUSY);
    const wire::CqAllocResp cq = client.cq(lni, wire::kCqIsTx, cp.lcid, eq.eq);
    (void)client.cq(lni, 0, 0, eq.eq);
    (void)client.ct(lni);
    client.map_pte(client.pte(lni, eq.eq), domain.domain, 0);
    const sys::Mapping ring = client.map(cq.cmds);
    EXPECT_EQ(card.profiles.size(), 3u) << "root got a network of its own";
  }
  EXPECT_EQ(card.lnis.taken() + card.domains.taken() + card.transmit_queues.taken() + card.target_queues.taken(), 0u);
  EXPECT_EQ(card.event_queues.taken() + card.counters.taken() + card.ptes.taken() + card.mds.taken(), 0u);
  EXPECT_TRUE(card.addresses.empty());
  EXPECT_TRUE(card.acs.none());
  EXPECT_EQ(card.profiles.size(), 2u);
  const Service& service = *card.services.find(1);
  EXPECT_EQ(service.lnis, 0u);
  for (const std::uint32_t used : service.in_use) EXPECT_EQ(used, 0u);
  for (const ResourceUse& use : card.resources) EXPECT_EQ(use.shared_use, 0u);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
