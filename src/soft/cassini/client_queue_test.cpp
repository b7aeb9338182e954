// SPDX-License-Identifier: Apache-2.0
// Command queues, event queues and counters as the driver gives them out.
#include "soft/cassini/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

struct CassiniQueueMade : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};
  std::uint32_t lni = client.lni();
  wire::CqAllocResp cq_answer{};
  wire::EqAllocResp eq_answer{};

  template <class Fill>
  int cq(Fill fill) {
    wire::CqAllocBufCmd c{};
    c.lni = lni;
    c.opts.opts.count = 64;
    c.opts.is_host_mem = 1;
    c.opts.dmabuf_fd = wire::kNoDmabufFd;
    fill(c);
    cq_answer = {};
    return client.send(c, cq_answer);
  }
  template <class Fill>
  int eq(const Pages& pages, const wire::Md& md, Fill fill) {
    wire::EqAllocCmd c{};
    c.lni = lni;
    c.queue_md = md.id;
    c.attr.queue = pages.address();
    c.attr.queue_len = pages.size();
    fill(c);
    return client.send(c, eq_answer);
  }
};

TEST_F(CassiniQueueMade, ACommandQueueThatCannotBe) {
  EXPECT_EQ(cq([](auto& c) { c.lni = 99; }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.eq = 7; }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.policy = static_cast<wire::CqPolicy>(4); }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.policy = static_cast<wire::CqPolicy>(~0u); }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.lpe_cdt_thresh_id = 4; }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.count = 65537; }), E2BIG);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.count = ~0u; }), E2BIG);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx; }), EINVAL) << "no profile is behind LCID 0";
  (void)client.cp(lni);
  (void)client.cp(lni, 1, wire::CpType::non_triggered);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx; }), 0);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx, c.opts.opts.lcid = 13; }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx, c.opts.opts.lcid = 16; }), EINVAL);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx, c.opts.opts.lpe_cdt_thresh_id = 4; }), 0)
      << "only target queues have that threshold";
  const std::uint32_t triggered = wire::kCqIsTx | wire::kCqTxTriggered;
  EXPECT_EQ(cq([&](auto& c) { c.opts.opts.flags = triggered, c.opts.opts.lcid = 1; }), EINVAL);
  EXPECT_EQ(cq([&](auto& c) { c.opts.opts.flags = triggered; }), 0);
  client.client->become(kUser);
  EXPECT_EQ(cq([](auto& c) { c.opts.opts.flags = wire::kCqIsTx | wire::kCqTxEthernet; }), EPERM);
}

TEST_F(CassiniQueueMade, WhatItsFlagsMake) {
  (void)client.cp(lni);
  const auto made = [&](std::uint32_t flags) {
    EXPECT_EQ(cq([&](auto& c) { c.opts.opts.flags = flags; }), 0) << flags;
    return cq_answer.cq < 1024 ? card.transmit_queues.find(cq_answer.cq) : card.target_queues.find(cq_answer.cq);
  };
  EXPECT_FALSE(made(0)->transmit);
  EXPECT_FALSE(made(wire::kCqUser)->transmit) << "the driver's to set, and a client's to no effect";
  EXPECT_TRUE(made(wire::kCqIsTx | wire::kCqUser)->transmit);
  EXPECT_FALSE(made(wire::kCqIsTx)->triggered);
  EXPECT_TRUE(made(wire::kCqIsTx | wire::kCqTxTriggered)->triggered);
  EXPECT_FALSE(made(wire::kCqTxTriggered)->triggered) << "of a target queue it says nothing";
  EXPECT_TRUE(made(wire::kCqIsTx | wire::kCqTxEthernet)->ethernet);
}

TEST_F(CassiniQueueMade, HowManyBlocksAQueueHas) {
  for (const auto& [asked, given] : {std::pair{0u, 64u}, {1u, 64u}, {65u, 128u}, {4096u, 4096u}, {65536u, 65536u}}) {
    EXPECT_EQ(cq([asked = asked](auto& c) { c.opts.opts.count = asked; }), 0) << asked;
    EXPECT_EQ(cq_answer.count, given);
    EXPECT_EQ(cq_answer.cmds.size, given * 64);
    EXPECT_GE(cq_answer.cq, 1024u) << "a target queue";
  }
}

