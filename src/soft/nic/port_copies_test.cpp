// SPDX-License-Identifier: Apache-2.0
// Copies of ports that go on by themselves: what overlaps, what waits for what, and who waits when something goes.
#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint64_t kDepot = 0x7200'0000'0000;  // what nobody can map
constexpr std::uint32_t kMiB = 1 << 20;

// Memory that only copies reach, which end when the test says so: in `done`, in the order they were begun.
struct Depot {
  explicit Depot(std::vector<std::byte> held) : bytes(std::move(held)) {
    port.abi_version = STRAIT_PLUGIN_ABI;
    port.struct_size = sizeof port;
    port.context = this;
    port.read = [](void* self, std::uint64_t address, void* into, std::uint64_t n) {
      Depot& depot = *static_cast<Depot*>(self);
      ++depot.blocking;
      std::memcpy(into, depot.at(address), n);
      return 0;
    };
    port.write = [](void* self, std::uint64_t address, const void* from, std::uint64_t n) {
      Depot& depot = *static_cast<Depot*>(self);
      ++depot.blocking;
      std::memcpy(depot.at(address), from, n);
      return 0;
    };
    port.order = [](void*) {};
    port.prepare = [](void* self, void* host, std::uint64_t n) {
      Depot& depot = *static_cast<Depot*>(self);
      if (depot.pins_nothing) return 1;
      depot.prepared.emplace_back(host, n);
      return 0;
    };
    port.release = [](void* self, void* host) {
      Depot& depot = *static_cast<Depot*>(self);
      EXPECT_EQ(std::erase_if(depot.prepared, [&](const auto& each) { return each.first == host; }), 1u);
    };
    port.start_read = [](void* self, std::uint64_t address, void* into, std::uint64_t n, std::uint64_t* ticket) {
      return static_cast<Depot*>(self)->begin(into, static_cast<Depot*>(self)->at(address), n, ticket);
    };
    port.start_write = [](void* self, std::uint64_t address, const void* from, std::uint64_t n, std::uint64_t* ticket) {
      return static_cast<Depot*>(self)->begin(static_cast<Depot*>(self)->at(address), from, n, ticket);
    };
    port.done = [](void* self, std::uint64_t ticket) { return static_cast<Depot*>(self)->done(ticket); };
  }
  std::byte* at(std::uint64_t address) { return bytes.data() + (address - kDepot); }
  std::int32_t begin(void* to, const void* from, std::uint64_t n, std::uint64_t* ticket) {
    if (refuses) return 1;
    *ticket = ++tickets;
    copies.push_back({*ticket, to, from, n});
    most = std::max(most, copies.size());
    return 0;
  }
  std::int32_t done(std::uint64_t ticket) {
    while (!copies.empty() && copies.front().ticket <= ticket) {
      if (may_end == 0) return 0;
      --may_end;
      const Copy copy = copies.front();
      copies.erase(copies.begin());
      if (fails) return -1;
      std::memcpy(copy.to, copy.from, copy.n);
    }
    return 1;
  }
  std::uint32_t key(Engine& engine, std::uint32_t pd) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ;
    request.fd = -1;
    request.address = kDepot;
    request.length_bytes = bytes.size();
    request.port = &port;
    return engine.register_memory(request).value().lkey;
  }

  struct Copy {
    std::uint64_t ticket;
    void* to;
    const void* from;
    std::uint64_t n;
  };
  std::vector<std::byte> bytes;
  strait_memory_port port{};
  std::uint64_t tickets = 0;
  std::vector<Copy> copies;  // under way
  std::size_t most = 0;
  std::uint64_t may_end = UINT64_MAX;
  int blocking = 0;
  bool refuses = false;
  bool fails = false;
  bool pins_nothing = false;
  std::vector<std::pair<void*, std::uint64_t>> prepared;
};

