// SPDX-License-Identifier: Apache-2.0
// Packets of a connection that is gone. A network keeps some, and somebody may have written all of them down: when its
// queue pairs are set back and connected anew, under the same numbers but for those of the packets, none of them does
// anything.
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

using roce::Drop;
using Frame = roce::MemoryPort::Frame;

constexpr std::uint32_t kOldToB = 0xfffff0, kOldToA = 0x7ffff8;  // both wrap or change sign on the way
constexpr std::uint32_t kInboxes = 4, kInboxBytes = 2048;

// How far the new connection's numbers are from the old one's.
class Replay : public ::testing::TestWithParam<std::int32_t> {
 protected:
  void SetUp() override {
    connect(kOldToB, kOldToA);
    talk();
  }

  static std::uint32_t moved(std::uint32_t psn, std::int32_t by) {
    return (psn + static_cast<std::uint32_t>(by)) & 0xffffff;
  }
  void connect(std::uint32_t b_expects, std::uint32_t a_expects, QpState last = QpState::ready) {
    VerbsPair::raise_to(*pair.a, pair.qa->qpn, QpType::rc,
                        attributes_to(pair.port_b->address(), pair.qb->qpn, b_expects, a_expects), last);
    VerbsPair::raise_to(*pair.b, pair.qb->qpn, QpType::rc,
                        attributes_to(pair.port_a->address(), pair.qa->qpn, a_expects, b_expects), last);
  }
  void connect_anew(QpState last = QpState::ready) {
    connect(moved(kOldToB, GetParam()), moved(kOldToA, GetParam()), last);
  }
  void set_back() {
    step(*pair.a, pair.qa->qpn, QpState::reset).value();
    step(*pair.b, pair.qb->qpn, QpState::reset).value();
    pair.qa->set_back();
    pair.qb->set_back();
    forget_packets();
  }
  void forget_packets() {
    pair.port_a->on_the_way().clear();
    pair.port_b->on_the_way().clear();
  }
  void post_receives() {
    for (std::uint32_t i = 0; i < kInboxes; ++i)
      pair.qb->post_receive({{address_of(inbox.data()) + i * kInboxBytes, kInboxBytes, inbox_key}});
  }
  [[nodiscard]] Wqe request(m::Opcode opcode, std::uint32_t length) const {
    return {.opcode = opcode,
            .raddr = address_of(there.data()),
            .rkey = there_key,
            .data = {{address_of(here.data()), length, here_key}}};
  }

