// SPDX-License-Identifier: Apache-2.0
// Extended reliable connections: one target serves many shared receive queues of its domain; each message names its.
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// a sends through an initiator; b has the target, and two shared receive queues that complete in different places.
struct Xrc {
  Xrc() {
    xrcd = pair.b->alloc_xrcd();
    from = std::make_unique<TestQueue>(*pair.a, pair.pd_a, TestShape{.type = QpType::xrc_ini, .receives = 0});
    to = std::make_unique<TestQueue>(*pair.b, pair.pd_b,
                                     TestShape{.type = QpType::xrc_tgt, .blocks = 0, .receives = 0, .xrcd = xrcd});
    // Any queue pair lends its completion queue.
    for (int i = 0; i < 2; ++i) {
      places.push_back(std::make_unique<TestQueue>(*pair.b, pair.pd_b, TestShape{.events = true}));
      srqs.push_back(std::make_unique<TestSrq>(*pair.b, pair.pd_b, 16, xrcd, places.back()->cqn()));
    }
    VerbsPair::raise_to(*pair.a, from->qpn, QpType::xrc_ini, attributes_to(pair.port_b->address(), to->qpn, 5, 6),
                        QpState::ready);
    VerbsPair::raise_to(*pair.b, to->qpn, QpType::xrc_tgt, attributes_to(pair.port_a->address(), from->qpn, 6, 5),
                        QpState::ready);
    source_key = pair.reg_a(source);
    target_key = pair.reg_b(target);
  }
  ~Xrc() {
    EXPECT_FALSE(pair.b->free_xrcd(xrcd)) << "it is in use";
    srqs.clear();
    to.reset();
    EXPECT_TRUE(pair.b->free_xrcd(xrcd));
  }
  m::Syndrome run(Wqe wqe, std::size_t srq) {
    wqe.xrc_srqn = srqs[srq]->srqn;
    from->post(wqe);
    const auto event = pair.wait(*from);
    EXPECT_TRUE(event);
    return event->syndrome;
  }
  [[nodiscard]] Seg here(std::uint32_t length) const { return {address_of(source.data()), length, source_key}; }

  VerbsPair pair;
  std::uint32_t xrcd = 0;
  std::vector<std::byte> source = pattern(8192, 1), target = std::vector<std::byte>(8192);
  std::uint32_t source_key = 0, target_key = 0;
  std::vector<std::unique_ptr<TestQueue>> places;
  std::vector<std::unique_ptr<TestSrq>> srqs;
  std::unique_ptr<TestQueue> from, to;
};

TEST(XrcTarget, EachMessageGoesToTheQueueItNames) {
  Xrc x;
  for (unsigned i = 0; i < 40; ++i) {
    const std::size_t which = i * 3 % 2;
    const std::uint32_t entry = x.srqs[which]->post({{address_of(x.target.data()), 8192, x.target_key}}).value();
    const std::uint32_t length = i % 4 == 0 ? 5000 : 100 + i;
    ASSERT_EQ(x.run({.opcode = m::Opcode::send, .data = {x.here(length)}}, which), m::Syndrome::none);
    const auto event = x.pair.wait(*x.places[which]);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
    EXPECT_EQ(event->bytes, length);
    EXPECT_EQ(event->counter, entry);
    EXPECT_EQ(event->srqn_uidx, x.srqs[which]->srqn);
    EXPECT_EQ(event->qpn, x.to->qpn);
    EXPECT_EQ(std::memcmp(x.target.data(), x.source.data(), length), 0);
    x.srqs[which]->give_back(event->counter);
  }
}