class PortCopies : public ::testing::TestWithParam<Over> {
 protected:
  void open(std::uint32_t bytes) {
    pair.reset();
    from = std::make_unique<Depot>(pattern(bytes, 1));
    to = std::make_unique<Depot>(std::vector<std::byte>(bytes));
    pair = std::make_unique<Pair>(PairConfig(GetParam()));
    lkey = from->key(*pair->a, pair->pd_a);
    rkey = to->key(*pair->b, pair->pd_b);
  }
  Wqe write(std::uint32_t offset, std::uint32_t length) const {
    return {.opcode = m::Opcode::rdma_write,
            .raddr = kDepot + offset,
            .rkey = rkey,
            .data = {{kDepot + offset, length, lkey}}};
  }
  void drive(int passes = 50) {
    for (int i = 0; i < passes; ++i) {
      pair->a->drive(0);
      pair->b->drive(0);
    }
  }
  std::optional<Event> next() {
    const sys::Deadline deadline = sys::Deadline::after_ns(20'000'000'000);
    std::optional<Event> event;
    while (!(event = pair->qa->poll()) && !deadline.passed()) drive(1);
    EXPECT_TRUE(event);
    return event;
  }

  std::unique_ptr<Depot> from, to;  // outlive the engines, as providers do
  std::unique_ptr<Pair> pair;
  std::uint32_t lkey = 0, rkey = 0;
};
INSTANTIATE_TEST_SUITE_P(Over, PortCopies, ::testing::Values(Over::one_copy, Over::through_the_ring),
                         [](const auto& each) { return each.param == Over::one_copy ? "reached" : "not_reached"; });

// The way is that of the link; what lies behind a port is known by what is registered.
TEST_P(PortCopies, TheWayIsSaid) {
  open(4096);
  const std::string with = pair->a->describe_qp(pair->qa->qpn).value();
  EXPECT_NE(with.find("two"), std::string::npos) << with;
  ASSERT_TRUE(pair->a->deregister_memory(lkey));
  const std::string without = pair->a->describe_qp(pair->qa->qpn).value();
  if (GetParam() == Over::one_copy) {
    EXPECT_NE(with.find("one copy by the owner (of memory behind a port: two, by its vendor's copies)"),
              std::string::npos)
        << with;
    EXPECT_EQ(without + " (of memory behind a port: two, by its vendor's copies)", with);
  } else {
    EXPECT_EQ(without, with);
  }
}

TEST_P(PortCopies, EveryKindOfMessageOfEverySizeArrives) {
  for (const std::uint32_t size : {9000u, kMiB, 3 * kMiB + 5, 40 * kMiB}) {
    open(size);
    pair->qa->post(write(0, size));
    ASSERT_EQ(next()->syndrome, m::Syndrome::none);
    EXPECT_EQ(to->bytes, from->bytes);
    EXPECT_EQ(from->blocking + to->blocking, 0);
    const std::uint64_t pieces = (size + kMiB - 1) / kMiB;
    EXPECT_EQ(from->tickets, pieces);
    EXPECT_EQ(to->tickets, pieces);
    // With an immediate, and as a message; back to back, so that the second finds the first under way.
    from->bytes = pattern(size, 5);
    pair->qb->post_receive({});
    pair->qb->post_receive({{kDepot, size, rkey}});
    Wqe with_imm = write(0, size);
    with_imm.opcode = m::Opcode::rdma_write_imm;
    pair->qa->post(with_imm);
    pair->qa->post({.opcode = m::Opcode::send, .data = {{kDepot, size, lkey}}});
    ASSERT_EQ(next()->syndrome, m::Syndrome::none);
    ASSERT_EQ(next()->syndrome, m::Syndrome::none);
    EXPECT_EQ(to->bytes, from->bytes);
    const auto first = pair->qb->poll();
    const auto second = pair->qb->poll();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->bytes, size);
    EXPECT_EQ(second->bytes, size);
  }
}

TEST_P(PortCopies, SeveralWorkRequestsAreUnderWayAtBothEnds) {
  open(8 * kMiB);
  from->may_end = to->may_end = 0;
  for (std::uint32_t i = 0; i < 8; ++i) pair->qa->post(write(i * kMiB, kMiB));
  drive();
  EXPECT_EQ(from->copies.size(), 8u) << "all are read before the first has been";
  EXPECT_TRUE(to->copies.empty());
  from->may_end = 3;
  drive();
  EXPECT_EQ(to->copies.size(), 3u) << "what was read is being written, while others are being read";
  EXPECT_EQ(from->copies.size(), 5u);
  EXPECT_FALSE(pair->qa->poll()) << "nothing completes before its bytes are there";
  to->may_end = 1;
  drive();
  ASSERT_TRUE(pair->qa->poll());
  EXPECT_FALSE(pair->qa->poll());
  EXPECT_TRUE(std::equal(to->bytes.begin(), to->bytes.begin() + kMiB, from->bytes.begin()));
  from->may_end = to->may_end = UINT64_MAX;
  for (int i = 1; i < 8; ++i) ASSERT_EQ(next()->syndrome, m::Syndrome::none);
  EXPECT_EQ(to->bytes, from->bytes);
}