TEST_F(CassiniQueueMade, ARingOfTheCallers) {
  Pages pages(2);
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = pages.address(); }), 0);
  EXPECT_EQ(cq_answer.cmds.size, 0u) << "there is nothing to map";
  EXPECT_EQ(cq_answer.wp_addr.size, 4096u);
  EXPECT_EQ(card.target_queues.find(cq_answer.cq)->ring.address, pages.address());
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = pages.address() + 64; }), EINVAL);
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = pages.address(), c.opts.opts.count = 128; }), EINVAL)
      << "nobody promised that two pages follow each other";
  client.memory.pretended_huge_shift = 21;
  Pages large(1024);
  const std::uint64_t huge = (large.address() + (1 << 21) - 1) >> 21 << 21;
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = huge, c.opts.opts.count = 128; }), 0) << "in one huge page they do";
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = huge + (1 << 21) - 4096, c.opts.opts.count = 128; }), EINVAL);
  EXPECT_EQ(cq([&](auto& c) { c.opts.buf = 4096; }), EFAULT);
  EXPECT_EQ(card.target_queues.taken(), 6u) << "credits return on demand, not at once";
}

TEST_F(CassiniQueueMade, ARingInAnAccelerator) {
  client.files.buffers[7].resize(1 << 16);
  const auto device = [](auto& c) {
    c.opts.buf = 0x700000000000;
    c.opts.is_host_mem = 0;
    c.opts.opts.count = 256;
  };
  EXPECT_EQ(cq([&](auto& c) { device(c), c.opts.dmabuf_fd = 7, c.opts.dmabuf_offset = 4096; }), 0);
  Cq& made = *card.target_queues.find(cq_answer.cq);
  const std::uint64_t word = 42;
  EXPECT_TRUE(made.ring.memory->write(made.ring.address, &word, sizeof word));
  EXPECT_EQ(std::memcmp(client.files.buffers[7].data() + 4096, &word, sizeof word), 0);
  EXPECT_EQ(cq([&](auto& c) { device(c), c.opts.dmabuf_fd = 8; }), EBADF);
  EXPECT_EQ(cq([&](auto& c) { device(c), c.opts.dmabuf_fd = 7, c.opts.dmabuf_offset = 1 << 16; }), EFAULT);
  EXPECT_EQ(cq(device), EOPNOTSUPP) << "no accelerator's driver is there";
  client.files.device.resize(1 << 20);
  client.files.device_address = 0x700000000000;
  EXPECT_EQ(cq(device), 0);
}

TEST_F(CassiniQueueMade, OperationsThatAreNotAcknowledged) {
  EXPECT_EQ(cq([](auto&) {}), 0);
  wire::CqAckCounterResp answer{.ack_counter = 9};
  const auto ask = [&](std::uint32_t handle) {
    return client.send(make<wire::CqAckCounterCmd>([&](auto& c) { c.cq = handle; }), answer);
  };
  EXPECT_EQ(ask(cq_answer.cq), 0);
  EXPECT_EQ(answer.ack_counter, 0u);
  card.target_queues.find(cq_answer.cq)->unacknowledged = 3;
  EXPECT_EQ(ask(cq_answer.cq), 0);
  EXPECT_EQ(answer.ack_counter, 3u);
  EXPECT_EQ(ask(1), EINVAL);
}

TEST_F(CassiniQueueMade, AnEventQueueThatCannotBe) {
  Pages pages(2);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  const auto fails = [&](auto fill) { return eq(pages, md, fill); };
  EXPECT_EQ(fails([](auto& c) { c.lni = 99; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.queue_md = 0; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.queue_md = 77; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.queue = 0; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.queue += 2048; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.queue_len = 0; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.queue_len = 2048; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.queue_len = 3 * 4096; }), EINVAL) << "the memory is shorter";
  EXPECT_EQ(fails([](auto& c) { c.attr.queue_len = (std::uint64_t{1} << 32) + 4096; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.event_wait = 1; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.status_wait = 1; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.reserved_slots = 128; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.status_thresh_count = 5; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.status_thresh_count = 1, c.attr.status_thresh_base = 101; }), EINVAL);
  EXPECT_EQ(fails([](auto& c) { c.attr.status_thresh_count = 1, c.attr.status_thresh_delta = 101; }), EINVAL);
  const auto thresholds = [](auto& c, std::uint32_t delta) {
    c.attr.status_thresh_base = 90;
    c.attr.status_thresh_delta = delta;
    c.attr.status_thresh_count = 4;
  };
  EXPECT_EQ(fails([&](auto& c) { thresholds(c, 40); }), EINVAL);
  client.client->become(kUser);
  EXPECT_EQ(fails([](auto& c) { c.attr.flags = wire::kEqRegisterPct; }), EPERM);
  EXPECT_EQ(fails([&](auto& c) { thresholds(c, 10); }), 0);
  EXPECT_EQ(fails([](auto& c) { c.attr.reserved_slots = 127; }), 0);
  EXPECT_EQ(card.mds.find(md.id)->refs, 2u) << "two queues on one memory";
}