TEST(XrcTarget, ServesWritesReadsAndAtomics) {
  Xrc x;
  const std::uint64_t there = address_of(x.target.data());
  ASSERT_EQ(x.run({.opcode = m::Opcode::rdma_write, .raddr = there, .rkey = x.target_key, .data = {x.here(5000)}}, 0),
            m::Syndrome::none);
  EXPECT_EQ(std::memcmp(x.target.data(), x.source.data(), 5000), 0);
  const std::uint64_t old = 41;
  std::memcpy(x.target.data() + 8, &old, 8);
  ASSERT_EQ(x.run({.opcode = m::Opcode::atomic_fa,
                   .raddr = there + 8,
                   .rkey = x.target_key,
                   .data = {x.here(8)},
                   .atomic = {1, 0}},
                  0),
            m::Syndrome::none);
  std::uint64_t now = 0;
  std::memcpy(&now, x.target.data() + 8, 8);
  EXPECT_EQ(now, 42u);
  EXPECT_EQ(std::memcmp(x.source.data(), &old, 8), 0);
  for (auto& byte : x.source) byte = std::byte{0};
  ASSERT_EQ(x.run({.opcode = m::Opcode::rdma_read, .raddr = there, .rkey = x.target_key, .data = {x.here(5000)}}, 1),
            m::Syndrome::none);
  EXPECT_EQ(std::memcmp(x.target.data(), x.source.data(), 5000), 0);
}

TEST(XrcTarget, RefusesQueuesThatAreNotOfItsDomain) {
  Xrc x;
  const std::uint32_t other_domain = x.pair.b->alloc_xrcd();
  {
    TestSrq other(*x.pair.b, x.pair.pd_b, 16, other_domain, x.places[0]->cqn());
    TestSrq ordinary(*x.pair.b, x.pair.pd_b, 16);
    for (const std::uint32_t srqn : {other.srqn, ordinary.srqn, std::uint32_t{0x1234}}) {
      Wqe wqe{.opcode = m::Opcode::send, .data = {x.here(8)}, .xrc_srqn = srqn};
      x.from->post(wqe);
      const auto event = x.pair.wait(*x.from);
      ASSERT_TRUE(event);
      EXPECT_EQ(event->syndrome, m::Syndrome::remote_invalid_request);
      for (auto* const end : {x.from.get(), x.to.get()}) {
        Engine& engine = end == x.from.get() ? *x.pair.a : *x.pair.b;
        step(engine, end->qpn, QpState::reset).value();
        end->set_back();
      }
      VerbsPair::raise_to(*x.pair.a, x.from->qpn, QpType::xrc_ini,
                          attributes_to(x.pair.port_b->address(), x.to->qpn, 5, 6), QpState::ready);
      VerbsPair::raise_to(*x.pair.b, x.to->qpn, QpType::xrc_tgt,
                          attributes_to(x.pair.port_a->address(), x.from->qpn, 6, 5), QpState::ready);
    }
  }
  x.pair.b->free_xrcd(other_domain).value();
}

TEST(XrcTarget, OutlivesAQueueThatIsDestroyedUnderAMessage) {
  Xrc x;
  x.srqs[0]->post({{address_of(x.target.data()), 8192, x.target_key}});
  x.from->post({.opcode = m::Opcode::send, .data = {x.here(5000)}, .xrc_srqn = x.srqs[0]->srqn});
  x.pair.port_a->on_the_way().resize(2);
  x.pair.b->drive(0);
  x.srqs.erase(x.srqs.begin());
  EXPECT_EQ(x.pair.b->query_qp(x.to->qpn).value().state, QpState::error);
  x.pair.drive(10);
}

TEST(XrcTarget, RefusesQueuePairsWithQueuesItDoesNotHave) {
  VerbsPair pair;
  QpRequest target;
  target.type = QpType::xrc_tgt;
  EXPECT_FALSE(pair.a->create_qp(target)) << "no domain";
  target.xrcd = pair.a->alloc_xrcd();
  target.sq_blocks = 16;
  EXPECT_FALSE(pair.a->create_qp(target)) << "it sends nothing";
  target.sq_blocks = 0;
  const std::uint32_t qpn = pair.a->create_qp(target).value();
  pair.a->destroy_qp(qpn).value();
  pair.a->free_xrcd(target.xrcd).value();
}

}  // namespace
}  // namespace strait::soft::nic::testing
