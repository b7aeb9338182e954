// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: entries linked in memory, taken by many queue pairs, completed under their own names.
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// a sends, b receives from a shared queue; queue pairs of b differ.
struct Shared {
  explicit Shared(std::uint32_t entries = 16, QpType of = QpType::rc, bool says_srqn = true)
      : pair({.type = of}), type(of), says(says_srqn) {
    srq = std::make_unique<TestSrq>(*pair.b, pair.pd_b, entries);
    for (int i = 0; i < 3; ++i) {
      from.push_back(std::make_unique<TestQueue>(*pair.a, pair.pd_a, TestShape{.type = type}));
      to.push_back(std::make_unique<TestQueue>(
          *pair.b, pair.pd_b,
          TestShape{.type = type, .receives = 0, .events = true, .srqn = srq->srqn, .says_srqn = says_srqn}));
      VerbsPair::raise_to(*pair.a, from.back()->qpn, type, attributes_to(pair.port_b->address(), to.back()->qpn, 1, 2),
                          QpState::ready);
      VerbsPair::raise_to(*pair.b, to.back()->qpn, type, attributes_to(pair.port_a->address(), from.back()->qpn, 2, 1),
                          QpState::ready);
    }
    key = pair.reg_b(received);
  }
  std::uint32_t post(std::uint32_t place) {
    return srq->post({{address_of(received.data()) + std::uint64_t{place} * 4096, 4096, key}}).value();
  }
  void send(std::size_t queue, std::vector<std::byte>& bytes) {
    if (type == QpType::ud) {
      Wqe wqe = pair.datagram(bytes);
      wqe.atomic[1] = std::uint64_t{0x80000000 | to[queue]->qpn} << 32;
      from[queue]->post(wqe);
      return;
    }
    from[queue]->post(
        {.opcode = m::Opcode::send,
         .data = {{address_of(bytes.data()), static_cast<std::uint32_t>(bytes.size()), pair.reg_a(bytes)}}});
  }

  VerbsPair pair;
  QpType type;
  bool says;
  std::unique_ptr<TestSrq> srq;
  std::vector<std::byte> received = std::vector<std::byte>(64 * 4096);
  std::uint32_t key = 0;
  std::vector<std::unique_ptr<TestQueue>> from, to;
};

class SharedReceives : public ::testing::TestWithParam<std::pair<QpType, bool>> {};

TEST_P(SharedReceives, AreTakenInOrderByWhoeverNeedsOne) {
  const auto [type, says_srqn] = GetParam();
  Shared s(8, type, says_srqn);
  std::vector<std::uint32_t> place_of(8);
  std::uint32_t place = 0;
  const auto post = [&] {
    const std::uint32_t entry = s.post(place % 64);
    place_of[entry] = place++ % 64;
  };
  for (int i = 0; i < 7; ++i) post();
  EXPECT_FALSE(s.srq->post({{1, 1, 1}})) << "one entry always stays behind";
  std::uint32_t expected = 0;
  for (unsigned round = 0; round < 300; ++round) {
    const std::size_t queue = round * 7 % 3;
    std::vector<std::byte> bytes = pattern(type == QpType::ud ? 100 : 3000, round);
    s.send(queue, bytes);
    const auto event = s.pair.wait(*s.to[queue]);
    ASSERT_TRUE(event);
    ASSERT_TRUE(s.pair.wait(*s.from[queue]));
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
    EXPECT_EQ(event->srqn_uidx, says_srqn ? s.srq->srqn : 7u);
    EXPECT_EQ(event->qpn, s.to[queue]->qpn);
    ASSERT_LT(event->counter, 8);
    EXPECT_EQ(place_of[event->counter], expected++ % 64) << "oldest first";
    const std::size_t skip = type == QpType::ud ? 40 : 0;
    EXPECT_EQ(std::memcmp(s.received.data() + place_of[event->counter] * 4096u + skip, bytes.data(), bytes.size()), 0);
    s.srq->give_back(event->counter);
    post();
  }
}
INSTANTIATE_TEST_SUITE_P(Over, SharedReceives,
                         ::testing::Values(std::pair{QpType::rc, true}, std::pair{QpType::rc, false},
                                           std::pair{QpType::ud, true}),
                         [](const auto& each) {
                           return fmt::format("{}_{}", type_name(each.param.first),
                                              each.param.second ? "version_0" : "version_1");
                         });

TEST(SharedReceive, EmptyMeansNotReady) {
  Shared s;
  std::vector<std::byte> bytes = pattern(100, 1);
  s.send(0, bytes);
  s.pair.drive(100);
  EXPECT_FALSE(s.to[0]->poll());
  s.post(0);
  EXPECT_TRUE(s.pair.wait(*s.to[0]));
}