// Put, then signal: who sees the signal sees the bytes.
TEST_P(PortCopies, WhatFollowsIsNotSeenBeforeTheBytes) {
  open(2 * kMiB);
  alignas(8) std::uint64_t flag = 0;
  const std::uint32_t flag_key = pair->reg_b(&flag, sizeof flag);
  std::uint64_t one = 1;
  const std::uint32_t one_key = pair->reg_a(&one, sizeof one);
  to->may_end = 0;
  pair->qa->post(write(0, kMiB));
  pair->qa->post(write(kMiB, kMiB));
  pair->qa->post({.opcode = m::Opcode::rdma_write,
                  .raddr = address_of(&flag),
                  .rkey = flag_key,
                  .data = {{address_of(&one), 8, one_key}}});
  drive();
  EXPECT_EQ(to->copies.size(), 2u);
  EXPECT_EQ(flag, 0u);
  to->may_end = 1;
  drive();
  EXPECT_EQ(flag, 0u);
  to->may_end = 1;
  drive();
  EXPECT_EQ(flag, 1u);
  EXPECT_EQ(to->bytes, from->bytes);
}

TEST_P(PortCopies, ThePoolIsPinnedOnceByEachAndGivenBackWithTheLastRegistration) {
  open(2 * kMiB);
  for (int i = 0; i < 3; ++i) {
    pair->qa->post(write(0, 2 * kMiB));
    ASSERT_EQ(next()->syndrome, m::Syndrome::none);
  }
  ASSERT_EQ(from->prepared.size(), 1u);
  ASSERT_EQ(to->prepared.size(), 1u);
  EXPECT_NE(from->prepared[0].first, to->prepared[0].first) << "each its own mapping";
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(from->prepared[0].first) % sys::page_bytes(), 0u);
  const std::uint32_t another = from->key(*pair->a, pair->pd_a);
  ASSERT_TRUE(pair->a->deregister_memory(lkey));
  EXPECT_EQ(from->prepared.size(), 1u);
  ASSERT_TRUE(pair->a->deregister_memory(another));
  EXPECT_TRUE(from->prepared.empty());
  ASSERT_TRUE(pair->b->deregister_memory(rkey));
  EXPECT_TRUE(to->prepared.empty());
}

TEST_P(PortCopies, WhoCannotPinCopiesAllTheSame) {
  open(2 * kMiB);
  from->pins_nothing = to->pins_nothing = true;
  pair->qa->post(write(0, 2 * kMiB));
  ASSERT_EQ(next()->syndrome, m::Syndrome::none);
  EXPECT_EQ(to->bytes, from->bytes);
}

TEST_P(PortCopies, AFailureEndsTheMessageAfterThoseBeforeIt) {
  for (const bool at_start : {true, false}) {
    open(2 * kMiB);
    from->may_end = 1;
    pair->qa->post(write(0, kMiB));
    pair->qa->post(write(kMiB, kMiB));
    ASSERT_EQ(next()->syndrome, m::Syndrome::none);
    (at_start ? from->fails : to->fails) = true;
    from->may_end = UINT64_MAX;
    EXPECT_EQ(next()->syndrome, at_start ? m::Syndrome::local_access : m::Syndrome::remote_operation);
  }
  for (const bool near : {true, false}) {
    open(kMiB);
    (near ? from : to)->refuses = true;
    pair->qa->post(write(0, kMiB));
    EXPECT_EQ(next()->syndrome, near ? m::Syndrome::local_access : m::Syndrome::remote_operation);
  }
}

// A refusal says that all before it is done: it waits for that.
TEST_P(PortCopies, ARefusedMessageWaitsForTheCopiesBeforeIt) {
  open(2 * kMiB);
  to->may_end = 0;
  pair->qa->post(write(0, kMiB));
  Wqe wrong = write(kMiB, kMiB);
  wrong.rkey = rkey + 0x100;
  pair->qa->post(wrong);
  drive();
  EXPECT_FALSE(pair->qa->poll());
  to->may_end = UINT64_MAX;
  EXPECT_EQ(next()->syndrome, m::Syndrome::none);
  EXPECT_EQ(next()->syndrome, m::Syndrome::remote_access);
  EXPECT_TRUE(std::equal(to->bytes.begin(), to->bytes.begin() + kMiB, from->bytes.begin()));
}