  // One of each request, and everything that went over the wire for it.
  void talk() {
    post_receives();
    Wqe add = request(m::Opcode::atomic_fa, 8);
    add.atomic = {1, 0};
    for (const Wqe& wqe : {request(m::Opcode::send, 1500), request(m::Opcode::send_imm, 8),
                           request(m::Opcode::rdma_write, 3000), request(m::Opcode::rdma_write_imm, 8), add,
                           request(m::Opcode::rdma_read, 3000), request(m::Opcode::rdma_write, 8)}) {
      pair.qa->post(wqe);
      ++posted;
    }
    std::uint32_t completed = 0, received = 0;
    for (const auto deadline = sys::Deadline::after_ns(30'000'000'000); completed < posted || received < 3;) {
      ASSERT_FALSE(deadline.passed());
      pair.a->drive(0);
      keep(pair.port_a->on_the_way(), to_b);
      pair.b->drive(0);
      keep(pair.port_b->on_the_way(), to_a);
      if (const auto event = pair.qa->poll()) {
        ASSERT_EQ(event->syndrome, m::Syndrome::none);
        ++completed;
      }
      if (const auto event = pair.qb->poll()) ++received;
    }
    ASSERT_GE(to_b.size(), 10u);
    ASSERT_GE(to_a.size(), 4u);
  }
  static void keep(const std::deque<Frame>& on_the_way, std::vector<Frame>& all) {
    all.insert(all.end(), on_the_way.begin(), on_the_way.end());
  }
  static unsigned opcode_of(const Frame& frame) { return std::to_integer<unsigned>(frame.bytes[0]); }
  static std::uint64_t count(const std::vector<Frame>& frames, std::initializer_list<unsigned> opcodes) {
    return static_cast<std::uint64_t>(std::count_if(frames.begin(), frames.end(), [&](const Frame& frame) {
      return std::find(opcodes.begin(), opcodes.end(), opcode_of(frame)) != opcodes.end();
    }));
  }

  // Each by itself; what is said in return gets nowhere.
  void replay() {
    for (const Frame& frame : to_b) {
      deliver(frame, *pair.b, *pair.port_b, *pair.port_a);
      keep(pair.port_b->on_the_way(), said_by_b);
      forget_packets();
    }
    for (const Frame& frame : to_a) {
      deliver(frame, *pair.a, *pair.port_a, *pair.port_b);
      forget_packets();
    }
  }
  // An engine without connections looks only now and then.
  static void deliver(const Frame& frame, Engine& to, roce::MemoryPort& port, roce::MemoryPort& far) {
    port.inject(frame);
    for (const auto deadline = sys::Deadline::after_ns(30'000'000'000); !far.on_the_way().empty();) {
      ASSERT_FALSE(deadline.passed());
      to.drive(0);
    }
    for (int i = 0; i < 8; ++i) to.drive(0);
  }
  void fill() {
    unsigned seed = 11;
    for (auto* const bytes : {&here, &there, &inbox}) {  // where they are registered
      const auto fresh = pattern(bytes->size(), seed++);
      std::copy(fresh.begin(), fresh.end(), bytes->begin());
    }
  }
  void expect_untouched() {
    EXPECT_EQ(here, pattern(here.size(), 11));
    EXPECT_EQ(there, pattern(there.size(), 12));
    EXPECT_EQ(inbox, pattern(inbox.size(), 13));
    EXPECT_FALSE(pair.qa->poll());
    EXPECT_FALSE(pair.qb->poll());
  }
  static const PacketCounts& counts(Engine& engine) { return EngineTestPeer::packets(engine).counts(); }
  static std::uint64_t drops(Engine& engine, Drop why) { return counts(engine).drops[static_cast<std::size_t>(why)]; }
  static std::uint64_t all_drops(Engine& engine) {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : counts(engine).drops) sum += n;
    return sum;
  }

  VerbsPair pair;
  // The end of `here` is where the new connection reads to.
  alignas(8) std::vector<std::byte> here = pattern(8192, 1), there = pattern(4096, 2);
  std::vector<std::byte> inbox = pattern(std::size_t{kInboxes} * kInboxBytes, 3);
  std::uint32_t here_key = pair.reg_a(here), there_key = pair.reg_b(there), inbox_key = pair.reg_b(inbox);
  std::vector<Frame> to_b, to_a, said_by_b;
  std::uint32_t posted = 0;
};
// A step or two beyond all that was sent, and a quarter of the circle.
INSTANTIATE_TEST_SUITE_P(Moved, Replay, ::testing::Values(64, 0x400000, -64, -0x400000), [](const auto& each) {
  return std::string(each.param < 0 ? "back" : "on") + std::to_string(std::abs(each.param));
});

TEST_P(Replay, DoesNothingToTheNextConnection) {
  set_back();
  connect_anew();
  post_receives();
  // Under way: something for old answers to answer.
  Wqe read = request(m::Opcode::rdma_read, 3000);
  read.data[0].addr += 4096;
  Wqe add = request(m::Opcode::atomic_fa, 8);
  add.data[0].addr += 4096;
  add.atomic = {1, 0};
  fill();
  for (const Wqe& wqe : {read, add, request(m::Opcode::send, 8)}) pair.qa->post(wqe);
  forget_packets();
  const std::uint64_t drops_b = all_drops(*pair.b), drops_a = all_drops(*pair.a);
  const std::uint64_t duplicates = counts(*pair.b).duplicates, acks = counts(*pair.a).acks_received;
  const std::uint64_t stale = drops(*pair.b, Drop::stale_psn), unasked = drops(*pair.a, Drop::unexpected_response);
  replay();
  expect_untouched();
  EXPECT_EQ(pair.a->query_qp(pair.qa->qpn).value().state, QpState::ready);
  EXPECT_EQ(pair.b->query_qp(pair.qb->qpn).value().state, QpState::ready);

  // The owner. Numbers behind the expected one are duplicates: of what writes, the last one in order is acknowledged
  // again; what asks for an answer is none that this connection gave. Numbers ahead of it are one gap, told once.
  const std::uint64_t asks = count(to_b, {0x0c, 0x13, 0x14});
  if (GetParam() > 0) {
    EXPECT_EQ(counts(*pair.b).duplicates - duplicates, to_b.size());
    EXPECT_EQ(drops(*pair.b, Drop::stale_psn) - stale, asks);
    EXPECT_EQ(all_drops(*pair.b) - drops_b, asks);
    EXPECT_EQ(count(said_by_b, {0x11}), said_by_b.size()) << "nothing but acknowledgements";
    for (const Frame& frame : said_by_b) {
      const std::uint32_t psn = get32(frame.bytes.data() + 8) & 0xffffff;
      EXPECT_EQ(psn, moved(kOldToB, GetParam() - 1)) << "of what was before the first, which the peer ignores";
      EXPECT_EQ(frame.bytes[12], std::byte{0x1f});
    }
  } else {
    EXPECT_EQ(counts(*pair.b).duplicates, duplicates);
    EXPECT_EQ(all_drops(*pair.b), drops_b);
    ASSERT_EQ(said_by_b.size(), 1u);
    EXPECT_EQ(get32(said_by_b[0].bytes.data() + 8) & 0xffffff, moved(kOldToB, GetParam()));
    EXPECT_EQ(said_by_b[0].bytes[12], std::byte{0x60});
  }
  // The requester.
  const std::uint64_t plain = count(to_a, {0x11});
  EXPECT_EQ(counts(*pair.a).acks_received - acks, plain);
  EXPECT_EQ(drops(*pair.a, Drop::unexpected_response) - unasked, to_a.size() - plain);
  EXPECT_EQ(all_drops(*pair.a) - drops_a, to_a.size() - plain);

  // And the connection is as good as new.
  for (int i = 0; i < 3; ++i) {
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
  ASSERT_TRUE(pair.wait(*pair.qb));
  const auto was = pattern(there.size(), 12);
  EXPECT_EQ(std::memcmp(here.data() + 4096 + 8, was.data() + 8, 2992), 0);
  EXPECT_EQ(std::memcmp(inbox.data(), here.data(), 8), 0);
}

TEST_P(Replay, DoesNothingBeforeThereIsANextConnection) {
  set_back();
  fill();
  const std::uint64_t drops_b = drops(*pair.b, Drop::wrong_state), drops_a = drops(*pair.a, Drop::wrong_state);
  replay();
  expect_untouched();
  EXPECT_EQ(drops(*pair.b, Drop::wrong_state) - drops_b, to_b.size());
  EXPECT_EQ(drops(*pair.a, Drop::wrong_state) - drops_a, to_a.size());
  // In INIT receives may be posted, and nothing is received.
  connect_anew(QpState::init);
  post_receives();
  replay();
  expect_untouched();
  EXPECT_EQ(drops(*pair.b, Drop::wrong_state) - drops_b, 2 * to_b.size());
  EXPECT_EQ(drops(*pair.a, Drop::wrong_state) - drops_a, 2 * to_a.size());
  EXPECT_TRUE(said_by_b.empty());
}

// In RTR requests are served; answers can be for nobody yet.
TEST_P(Replay, DoesNothingToWhoHasNotSent) {
  set_back();
  fill();
  connect_anew(QpState::rtr);
  const std::uint64_t drops_a = drops(*pair.a, Drop::wrong_state);
  replay();
  expect_untouched();
  EXPECT_EQ(drops(*pair.a, Drop::wrong_state) - drops_a, to_a.size());
}

}  // namespace
}  // namespace strait::soft::nic::testing
