// SPDX-License-Identifier: Apache-2.0
// The smallest operations, which take a way of their own through the engine: what they bring about, and that whatever
// is unusual about one ends as it would for a larger one.
#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kBytes = 4096;

struct Small {
  explicit Small(const PairConfig& config = {}) : pair(config) {
    key_a = pair.reg_a(at_a.data(), at_a.size());
    key_b = pair.reg_b(at_b.data(), at_b.size());
  }
  [[nodiscard]] Wqe send(std::size_t length, unsigned seed = 1) const {
    return {.opcode = m::Opcode::send, .inlined = pattern(length, seed)};
  }
  [[nodiscard]] Wqe write(std::size_t length) const {
    return {.opcode = m::Opcode::rdma_write,
            .raddr = address_of(at_b.data()),
            .rkey = key_b,
            .inlined = pattern(length, 1)};
  }
  [[nodiscard]] Wqe read(std::uint32_t length, std::uint64_t from = 0) const {
    return {.opcode = m::Opcode::rdma_read,
            .raddr = address_of(at_b.data()) + from,
            .rkey = key_b,
            .data = {{address_of(at_a.data()), length, key_a}}};
  }
  void receive(std::vector<std::uint32_t> lengths) {
    std::vector<Seg> pieces;
    std::uint64_t at = address_of(at_b.data());
    for (const std::uint32_t length : lengths) {
      pieces.push_back({at, length, key_b});
      at += length;
    }
    pair.qb->post_receive(pieces);
  }
  [[nodiscard]] m::Syndrome outcome(TestQueue& queue) {
    const auto event = pair.wait(queue);
    EXPECT_TRUE(event);
    return event ? event->syndrome : m::Syndrome::remote_aborted;
  }

  Pair pair;
  std::vector<std::byte> at_a = std::vector<std::byte>(kBytes), at_b = pattern(kBytes, 9);
  std::uint32_t key_a = 0, key_b = 0;
};

TEST(SmallSend, OfEveryLengthFillsItsReceiveAndSaysHowLong) {
  Small s;
  for (std::uint32_t length = 1; length <= 20; ++length) {
    for (const std::vector<std::uint32_t>& room :
         {std::vector<std::uint32_t>{length}, {64}, {1, 63}, {length, 8, 8, 8}}) {
      const unsigned seed = length * 8 + static_cast<unsigned>(room.size());
      s.receive(room);
      s.pair.qa->post(s.send(length, seed));
      const auto arrived = s.pair.wait(*s.pair.qb);
      ASSERT_TRUE(arrived);
      EXPECT_EQ(arrived->opcode, m::CqeOpcode::responder_send);
      EXPECT_EQ(arrived->bytes, length);
      EXPECT_EQ(arrived->qpn, s.pair.qb->qpn);
      EXPECT_EQ(arrived->counter, static_cast<std::uint16_t>(s.pair.qb->ri - 1));
      EXPECT_EQ(arrived->srqn_uidx, 7u);
      EXPECT_FALSE(arrived->solicited);
      EXPECT_EQ(std::memcmp(s.at_b.data(), pattern(length, seed).data(), length), 0);
      EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::none);
    }
  }
}

TEST(SmallSend, SolicitedSaysSo) {
  Small s;
  s.receive({64});
  Wqe wqe = s.send(8);
  wqe.flags |= m::kSolicited;
  s.pair.qa->post(wqe);
  const auto arrived = s.pair.wait(*s.pair.qb);
  ASSERT_TRUE(arrived);
  EXPECT_TRUE(arrived->solicited);
}

TEST(SmallSend, WithoutAReceiveWaitsForOne) {
  Small s;
  s.pair.qa->post(s.send(8));
  s.pair.drive(100);
  EXPECT_FALSE(s.pair.qb->poll());
  s.receive({64});
  EXPECT_EQ(s.outcome(*s.pair.qb), m::Syndrome::none);
  EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::none);
  EXPECT_GT(s.pair.b->counts().rnr_sent, 0u);
}