TEST_F(CassiniQueueMade, EventsWithoutTranslation) {
  Pages pages(2);
  const auto passthrough = [](auto& c) { c.attr.flags = wire::kEqPassthrough; };
  EXPECT_EQ(eq(pages, {}, passthrough), EINVAL) << "two pages that may lie anywhere";
  EXPECT_EQ(eq(Pages(1), {}, passthrough), 0);
  EXPECT_EQ(eq(pages, {}, [&](auto& c) { passthrough(c), c.attr.queue = 4096, c.attr.queue_len = 4096; }), EFAULT);
}

TEST_F(CassiniQueueMade, ReservedForFlowControl) {
  Pages pages(1);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  const wire::EqAllocResp made = client.eq(lni, md, pages.data(), pages.size());
  const auto adjust = [&](std::int32_t value, std::uint32_t handle) {
    wire::EqAdjustReservedFcResp r{};
    const int failed =
        client.send(make<wire::EqAdjustReservedFcCmd>([&](auto& c) { c.eq_hndl = handle, c.value = value; }), r);
    return failed != 0 ? -failed : r.reserved_fc;
  };
  EXPECT_EQ(adjust(16384, made.eq), -EINVAL);
  EXPECT_EQ(adjust(-16384, made.eq), -EINVAL);
  EXPECT_EQ(adjust(16383, made.eq), -ENOSPC);
  EXPECT_EQ(adjust(64, made.eq), -ENOSPC);
  EXPECT_EQ(adjust(-1, made.eq), -EINVAL);
  EXPECT_EQ(adjust(1, made.eq), 1);
  EXPECT_EQ(adjust(62, made.eq), 63);
  EXPECT_EQ(adjust(-63, made.eq), 0);
  EXPECT_EQ(adjust(1, made.eq + 1), -EINVAL);
}

TEST_F(CassiniQueueMade, Resizing) {
  Pages pages(4), elsewhere(2);
  const wire::Md md = client.map_memory(lni, pages.data(), pages.size());
  const wire::Md other = client.map_memory(lni, elsewhere.data(), elsewhere.size(), wire::kMapRead | wire::kMapWrite);
  ASSERT_NE(md.lac, other.lac) << "on demand is another kind of memory";
  const wire::EqAllocResp made = client.eq(lni, md, pages.data(), 4096);
  const auto resize = [&](std::uint32_t handle, std::uint64_t queue, std::uint64_t bytes, std::uint32_t memory) {
    wire::EqResizeCmd c{};
    c.eq_hndl = handle;
    c.queue = queue;
    c.queue_len = bytes;
    c.queue_md = memory;
    return client.send(c);
  };
  const std::uint64_t second = pages.address() + 4096;
  EXPECT_EQ(resize(made.eq + 1, second, 8192, md.id), EINVAL);
  EXPECT_EQ(resize(made.eq, second + 1, 8192, md.id), EINVAL);
  EXPECT_EQ(resize(made.eq, second, 8193, md.id), EINVAL);
  EXPECT_EQ(resize(made.eq, 0, 8192, md.id), EINVAL);
  EXPECT_EQ(resize(made.eq, second, 0, md.id), EINVAL);
  EXPECT_EQ(resize(made.eq, second, 8192, 0), EINVAL);
  EXPECT_EQ(resize(made.eq, second, 16384, md.id), EINVAL) << "beyond its memory";
  EXPECT_EQ(resize(made.eq, elsewhere.address(), 8192, other.id), EINVAL) << "another address context";
  EXPECT_EQ(client.free<wire::EqResizeCompleteCmd>(made.eq), EINVAL) << "nothing was begun";
  EXPECT_EQ(resize(made.eq, second, 8192, md.id), 0);
  wire::EventHead event{};
  std::memcpy(&event, pages.data() + 64, sizeof event);
  EXPECT_EQ(event.event_type(), wire::EventType::eq_switch) << "without any other traffic";
  EXPECT_EQ(resize(made.eq, second, 8192, md.id), EINVAL) << "one at a time";
  EXPECT_EQ(card.mds.find(md.id)->refs, 2u);
  EXPECT_EQ(client.free<wire::EqResizeCompleteCmd>(made.eq), 0);
  EXPECT_EQ(card.mds.find(md.id)->refs, 1u);
  EXPECT_EQ(card.event_queues.find(made.eq)->slots, 128u);
  EXPECT_EQ(resize(made.eq, pages.address(), 4096, md.id), 0);
  EXPECT_EQ(client.free<wire::EqFreeCmd>(made.eq), 0) << "also while one is pending";
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(md.id), 0);
}

