// SPDX-License-Identifier: Apache-2.0
// A device that is removed under the program: what was posted comes back, and nothing new is to be had.
#include "soft/nic/testing.hpp"
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

struct Left : EventSink {
  void on_completion(std::uint32_t, std::uint64_t) override {}
  void on_async(const AsyncEvent& event) override { fatal += event.kind == AsyncKind::device_fatal ? 1 : 0; }
  int fatal = 0;
};

class Gone : public ::testing::TestWithParam<Over> {
 protected:
  static PairConfig config() {
    PairConfig config(GetParam());
    config.faults = FaultPlan::parse("gone=3").value();
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Gone, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) {
                           return each.param == Over::one_copy           ? "one_copy"
                                  : each.param == Over::through_the_ring ? "through_the_ring"
                                                                         : "packets";
                         });

TEST_P(Gone, EverythingPostedIsFlushedAndNothingNewIsMade) {
  Pair pair(config());
  Left sink;
  pair.a->set_event_sink(&sink);
  std::vector<std::byte> from = pattern(12 << 10, 1);
  std::vector<std::byte> to(from.size());
  const std::uint32_t lkey = pair.reg_a(from.data(), from.size());
  const std::uint32_t rkey = pair.reg_b(to.data(), to.size());
  const Wqe write{.opcode = m::Opcode::rdma_write,
                  .raddr = address_of(to.data()),
                  .rkey = rkey,
                  .data = {{address_of(from.data()), static_cast<std::uint32_t>(from.size()), lkey}}};
  pair.qa->post_receive({{address_of(from.data()), 64, lkey}});
  // The other side never runs: both are under way when the third removes the device.
  for (int i = 0; i < 3; ++i) pair.qa->post(write);
  pair.a->drive(0);
  EXPECT_EQ(sink.fatal, 1);
  for (int i = 0; i < 4; ++i) {  // three requests and the receive, in whatever order
    const auto event = pair.qa->poll();
    ASSERT_TRUE(event) << i;
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  }
  pair.qa->post(write);
  pair.a->drive(0);
  const auto after = pair.qa->poll();
  ASSERT_TRUE(after) << "who posts to it gets it back";
  EXPECT_EQ(after->syndrome, m::Syndrome::flushed);
  EXPECT_EQ(sink.fatal, 1) << "said once";

  strait_nic_mr_request again{};
  again.struct_size = sizeof again;
  again.pd = pair.pd_a;
  again.fd = -1;
  again.address = address_of(from.data());
  again.length_bytes = from.size();
  const auto refused = pair.a->register_memory(again);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::gone);
  EXPECT_EQ(refused.error().text, "the NIC strait0 is no longer there");
  EXPECT_FALSE(refused.error().remedy.empty());
  EXPECT_TRUE(pair.a->arm()) << "there is nothing to stay awake for";
  EXPECT_TRUE(pair.a->deregister_memory(lkey)) << "what is there can be given back";
  pair.a->set_event_sink(nullptr);
}

// To the other side it is silence.
TEST_P(Gone, ThePeerHearsNothingMore) {
  Pair pair(config(), 64, 50'000'000);
  std::vector<std::byte> from = pattern(64, 1);
  std::vector<std::byte> to(from.size());
  const std::uint32_t a_key = pair.reg_a(to.data(), to.size());
  const std::uint32_t b_key = pair.reg_b(from.data(), from.size());
  for (int i = 0; i < 3; ++i) pair.qa->post(Wqe{});
  pair.a->drive(0);
  pair.qb->post({.opcode = m::Opcode::rdma_write,
                 .raddr = address_of(to.data()),
                 .rkey = a_key,
                 .data = {{address_of(from.data()), 64, b_key}}});
  const sys::Deadline deadline = sys::Deadline::after_ns(30'000'000'000);
  std::optional<Event> event;
  while (!event && !deadline.passed()) {
    pair.a->drive(0);
    pair.b->drive(0);
    event = pair.qb->poll();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_EQ(to, std::vector<std::byte>(from.size())) << "nothing arrives at a device that is not there";
}

}  // namespace
}  // namespace strait::soft::nic::testing