TEST(SmallSend, IntoMemoryThatIsNoLongerRegisteredFailsOnBothSides) {
  Small s;
  s.receive({64});
  ASSERT_TRUE(s.pair.b->deregister_memory(s.key_b));
  s.pair.qa->post(s.send(8));
  EXPECT_EQ(s.outcome(*s.pair.qb), m::Syndrome::local_protection);
  EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::remote_operation);
  EXPECT_EQ(s.at_b, pattern(kBytes, 9));
}

TEST(SmallSend, LongerThanItsReceiveFailsOnBothSides) {
  Small s;
  s.receive({7});
  s.pair.qa->post(s.send(8));
  EXPECT_EQ(s.outcome(*s.pair.qb), m::Syndrome::local_length);
  EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::remote_invalid_request);
  EXPECT_EQ(s.at_b, pattern(kBytes, 9));
}

TEST(SmallRead, OfEveryLengthBringsTheBytesAndNoMore) {
  Small s;
  for (std::uint32_t length = 1; length <= 20; ++length) {
    std::fill(s.at_a.begin(), s.at_a.end(), std::byte{0x5a});
    s.pair.qa->post(s.read(length, length));
    const auto event = s.pair.wait(*s.pair.qa);
    ASSERT_TRUE(event && event->syndrome == m::Syndrome::none);
    EXPECT_EQ(event->bytes, length);
    EXPECT_EQ(event->send_opcode, m::Opcode::rdma_read);
    EXPECT_EQ(std::memcmp(s.at_a.data(), s.at_b.data() + length, length), 0);
    EXPECT_EQ(s.at_a[length], std::byte{0x5a});
  }
}

// Completions come in the order of the work requests, whatever each of them waits for.
TEST(SmallRead, BetweenWritesKeepsItsPlace) {
  Small s;
  for (int i = 0; i < 8; ++i) {
    s.pair.qa->post(s.write(8));
    s.pair.qa->post(s.read(8));
  }
  for (std::uint16_t i = 0; i < 16; ++i) {
    const auto event = s.pair.wait(*s.pair.qa);
    ASSERT_TRUE(event && event->syndrome == m::Syndrome::none);
    EXPECT_EQ(event->counter, i);
    EXPECT_EQ(event->send_opcode, i % 2 == 0 ? m::Opcode::rdma_write : m::Opcode::rdma_read);
  }
  EXPECT_EQ(std::memcmp(s.at_a.data(), pattern(8, 1).data(), 8), 0);
}

TEST(SmallRead, OfAnotherPlaceThanWasGrantedIsRefused) {
  Small s;
  s.pair.qa->post(s.read(8, kBytes - 7));
  EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::remote_access);
  EXPECT_EQ(s.at_a, std::vector<std::byte>(kBytes));
}

TEST(SmallRead, IntoMemoryThatIsGoneWhenTheAnswerComesFails) {
  Small s;
  s.pair.qa->post(s.read(8));
  for (int i = 0; i < 4; ++i) s.pair.b->drive(0);  // the answer is on its way
  ASSERT_TRUE(s.pair.a->rereg_memory(s.key_a, kReregAccess, [] {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.fd = -1;
    request.access = STRAIT_NIC_REMOTE_READ;
    return request;
  }()));
  EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::local_protection);
  EXPECT_EQ(s.at_a, std::vector<std::byte>(kBytes));
}

// The plan of faults holds for the short way too.
TEST(Small, WhatIsToFailFails) {
  for (const int which : {0, 1, 2}) {
    PairConfig config;
    config.faults = FaultPlan::parse("error=100%:0x13").value();
    Small s(config);
    s.receive({64});
    s.pair.qa->post(which == 0 ? s.write(8) : which == 1 ? s.send(8) : s.read(8));
    EXPECT_EQ(s.outcome(*s.pair.qa), m::Syndrome::remote_access) << which;
    EXPECT_FALSE(s.pair.qb->poll());
    EXPECT_EQ(s.at_b, pattern(kBytes, 9));
  }
}

}  // namespace
}  // namespace strait::soft::nic::testing
