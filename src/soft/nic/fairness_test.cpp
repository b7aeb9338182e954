// SPDX-License-Identifier: Apache-2.0
// Many queue pairs on one port: a long stream and many that ask for little share it. Counted in packets of the stream,
// not in time.
#include <climits>
#include <tuple>

#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kStreamBytes = 1 << 20;
constexpr std::uint32_t kStreamPackets = kStreamBytes / 1024;
constexpr int kStreamMessages = 8;

// Writes leave when they are posted, or when there is room; the answers to reads leave in turns.
class Fairness : public ::testing::TestWithParam<std::tuple<std::size_t, m::Opcode>> {};
INSTANTIATE_TEST_SUITE_P(Beside, Fairness,
                         ::testing::Combine(::testing::Values(std::size_t{1}, std::size_t{32}),
                                            ::testing::Values(m::Opcode::rdma_write, m::Opcode::rdma_read)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", std::get<0>(each.param),
                                              std::get<1>(each.param) == m::Opcode::rdma_write ? "writes" : "reads");
                         });

TEST_P(Fairness, AStreamAndSmallOnesShareThePort) {
  const auto [count, opcode] = GetParam();
  Pair pair(PairConfig{Over::packets});
  std::vector<std::byte> from = pattern(kStreamBytes, 1), to(kStreamBytes);
  std::vector<std::byte> small_from = pattern(64, 2), small_to(64);
  const Wqe large{.opcode = opcode,
                  .raddr = address_of(to.data()),
                  .rkey = pair.reg_b(to.data(), to.size()),
                  .data = {{address_of(from.data()), kStreamBytes, pair.reg_a(from.data(), from.size())}}};
  const Wqe little{.opcode = opcode,
                   .raddr = address_of(small_to.data()),
                   .rkey = pair.reg_b(small_to.data(), small_to.size()),
                   .data = {{address_of(small_from.data()), 64, pair.reg_a(small_from.data(), small_from.size())}}};
  const PacketState& stream = *EngineTestPeer::queue_pair(*pair.a, pair.qa->qpn).packets;
  const std::uint32_t first = stream.una;
  const auto moved = [&] { return static_cast<std::uint32_t>(r::psn_diff(stream.una, first)); };
  struct Small {
    Pair::More queues;
    std::uint32_t since = 0;    // packets of the stream that were through when it was posted
    std::uint32_t longest = 0;  // that it had to wait for
    int done = 0;
  };
  std::vector<Small> smalls;
  for (std::size_t i = 0; i < count; ++i) smalls.push_back({pair.more(), 0, 0, 0});
  for (int i = 0; i < kStreamMessages; ++i) pair.qa->post(large);
  for (Small& one : smalls) one.queues.on_a->post(little);
  int left = kStreamMessages;
  for (const auto deadline = sys::Deadline::after_ns(30'000'000'000); left != 0;) {
    ASSERT_FALSE(deadline.passed()) << left << " messages of the stream are left";
    pair.drive(1);
    for (; const auto event = pair.qa->poll(); --left) ASSERT_EQ(event->syndrome, m::Syndrome::none);
    for (Small& one : smalls) {
      const auto event = one.queues.on_a->poll();
      if (!event) continue;
      ASSERT_EQ(event->syndrome, m::Syndrome::none);
      ++one.done;
      one.longest = std::max(one.longest, moved() - one.since);
      one.since = moved();
      one.queues.on_a->post(little);
    }
  }
  int fewest = INT_MAX, most = 0;
  for (const Small& one : smalls) {
    fewest = std::min(fewest, one.done);
    most = std::max(most, one.done);
    EXPECT_LE(one.longest, kStreamPackets) << "kept waiting for more than a message of the stream";
  }
  // Each has a turn for every few bursts of the stream, and no fewer than others have.
  EXPECT_GE(fewest, kStreamMessages);
  EXPECT_LE(most, 2 * fewest);
  // And the stream is not kept waiting: for each packet of it, nobody has had more than one.
  EXPECT_LE(most, static_cast<int>(kStreamMessages * kStreamPackets));
}

}  // namespace
}  // namespace strait::soft::nic::testing
