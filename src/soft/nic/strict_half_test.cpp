// SPDX-License-Identifier: Apache-2.0
// The strict NIC and puts that stop half-way: their requester is gone, and the queue pair they were for hears nothing
// more and is told nothing. Others go on using the memory, and the program gets it back.
#include <atomic>
#include <mutex>

#include "soft/nic/strict_testing.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kWhole = 4 << 20;  // of which only a part comes in one pass

class StrictHalf : public StrictNic {
 protected:
  static constexpr std::int64_t kNever = 3'600'000'000'000;
  void SetUp() override { begin(kNever); }
  void begin(std::int64_t silence_ns) {
    pair.reset();
    PairConfig config = strict_over(GetParam(), report);
    config.strict->silence_ns = silence_ns;
    pair.emplace(config);
    source.fill(1);
    large.fill(2);
    std::fill_n(target.at, kWhole, std::byte{0});
    lkey = pair->reg_a(source.at, source.size);
    large_key = pair->reg_a(large.at, kWhole);
    rkey = pair->reg_b(target.at, kWhole);
  }
  [[nodiscard]] Wqe whole() const {
    return {.opcode = m::Opcode::rdma_write,
            .raddr = address_of(target.at),
            .rkey = rkey,
            .data = {{address_of(large.at), kWhole, large_key}}};
  }
  void half_a_put() {
    pair->qa->post(whole());
    for (int i = 0; i < 1000 && readable(target.at); ++i) pair->drive(1);
    for (int i = 0; i < 1000; ++i) pair->b->drive(0);  // had all of it come, it would have landed
    ASSERT_FALSE(readable(target.at));
  }
  void half_a_put_then_silence() {
    pair->qa->post(whole());
    for (int i = 0; i < 1000 && readable(target.at); ++i) pair->drive(1);
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    while (!readable(target.at) && !deadline.passed()) pair->b->drive(0);
    ASSERT_TRUE(readable(target.at));
  }
  void half_a_put_and_nobody_there() {
    half_a_put();
    pair->qa.reset();
    near.emplace(*pair->a, pair->pd_a);
    far.emplace(*pair->b, pair->pd_b);
    connect_too(*near, *far);
  }
  void TearDown() override {
    near.reset();
    far.reset();
  }
  // In the middle of what is guarded, beginning and ending in no whole page.
  [[nodiscard]] std::byte* inside() const { return target.at + 3 * 4096 + 100; }
  [[nodiscard]] Wqe to_inside(m::Opcode opcode, std::uint32_t n) const {
    return {.opcode = opcode, .raddr = address_of(inside()), .rkey = rkey, .data = {{address_of(source.at), n, lkey}}};
  }
  [[nodiscard]] bool inside_holds_source(std::uint32_t n) const {
    return std::equal(source.at, source.at + n, inside());
  }

  StrictBuffer large{kWhole}, target{kWhole};
  std::uint32_t large_key = 0;
  std::optional<TestQueue> near, far;
};

INSTANTIATE_TEST_SUITE_P(Over, StrictHalf, ::testing::Values(Over::through_the_ring, Over::packets),
                         [](const auto& each) { return each.param == Over::packets ? "packets" : "through_the_ring"; });

// ---- Others go on ---------------------------------------------------------------------------------------------------

