// SPDX-License-Identifier: Apache-2.0
// The resend timer of packets: it learns how long a peer takes.
#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// One write to a peer that does nothing for a while. How many packets were sent again?
std::uint64_t write_slowly(Pair& pair, const Wqe& wqe, std::int64_t slowness_ns) {
  const std::uint64_t before = EngineTestPeer::resent(*pair.a);
  pair.qa->post(wqe);
  for (const auto until = sys::Deadline::after_ns(slowness_ns); !until.passed();) pair.a->drive(0);
  const auto event = pair.wait(*pair.qa);
  EXPECT_TRUE(event && event->syndrome == m::Syndrome::none);
  return EngineTestPeer::resent(*pair.a) - before;
}

TEST(Resend, ASlowPeerIsNotSentEverythingTwice) {
  Pair pair(PairConfig{Over::packets});
  std::vector<std::byte> from(8), to(8);
  const Wqe wqe{.opcode = m::Opcode::rdma_write,
                .raddr = address_of(to.data()),
                .rkey = pair.reg_b(to.data(), 8),
                .data = {{address_of(from.data()), 8, pair.reg_a(from.data(), 8)}}};
  constexpr std::int64_t kSlow = 5'000'000;
  for (int i = 0; i < 6; ++i) (void)write_slowly(pair, wqe, kSlow);
  int twice = 0;
  for (int i = 0; i < 12; ++i) twice += write_slowly(pair, wqe, kSlow) != 0 ? 1 : 0;
  EXPECT_LE(twice, 4) << "of 12; a busy machine makes a peer look slower still now and then";
}

TEST(Resend, WhatIsLostIsSentAgainSoon) {
  Pair pair(PairConfig{Over::packets});
  std::vector<std::byte> from(8), to(8);
  const Wqe wqe{.opcode = m::Opcode::rdma_write,
                .raddr = address_of(to.data()),
                .rkey = pair.reg_b(to.data(), 8),
                .data = {{address_of(from.data()), 8, pair.reg_a(from.data(), 8)}}};
  for (int i = 0; i < 20; ++i) (void)write_slowly(pair, wqe, 0);
  // The shortest of a few: one may find the machine busy.
  std::int64_t shortest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t begin = sys::now_ns();
    pair.qa->post(wqe);
    pair.port_a->on_the_way().clear();
    ASSERT_TRUE(pair.wait(*pair.qa));
    shortest = std::min(shortest, sys::now_ns() - begin);
  }
  EXPECT_LT(shortest, 20'000'000);
}

}  // namespace
}  // namespace strait::soft::nic::testing
