// SPDX-License-Identifier: Apache-2.0
// Who is told when: armed completion queues, solicited events, queues that grow, and errors nobody asked about.
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

struct EventPair : VerbsPair {
  explicit EventPair(TestShape shape = {.events = true}) : VerbsPair(shape) {
    raise_both();
    key_b = reg_b(received);
    for (int i = 0; i < 8; ++i) post_receive();
  }
  void post_receive() { qb->post_receive({{address_of(received.data()), 64, key_b}}); }
  // A message from a to b, which has arrived when this returns.
  void message(bool solicited = false) {
    Wqe wqe{.opcode = m::Opcode::send};
    wqe.inlined = pattern(8, 1);
    if (solicited) wqe.flags |= m::kSolicited;
    qa->post(wqe);
    ASSERT_TRUE(wait(*qa));
  }
  [[nodiscard]] std::size_t events() { return heard_b.completions.size(); }

  std::vector<std::byte> received = std::vector<std::byte>(64);
  std::uint32_t key_b = 0;
};

TEST(CompletionEvent, ComesOnceForEachArm) {
  EventPair pair;
  EXPECT_EQ(pair.qb->arm_word(), 0xffffffffu);
  pair.message();
  EXPECT_EQ(pair.events(), 0u) << "not armed";
  ASSERT_TRUE(pair.qb->poll());
  pair.qb->arm_cq();
  pair.drive(8);
  EXPECT_EQ(pair.events(), 0u) << "nothing new";
  pair.message();
  EXPECT_EQ(pair.events(), 1u);
  EXPECT_EQ(pair.heard_b.completions[0], std::pair(pair.qb->cqn(), std::uint64_t{88}));
  EXPECT_EQ(pair.qb->arm_word(), 0xffffffffu);
  pair.message();
  EXPECT_EQ(pair.events(), 1u) << "not armed again";
}

// The very first arm is the value 0.
TEST(CompletionEvent, ComesForTheFirstArm) {
  EventPair pair;
  pair.qb->arm_cq();
  EXPECT_EQ(pair.qb->arm_word(), 0u);
  pair.message();
  EXPECT_EQ(pair.events(), 1u);
}

TEST(CompletionEvent, ComesAtOnceForWhatCameBeforeTheArm) {
  EventPair pair;
  pair.message();
  pair.qb->arm_cq();  // with the consumer index before it
  EXPECT_FALSE(pair.b->arm()) << "there is work: an event";
  pair.drive(2);
  EXPECT_EQ(pair.events(), 1u);
  ASSERT_TRUE(pair.qb->poll());
}

// Programs arm before they poll: what an event told of is no news, even when it was not taken yet.
TEST(CompletionEvent, DoesNotComeTwiceForOneCompletion) {
  EventPair pair;
  pair.qb->arm_cq();
  pair.message();
  ASSERT_EQ(pair.events(), 1u);
  pair.qb->arm_cq();
  pair.drive(8);
  EXPECT_EQ(pair.events(), 1u);
  ASSERT_TRUE(pair.qb->poll());
  pair.message();
  EXPECT_EQ(pair.events(), 2u);
}

TEST(CompletionEvent, SolicitedOnlyWaitsForASolicitedOne) {
  EventPair pair;
  pair.qb->arm_cq(true);
  pair.message();
  pair.message();
  EXPECT_EQ(pair.events(), 0u);
  pair.message(true);
  EXPECT_EQ(pair.events(), 1u);
  std::optional<Event> last;
  for (int i = 0; i < 3; ++i) last = pair.qb->poll();
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->solicited);
  pair.qb->arm_cq(true);
  step(*pair.b, pair.qb->qpn, QpState::error).value();  // errors count as solicited
  EXPECT_EQ(pair.events(), 2u);
}

TEST(CompletionEvent, ComesForSendsToo) {
  EventPair pair;
  pair.qa->arm_cq();
  pair.message();
  EXPECT_EQ(pair.heard_a.completions.size(), 1u);
}