TEST_P(StrictHalf, AnotherQueueWritesThere) {
  for (const std::uint32_t n : {8u, 64u, 100u, 4000u, 5000u, 40'000u}) {
    TearDown();
    begin(kNever);
    half_a_put_and_nobody_there();
    near->post(to_inside(m::Opcode::rdma_write, n));
    expect_done(*near);
    EXPECT_TRUE(inside_holds_source(n)) << n;
    expect_findings({});
  }
}

// As in a program: a thread of the NIC's own, where signals are blocked.
TEST_P(StrictHalf, AThreadOfTheNicWritesThere) {
  half_a_put_and_nobody_there();
  std::atomic<bool> stop{false};
  std::mutex turn;  // the wire between the two is for one thread at a time
  std::thread engine = sys::start_quiet_thread([&] {
                         while (!stop) {
                           const std::lock_guard lock(turn);
                           pair->b->drive(0);
                         }
                       }).value();
  {
    const std::lock_guard lock(turn);
    near->post(to_inside(m::Opcode::rdma_write, 100));
  }
  std::optional<Event> event;  // nobody else moves b
  const auto deadline = sys::Deadline::after_ns(30'000'000'000);
  while (!event && !deadline.passed()) {
    const std::lock_guard lock(turn);
    pair->a->drive(0);
    event = near->poll();
  }
  stop = true;
  engine.join();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_TRUE(inside_holds_source(100));
  expect_findings({});
}

TEST_P(StrictHalf, AMessageGoesThere) {
  half_a_put_and_nobody_there();
  far->post_receive({{address_of(inside()), 1000, rkey}});
  near->post({.opcode = m::Opcode::send, .data = {{address_of(source.at), 1000, lkey}}});
  expect_done(*near);
  expect_done(*far);
  EXPECT_TRUE(inside_holds_source(1000));
  expect_findings({});
}

TEST_P(StrictHalf, APeerReadsThere) {
  half_a_put_and_nobody_there();
  near->post(to_inside(m::Opcode::rdma_read, 1000));
  expect_done(*near);
  EXPECT_EQ(std::count(source.at, source.at + 1000, std::byte{0}), 1000);
  expect_findings({});
}

TEST_P(StrictHalf, APeerCountsThere) {
  half_a_put_and_nobody_there();
  Wqe add = to_inside(m::Opcode::atomic_fa, 8);
  add.raddr = address_of(target.at + 4096);
  add.atomic = {5, 0};
  near->post(add);
  expect_done(*near);
  std::uint64_t sum = 0;
  std::memcpy(&sum, target.at + 4096, 8);
  EXPECT_EQ(sum, 5u);
  expect_findings({});
}

// The other NIC of the process knows nothing of the guard, and the memory is registered with both.
TEST_P(StrictHalf, AnotherNicOfTheProcessWritesThere) {
  half_a_put_and_nobody_there();
  const std::uint32_t same = pair->reg_a(target.at, kWhole);
  StrictBuffer from;
  from.fill(1);
  const std::uint32_t key = pair->reg_b(from.at, from.size);
  far->post({.opcode = m::Opcode::rdma_write,
             .raddr = address_of(inside()),
             .rkey = same,
             .data = {{address_of(from.at), 1000, key}}});
  expect_done(*far);
  EXPECT_TRUE(inside_holds_source(1000));
  expect_findings({});
}

// A program that sends on what it was not told of yet has not read it itself, but had it read.
TEST_P(StrictHalf, ToNameItInAWorkRequestIsToTouchIt) {
  half_a_put_and_nobody_there();
  far->post({.opcode = m::Opcode::rdma_write,
             .raddr = address_of(source.at),
             .rkey = lkey,
             .data = {{address_of(inside()), 1000, rkey}}});
  expect_done(*far);
  expect_line(Rule::target_read_early, pair->qb->qpn, "\"message\":0,");
  expect_findings({{Rule::target_read_early, 1}});
}

// ---- The program gets it back ---------------------------------------------------------------------------------------

TEST_P(StrictHalf, SilenceEndsTheGuard) {
  begin(20'000'000);
  half_a_put_then_silence();
  EXPECT_TRUE(readable(target.at + kWhole - 1));
  EXPECT_EQ(std::count(target.at, target.at + kWhole, std::byte{0}), std::ptrdiff_t{kWhole}) << "nothing has landed";
  expect_findings({});
}

// A peer that was only slow is none the worse for it, and its put is guarded again.
TEST_P(StrictHalf, APutThatGoesOnAfterSilenceLandsWhole) {
  begin(20'000'000);
  half_a_put_then_silence();
  bool again = false;
  std::optional<Event> event;
  const auto deadline = sys::Deadline::after_ns(30'000'000'000);
  while (!event && !deadline.passed()) {
    pair->a->drive(0);
    pair->b->drive(0);
    again = again || !readable(target.at);
    event = pair->qa->poll();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_TRUE(again);
  EXPECT_TRUE(target.holds(2));
  expect_findings({});
}

TEST_P(StrictHalf, DeregistrationEndsTheGuard) {
  half_a_put();
  ASSERT_TRUE(pair->b->deregister_memory(rkey));
  EXPECT_TRUE(readable(target.at));
  const auto event = pair->wait(*pair->qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

TEST_P(StrictHalf, SoDoesRegisteringOtherMemoryUnderTheKey) {
  half_a_put();
  StrictBuffer other;
  strait_nic_mr_request request{};
  request.struct_size = sizeof request;
  request.fd = -1;
  request.address = address_of(other.at);
  request.length_bytes = other.size;
  ASSERT_TRUE(pair->b->rereg_memory(rkey, kReregTranslation, request));
  EXPECT_TRUE(readable(target.at));
  const auto event = pair->wait(*pair->qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

TEST_P(StrictHalf, SoDoesAnErrorOfTheQueuePair) {
  half_a_put();
  ASSERT_TRUE(pair->b->fail_qp(pair->qb->qpn));
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

TEST_P(StrictHalf, SoDoesSettingItBack) {
  half_a_put();
  QpAttributes attributes;
  attributes.state = QpState::reset;
  ASSERT_TRUE(pair->b->modify_qp(pair->qb->qpn, attributes, kQpState));
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

TEST_P(StrictHalf, SoDoesItsEnd) {
  half_a_put();
  pair->qb.reset();
  EXPECT_TRUE(readable(target.at));
  expect_findings({});
}

}  // namespace
}  // namespace strait::soft::nic::testing