TEST_P(PortCopies, DeregisteringWaitsForCopiesAtEitherEnd) {
  for (const bool near : {true, false}) {
    open(4 * kMiB);
    Depot& slow = near ? *from : *to;
    Engine& engine = near ? *pair->a : *pair->b;
    const std::uint32_t key = near ? lkey : rkey;
    slow.may_end = 0;
    for (std::uint32_t i = 0; i < 4; ++i) pair->qa->post(write(i * kMiB, kMiB));
    drive();
    ASSERT_EQ(slow.copies.size(), 4u);
    const Status stuck = engine.deregister_memory(key);  // gives up after a second: the memory is still in use
    ASSERT_FALSE(stuck);
    EXPECT_EQ(stuck.error().code, Code::again);
    slow.may_end = UINT64_MAX;
    ASSERT_TRUE(engine.deregister_memory(key));
    EXPECT_TRUE(slow.copies.empty()) << "nothing touches it any more";
    const std::uint64_t begun = slow.tickets;
    drive();
    EXPECT_EQ(slow.tickets, begun) << "and nothing begins to";
  }
}

TEST_P(PortCopies, AQueuePairThatGoesLeavesItsCopiesToTheEngine) {
  for (const bool near : {true, false}) {
    open(4 * kMiB);
    Depot& slow = near ? *from : *to;
    Engine& engine = near ? *pair->a : *pair->b;
    slow.may_end = 0;
    for (std::uint32_t i = 0; i < 4; ++i) pair->qa->post(write(i * kMiB, kMiB));
    drive();
    ASSERT_EQ(slow.copies.size(), 4u);
    (near ? pair->qa : pair->qb).reset();
    EXPECT_EQ(slow.copies.size(), 4u);
    slow.may_end = UINT64_MAX;
    ASSERT_TRUE(engine.deregister_memory(near ? lkey : rkey)) << "waits for them";
    EXPECT_TRUE(slow.copies.empty());
  }
}

TEST_P(PortCopies, APeerThatDiesLeavesThePoolToTheCopies) {
  open(4 * kMiB);
  to->may_end = 0;
  for (std::uint32_t i = 0; i < 4; ++i) pair->qa->post(write(i * kMiB, kMiB));
  drive();
  ASSERT_EQ(to->copies.size(), 4u);
  pair->qa.reset();
  pair->a.reset();
  for (int i = 0; i < 4000; ++i) pair->b->drive(0);
  EXPECT_EQ(to->copies.size(), 4u);
  to->may_end = UINT64_MAX;
  for (int i = 0; i < 4000; ++i) pair->b->drive(0);
  EXPECT_TRUE(to->copies.empty());
  EXPECT_EQ(to->bytes, from->bytes) << "read from memory that the other side let go of";
  ASSERT_TRUE(pair->b->deregister_memory(rkey));
}

TEST_P(PortCopies, AnEngineThatClosesWaitsForItsCopies) {
  open(2 * kMiB);
  to->may_end = 2;
  pair->qa->post(write(0, 2 * kMiB));
  to->may_end = 0;
  drive();
  ASSERT_EQ(to->copies.size(), 2u);
  to->may_end = 2;
  pair.reset();
  EXPECT_TRUE(to->copies.empty());
  EXPECT_TRUE(to->prepared.empty());
  EXPECT_TRUE(from->prepared.empty());
}

// Progress threads sleep when a pass does nothing: not while a copy is about to end, and not for ever without one.
TEST_P(PortCopies, WhoDrivesGoesOnUntilTheCopiesHaveEnded) {
  open(kMiB);
  from->may_end = 0;
  pair->qa->post(write(0, kMiB));
  EXPECT_NE(pair->a->drive(0), 0);
  EXPECT_FALSE(pair->a->arm());
  const sys::Deadline deadline = sys::Deadline::after_ns(5'000'000'000);
  while (pair->a->drive(0) != 0 && !deadline.passed()) {
  }
  EXPECT_FALSE(deadline.passed()) << "a copy engine that is stuck keeps nobody awake";
  from->may_end = UINT64_MAX;
  ASSERT_EQ(next()->syndrome, m::Syndrome::none);
}

// A receive that comes late: what was read ahead is read again.
TEST_P(PortCopies, WhatIsSentAgainIsReadAgain) {
  open(2 * kMiB);
  pair->qa->post({.opcode = m::Opcode::send, .data = {{kDepot, 2 * kMiB, lkey}}});
  drive();
  EXPECT_FALSE(pair->qa->poll());
  from->bytes = pattern(2 * kMiB, 9);
  pair->qb->post_receive({{kDepot, 2 * kMiB, rkey}});
  ASSERT_EQ(next()->syndrome, m::Syndrome::none);
  EXPECT_EQ(to->bytes, pattern(2 * kMiB, 9));
}

}  // namespace
}  // namespace strait::soft::nic::testing