TEST_F(CassiniQueueMade, ACounterThatCannotBe) {
  std::uint64_t words[2] = {};
  const auto ct = [&](std::uint32_t owner, std::uint64_t wb) {
    wire::CtAllocResp r{};
    const int failed = client.send(make<wire::CtAllocCmd>([&](auto& c) { c.lni = owner, c.wb = wb; }), r);
    return failed != 0 ? -failed : static_cast<int>(r.ctn);
  };
  const auto word = reinterpret_cast<std::uint64_t>(&words[0]);
  EXPECT_EQ(ct(99, word), -EINVAL);
  EXPECT_EQ(ct(lni, word + 1), -EINVAL);
  EXPECT_EQ(ct(lni, 4096), -EOPNOTSUPP) << "no memory, and no accelerator's driver to ask";
  EXPECT_EQ(ct(lni, 0), 1) << "never written back";
  EXPECT_EQ(ct(lni, word), 2);
  EXPECT_EQ(words[0], 0u) << "allocating writes nothing";
}

TEST_F(CassiniQueueMade, AnotherPlaceForACounter) {
  Pages pages(1);
  auto* words = reinterpret_cast<std::uint64_t*>(pages.data());
  const wire::CtAllocResp made = client.ct(lni, words);
  const auto update = [&](std::uint32_t ctn, std::uint64_t wb) {
    return client.send(make<wire::CtWbUpdateCmd>([&](auto& c) { c.ctn = ctn, c.wb = wb; }));
  };
  EXPECT_EQ(update(made.ctn + 1, pages.address() + 8), EINVAL);
  EXPECT_EQ(update(made.ctn, 0), EINVAL);
  EXPECT_EQ(update(made.ctn, 4096), EOPNOTSUPP);
  EXPECT_EQ(card.counters.find(made.ctn)->write_back.address, pages.address()) << "a refusal changes nothing";
  EXPECT_EQ(update(made.ctn, pages.address() + 13), 0) << "alignment is not looked at";
  EXPECT_EQ(card.counters.find(made.ctn)->write_back.address, pages.address() + 8);
  card.count(*card.counters.find(made.ctn), 5, 1);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(wire::CtWriteback{words[1]}.success(), 5u);
  card.write_backs_hang = true;
  EXPECT_EQ(update(made.ctn, pages.address()), ETIMEDOUT);
  EXPECT_EQ(card.counters.find(made.ctn)->write_back.address, pages.address() + 8);
  const wire::CtAllocResp silent = client.ct(lni);
  EXPECT_EQ(update(silent.ctn, pages.address()), 0) << "nothing to wait for where nothing was written";
}

TEST_F(CassiniQueueMade, ACounterInAnAccelerator) {
  client.files.device.resize(1 << 17);
  client.files.device_address = 0x700000000000;
  const wire::CtAllocResp made = client.ct(lni, reinterpret_cast<void*>(0x700000010008));
  card.count(*card.counters.find(made.ctn), 0, 1);
  std::uint64_t word = 0;
  std::memcpy(&word, client.files.device.data() + 0x10008, sizeof word);
  EXPECT_EQ(wire::CtWriteback{word}.failure(), 1u);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