TEST(SharedReceive, WriteWithImmediateTakesAnEntry) {
  Shared s;
  const std::uint32_t entry = s.post(0);
  std::vector<std::byte> target(8);
  Wqe wqe{.opcode = m::Opcode::rdma_write_imm, .raddr = address_of(target.data()), .rkey = s.pair.reg_b(target)};
  wqe.inlined = pattern(8, 1);
  wqe.imm = 0x12345678;
  s.from[1]->post(wqe);
  const auto event = s.pair.wait(*s.to[1]);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(event->counter, entry);
  EXPECT_EQ(event->srqn_uidx, s.srq->srqn);
}

TEST(SharedReceive, TellsWhenFewAreLeft) {
  Shared s;
  for (std::uint32_t i = 0; i < 4; ++i) s.post(i);
  EXPECT_FALSE(s.pair.b->arm_srq(s.srq->srqn, 16));
  s.pair.b->arm_srq(s.srq->srqn, 3).value();
  EXPECT_EQ(s.pair.b->srq_limit(s.srq->srqn).value(), 3u);
  std::vector<std::byte> bytes = pattern(8, 1);
  const auto message = [&] {
    s.send(0, bytes);
    ASSERT_TRUE(s.pair.wait(*s.to[0]));
  };
  message();
  EXPECT_EQ(s.pair.heard_b.count(AsyncKind::srq_limit_reached), 0) << "three are left";
  message();
  ASSERT_EQ(s.pair.heard_b.count(AsyncKind::srq_limit_reached), 1);
  EXPECT_EQ(s.pair.heard_b.async.back().number, s.srq->srqn);
  EXPECT_EQ(s.pair.heard_b.async.back().user, 99u);
  EXPECT_EQ(s.pair.b->srq_limit(s.srq->srqn).value(), 0u);
  message();
  EXPECT_EQ(s.pair.heard_b.count(AsyncKind::srq_limit_reached), 1) << "once for each time it is armed";
  s.pair.b->arm_srq(s.srq->srqn, 2).value();
  EXPECT_EQ(s.pair.heard_b.count(AsyncKind::srq_limit_reached), 2) << "one is left already";
}

// Only what it had taken comes back; the others' receives stay where they are.
TEST(SharedReceive, AQueuePairInErrorGivesBackWhatItHadTaken) {
  Shared s;
  const std::uint32_t first = s.post(0);
  s.post(1);
  std::vector<std::byte> bytes = pattern(3000, 1);  // three packets
  s.send(0, bytes);
  auto& way = s.pair.port_a->on_the_way();
  ASSERT_EQ(way.size(), 3u);
  way.resize(1);
  s.pair.b->drive(0);
  step(*s.pair.b, s.to[0]->qpn, QpState::error).value();
  const auto event = s.to[0]->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  EXPECT_EQ(event->counter, first);
  EXPECT_EQ(event->srqn_uidx, s.srq->srqn);
  EXPECT_FALSE(s.to[0]->poll());
  EXPECT_EQ(s.pair.heard_b.count(AsyncKind::last_wqe_reached), 1);
  s.send(1, bytes);
  const auto other = s.pair.wait(*s.to[1]);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->syndrome, m::Syndrome::none);
}

TEST(SharedReceive, AnEntryTooSmallFailsTheQueuePairThatTookIt) {
  Shared s;
  const std::uint32_t entry = s.srq->post({{address_of(s.received.data()), 10, s.key}}).value();
  s.post(1);
  std::vector<std::byte> bytes = pattern(100, 1);
  s.send(0, bytes);
  const auto event = s.pair.wait(*s.to[0]);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_length);
  EXPECT_EQ(event->counter, entry);
  s.send(1, bytes);
  EXPECT_TRUE(s.pair.wait(*s.to[1]));
}

TEST(SharedReceive, ABrokenListIsAnErrorOfTheQueueAndNothingElse) {
  Shared s;
  s.post(0);
  s.srq->link(0, 0xffff);
  std::vector<std::byte> bytes = pattern(100, 1);
  s.send(0, bytes);
  const auto event = s.pair.wait(*s.from[0]);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_operation);
  EXPECT_EQ(s.pair.heard_b.count(AsyncKind::srq_error), 1);
  s.pair.drive(10);
}

TEST(SharedReceive, CannotBeDestroyedWhileInUse) {
  Shared s;
  EXPECT_EQ(s.pair.b->destroy_srq(s.srq->srqn).error().code, Code::again);
  EXPECT_FALSE(s.pair.b->destroy_srq(0x7777));
  SrqRequest bad;
  bad.pd = s.pair.pd_b;
  bad.entries = 3;
  EXPECT_FALSE(s.pair.b->create_srq(bad));
}

}  // namespace
}  // namespace strait::soft::nic::testing