TEST(CompletionEvent, OneForEachMessageOverManyRounds) {
  EventPair pair({.cqes = 8, .events = true});
  for (std::size_t i = 0; i < 1000; ++i) {
    pair.qb->arm_cq();
    pair.message();
    ASSERT_EQ(pair.events(), i + 1);
    ASSERT_TRUE(pair.qb->poll());
    pair.post_receive();
  }
}

TEST(ResizeCq, NothingIsLostAndNothingComesTwice) {
  for (const auto& [cqes, bytes] : {std::pair{16u, 64u}, std::pair{256u, 64u}, std::pair{64u, 128u}}) {
    for (const int before : {0, 1, 5, 8}) {
      EventPair pair({.cqes = 32, .events = true});
      for (int lap = 0; lap < 30; ++lap) {  // the ring's end is somewhere
        pair.message();
        ASSERT_TRUE(pair.qb->poll());
        pair.post_receive();
      }
      for (int i = 0; i < before; ++i) pair.message();
      pair.qb->resize_cq(cqes, bytes).value();
      for (std::uint16_t i = 0; i < before; ++i) {
        const auto event = pair.qb->poll();
        ASSERT_TRUE(event);
        EXPECT_EQ(event->counter, 30 + i);
        pair.post_receive();
      }
      EXPECT_FALSE(pair.qb->poll());
      for (std::uint16_t i = 0; i < 600; ++i) {
        pair.message();
        const auto event = pair.qb->poll();
        ASSERT_TRUE(event);
        EXPECT_EQ(event->counter, 30 + before + i);
        pair.post_receive();
      }
    }
  }
}

TEST(ResizeCq, RefusesARingTooSmallForWhatWaits) {
  EventPair pair({.cqes = 32, .events = true});
  for (int i = 0; i < 6; ++i) pair.message();
  EXPECT_FALSE(pair.qb->resize_cq(4, 64));
  EXPECT_FALSE(pair.qb->resize_cq(24, 64));
  EXPECT_FALSE(pair.b->resize_cq(0x999, nullptr, 32, 64));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(pair.qb->poll());
}

TEST(AsyncEvents, ACompletionQueueThatOverrunsSaysSoOnce) {
  EventPair pair({.cqes = 4, .events = true});
  for (int i = 0; i < 6; ++i) {
    Wqe wqe{.opcode = m::Opcode::send, .flags = 0};
    wqe.inlined = pattern(8, 1);
    pair.qa->post(wqe);
  }
  pair.drive(16);
  ASSERT_EQ(pair.heard_b.count(AsyncKind::cq_error), 1);
  EXPECT_EQ(pair.heard_b.async[0].number, pair.qb->cqn());
  EXPECT_EQ(pair.heard_b.async[0].user, 88u);
}

// The owner of the memory has no completion that could tell it.
TEST(AsyncEvents, TheOwnerHearsOfRequestsItRefused) {
  for (const bool misaligned : {false, true}) {
    EventPair pair;
    std::vector<std::byte> here(8), there(64);
    const std::uint32_t lkey = pair.reg_a(here), rkey = pair.reg_b(there);
    pair.qa->post({.opcode = m::Opcode::atomic_fa,
                   .raddr = misaligned ? (address_of(there.data()) | 1) : address_of(there.data()) + 4096,
                   .rkey = rkey,
                   .data = {{address_of(here.data()), 8, lkey}},
                   .atomic = {1, 0}});
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, misaligned ? m::Syndrome::remote_invalid_request : m::Syndrome::remote_access);
    EXPECT_EQ(pair.heard_b.count(misaligned ? AsyncKind::qp_request_error : AsyncKind::qp_access_error), 1);
    EXPECT_EQ(pair.heard_a.async.size(), 0u) << "its own completion told the requester";
  }
}

}  // namespace
}  // namespace strait::soft::nic::testing
