// SPDX-License-Identifier: Apache-2.0
// What the engine does with wrong keys, wrong lengths, missing receives, garbage, and peers that die or fall silent.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <tuple>

#include "soft/nic/checksum.hpp"
#include "soft/nic/testing.hpp"
#include "sys/event_set.hpp"

namespace strait::soft::nic::testing {
namespace {

// Damage on purpose is one bit, and no run is long enough for it to pass.
TEST(Checksum, FindsEveryDamagedBit) {
  std::vector<Slot> message(16);
  const auto bytes = pattern(message.size() * sizeof(Slot), 9);
  std::memcpy(message.data(), bytes.data(), bytes.size());
  const auto sum = [&](std::uint32_t slots) {
    return checksum(slots, [&](std::uint32_t i) -> const Slot& { return message[i]; });
  };
  const auto n_slots = static_cast<std::uint32_t>(message.size());
  const std::uint64_t right = sum(n_slots);
  EXPECT_NE(right >> 48, 0u);
  EXPECT_EQ(right << 16, 0u);
  EXPECT_NE(sum(n_slots - 1), right);
  std::size_t missed = 0;
  for (std::size_t bit = offsetof(Slot, sequence) * 8 + 64; bit < message.size() * sizeof(Slot) * 8; ++bit) {
    auto& byte = reinterpret_cast<std::uint8_t*>(message.data())[bit / 8];
    byte = static_cast<std::uint8_t>(byte ^ 1u << bit % 8);
    if (sum(n_slots) == right) ++missed;
    byte = static_cast<std::uint8_t>(byte ^ 1u << bit % 8);
  }
  EXPECT_EQ(missed, 0u);
}

struct Rejected {
  const char* name;
  m::Syndrome expected;
  std::function<Wqe(Pair&, std::vector<std::byte>&)> make;
};

class Rejections : public ::testing::TestWithParam<std::tuple<Rejected, Over>> {
 protected:
  static const Rejected& rejected() { return std::get<0>(GetParam()); }
};
class Faults : public ::testing::TestWithParam<Over> {};

const char* name_of(Over over) {
  return over == Over::one_copy ? "one_copy" : over == Over::through_the_ring ? "through_the_ring" : "packets";
}
INSTANTIATE_TEST_SUITE_P(Over, Faults, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) { return name_of(each.param); });

std::uint32_t local_key(Pair& pair, std::vector<std::byte>& memory) {
  return pair.reg_a(memory.data(), memory.size());
}

INSTANTIATE_TEST_SUITE_P(
    Requests, Rejections,
    ::testing::Combine(
        ::testing::Values(Rejected{"unknown_rkey", m::Syndrome::remote_access,
                                   [](Pair&, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = 0x4242,
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"one_past_the_end", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()) + memory.size() - 7,
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"before_the_start", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()) - 1,
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"address_wraps", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = ~0ull - 3,
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"write_not_granted", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg(*p.b, p.pd_b, memory.data(), memory.size(),
                                                              STRAIT_NIC_REMOTE_READ),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"read_not_granted", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_read,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg(*p.b, p.pd_b, memory.data(), memory.size(),
                                                              STRAIT_NIC_REMOTE_WRITE),
                                                .data = {{address_of(memory.data()), 8, local_key(p, memory)}}};
                                   }},
                          Rejected{"atomic_not_granted", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::atomic_fa,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg(*p.b, p.pd_b, memory.data(), memory.size(),
                                                              STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ),
                                                .data = {{address_of(memory.data()), 8, local_key(p, memory)}},
                                                .atomic = {1, 0}};
                                   }},
                          Rejected{"other_protection_domain", m::Syndrome::remote_access,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg(*p.b, p.b->alloc_pd(), memory.data(), memory.size()),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"unaligned_atomic", m::Syndrome::remote_invalid_request,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::atomic_fa,
                                                .raddr = address_of(memory.data()) + 4,
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()), 8, local_key(p, memory)}},
                                                .atomic = {1, 0}};
                                   }},
                          Rejected{"unknown_lkey", m::Syndrome::local_protection,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()), 8, 0x777}}};
                                   }},
                          Rejected{"local_out_of_bounds", m::Syndrome::local_protection,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()) + 60, 8, local_key(p, memory)}}};
                                   }},
                          Rejected{"zero_byte_segment", m::Syndrome::local_qp_operation,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()), 0, local_key(p, memory)}}};
                                   }},
                          Rejected{"longer_than_a_message", m::Syndrome::local_length,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     const std::uint32_t key = local_key(p, memory);
                                     return Wqe{.opcode = m::Opcode::rdma_write,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()), 0x40000000, key},
                                                         {address_of(memory.data()), 1, key}}};
                                   }},
                          Rejected{"unknown_opcode", m::Syndrome::local_qp_operation,
                                   [](Pair&, std::vector<std::byte>&) { return Wqe{.opcode = m::Opcode::umr}; }},
                          Rejected{"inline_read", m::Syndrome::local_qp_operation,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::rdma_read,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .inlined = pattern(8, 1)};
                                   }},
                          Rejected{"atomic_result_too_short", m::Syndrome::local_length,
                                   [](Pair& p, std::vector<std::byte>& memory) {
                                     return Wqe{.opcode = m::Opcode::atomic_fa,
                                                .raddr = address_of(memory.data()),
                                                .rkey = p.reg_b(memory.data(), memory.size()),
                                                .data = {{address_of(memory.data()), 4, local_key(p, memory)}},
                                                .atomic = {1, 0}};
                                   }}),
        ::testing::Values(Over::one_copy, Over::packets)),
    [](const auto& each) {
      return std::string(std::get<0>(each.param).name) + "_" + name_of(std::get<1>(each.param));
    });

// The wrong request fails with its syndrome, once; what came before completes, what comes after is flushed; the memory
// on both sides is as it was.
TEST_P(Rejections, FailOnceAndFlushTheRest) {
  alignas(8) static std::array<std::byte, 64> good;
  good = {};
  Pair pair{PairConfig(std::get<1>(GetParam()))};
  std::vector<std::byte> target(64);
  const auto before = target;
  const std::uint32_t good_key = pair.reg_b(good.data(), good.size());
  const Wqe fine{.opcode = m::Opcode::rdma_write,
                 .raddr = address_of(good.data()),
                 .rkey = good_key,
                 .inlined = pattern(8, 5),
                 .flags = 0};
  pair.qb->post_receive({});
  const auto first =
      pair.qa->write({.opcode = fine.opcode, .raddr = fine.raddr, .rkey = fine.rkey, .inlined = fine.inlined});
  const auto wrong = pair.qa->write(rejected().make(pair, target));
  const auto third = pair.qa->write(fine);
  pair.qa->publish();
  auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->counter, first & 0xffff);
  EXPECT_EQ(event->opcode, m::CqeOpcode::requester);
  event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::requester_error);
  EXPECT_EQ(event->counter, wrong & 0xffff);
  EXPECT_EQ(event->syndrome, rejected().expected);
  event = pair.wait(*pair.qa);
  ASSERT_TRUE(event) << "an unsignaled work request is flushed too";
  EXPECT_EQ(event->counter, third & 0xffff);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  pair.drive();
  EXPECT_FALSE(pair.qa->poll());
  EXPECT_EQ(target, before);
  const bool remote = rejected().expected >= m::Syndrome::remote_invalid_request;
  const auto at_peer = pair.qb->poll();
  EXPECT_EQ(at_peer.has_value(), remote)
      << "a refusal puts the owner's queue pair into error as well, and flushes its receive";
  // What is posted afterwards is flushed at once.
  pair.qa->post(fine);
  event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
}

TEST_P(Faults, ARevokedKeyStaysDeadWhenItsPlaceIsReused) {
  Pair pair{PairConfig(GetParam())};
  std::vector<std::byte> target(64);
  const std::uint32_t old_key = pair.reg_b(target.data(), target.size());
  ASSERT_TRUE(pair.b->deregister_memory(old_key));
  const std::uint32_t new_key = pair.reg_b(target.data(), target.size());
  EXPECT_EQ(old_key >> 8, new_key >> 8);
  EXPECT_NE(old_key, new_key);
  pair.qa->post(
      {.opcode = m::Opcode::rdma_write, .raddr = address_of(target.data()), .rkey = old_key, .inlined = pattern(8, 1)});
  const auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
  EXPECT_FALSE(pair.b->deregister_memory(old_key));
}

TEST_P(Faults, SendsWaitForAReceiveAndKeepTheirOrder) {
  Pair pair{PairConfig(GetParam())};
  std::vector<std::byte> into(64);
  const std::uint32_t key = pair.reg_b(into.data(), into.size());
  for (unsigned i = 0; i < 3; ++i) pair.qa->post({.opcode = m::Opcode::send, .inlined = pattern(20 + i, i)});
  pair.drive(50);
  EXPECT_FALSE(pair.qa->poll());
  EXPECT_GT(pair.b->counts().rnr_sent, 0u);
  for (unsigned i = 0; i < 3; ++i) {
    pair.qb->post_receive({{address_of(into.data()), 64, key}});
    const auto event = pair.wait(*pair.qb);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->bytes, 20 + i);
    EXPECT_EQ(std::memcmp(into.data(), pattern(20 + i, i).data(), 20 + i), 0);
  }
  for (int i = 0; i < 3; ++i) {
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
}

TEST_P(Faults, TooManyReceiverNotReadyAnswersEndTheQueue) {
  Pair pair(PairConfig(GetParam()), 64, 0, 2);
  pair.qa->post({.opcode = m::Opcode::send, .inlined = pattern(4, 1)});
  const auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::rnr_retry_exceeded);
  EXPECT_EQ(pair.b->counts().rnr_sent, 3u);
}

TEST_P(Faults, ASendThatDoesNotFitFailsOnBothSides) {
  Pair pair{PairConfig(GetParam())};
  std::vector<std::byte> into(100);
  auto source = pattern(20'000, 1);
  pair.qb->post_receive({{address_of(into.data()), 100, pair.reg_b(into.data(), into.size())}});
  pair.qa->post({.opcode = m::Opcode::send,
                 .data = {{address_of(source.data()), 20'000, pair.reg_a(source.data(), source.size())}}});
  auto event = pair.wait(*pair.qb);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_error);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_length);
  event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_invalid_request);
}

// The message is here and is acknowledged like any other; the side that was named a key it does not have fails.
TEST_P(Faults, AKeyThatCannotBeInvalidatedFailsItsOwnersQueuePair) {
  enum Bad { unknown, of_another_domain, twice, of_type_1, kinds };
  for (int bad = 0; bad < kinds; ++bad) {
    Pair pair{PairConfig(GetParam())};
    std::vector<std::byte> memory(64);
    const std::uint32_t good = pair.reg_b(memory.data(), memory.size());
    const std::uint32_t key = bad == unknown             ? good ^ 0x10000
                              : bad == of_another_domain ? pair.reg(*pair.b, pair.b->alloc_pd(), memory.data(), 64)
                              : bad == of_type_1         ? pair.b->alloc_window(pair.pd_b, 1).value()
                                                         : good;
    Wqe inval{.opcode = m::Opcode::send_inval, .inlined = pattern(8, 1)};
    put32(reinterpret_cast<std::byte*>(&inval.imm), key);
    for (int i = 0; i < 3; ++i) pair.qb->post_receive({{address_of(memory.data()), 64, good}});
    std::optional<Event> event;
    if (bad == twice) {
      pair.qa->post(inval);
      ASSERT_TRUE(pair.wait(*pair.qa) && (event = pair.wait(*pair.qb)));
      EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_inval);
    }
    pair.qa->post(inval);
    ASSERT_TRUE(event = pair.wait(*pair.qa)) << bad;
    EXPECT_EQ(event->syndrome, m::Syndrome::none) << bad;
    ASSERT_TRUE(event = pair.wait(*pair.qb)) << bad;
    EXPECT_EQ(event->opcode, m::CqeOpcode::responder_error) << bad;
    EXPECT_EQ(event->syndrome, m::Syndrome::remote_invalid_request) << bad;
    ASSERT_TRUE(event = pair.wait(*pair.qb)) << bad;
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed) << bad;
    if (bad == of_type_1) {
      EXPECT_TRUE(pair.b->free_window(key));
    }
  }
}

TEST_P(Faults, GarbageInTheRingIsAnErrorAndNothingElse) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Pair pair{PairConfig(GetParam())};
    std::vector<std::byte> here = pattern(4096, 1), there = pattern(4096, 2);
    const std::uint32_t lkey = pair.reg_a(here.data(), here.size());
    const std::uint32_t rkey = pair.reg_b(there.data(), there.size());
    const Pair::More others = pair.more();
    // A send that makes sense by chance waits for none of these.
    for (int i = 0; i < 16; ++i) pair.qb->post_receive({});
    const auto noise = pattern(64 * 64, seed);
    std::memcpy(pair.qa->sq(), noise.data(), noise.size());
    // Half of the rounds keep the fields that name queue and index, so that the garbage gets further.
    if (seed % 2 == 0) {
      put32(pair.qa->sq(), static_cast<std::uint32_t>(noise[3]) % 0x30);
      put32(pair.qa->sq() + 4, pair.qa->qpn << 8 | (static_cast<std::uint32_t>(noise[7]) & 0x3f));
    }
    put32(pair.qa->record() + 4, 32);
    std::optional<Event> event;
    do {
      ASSERT_TRUE(event = pair.wait(*pair.qa)) << "seed " << seed << ": nothing failed";
      EXPECT_TRUE(event->opcode == m::CqeOpcode::requester || event->opcode == m::CqeOpcode::requester_error) << seed;
    } while (event->opcode == m::CqeOpcode::requester);
    EXPECT_NE(event->syndrome, m::Syndrome::none);
    EXPECT_NE(event->syndrome, m::Syndrome::flushed) << "the first one has a reason of its own";
    const std::string said = m::sentence(event->syndrome);
    EXPECT_EQ(said.find("not known to this version"), std::string::npos) << said;
    if (seed % 2 != 0) {  // noise that names neither this queue pair nor this index
      EXPECT_EQ(said, "the queue entry is malformed or not allowed on this queue pair");
    }
    pair.drive(20);
    while ((event = pair.qa->poll())) EXPECT_EQ(event->syndrome, m::Syndrome::flushed) << seed;
    EXPECT_EQ(here, pattern(4096, 1)) << seed;
    EXPECT_EQ(there, pattern(4096, 2)) << seed;
    // Nobody else notices.
    others.on_a->post({.opcode = m::Opcode::rdma_write,
                       .raddr = address_of(there.data()),
                       .rkey = rkey,
                       .data = {{address_of(here.data()), 100, lkey}}});
    ASSERT_TRUE(event = pair.wait(*others.on_a)) << seed;
    EXPECT_EQ(event->syndrome, m::Syndrome::none) << seed;
    EXPECT_EQ(std::memcmp(there.data(), here.data(), 100), 0) << seed;
  }
}

TEST(Limits, AFullCompletionQueueIsNotOverwritten) {
  Pair pair;
  TestQueue small_a(*pair.a, pair.pd_a, 64, 16, 4);
  TestQueue small_b(*pair.b, pair.pd_b, 64, 16, 4);
  ASSERT_TRUE(small_a.connect(pair.b->address(), small_b.qpn));
  ASSERT_TRUE(small_b.connect(pair.a->address(), small_a.qpn));
  for (int i = 0; i < 6; ++i) small_a.post({.opcode = m::Opcode::nop});
  pair.drive();
  EXPECT_EQ(pair.a->counts().completion_overruns, 2u);
  for (std::uint16_t i = 0; i < 4; ++i) {
    const auto event = small_a.poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, i);
  }
}

TEST_P(Faults, AnEngineThatIsNeverDrivenIsGivenUpAfterTheTimeout) {
  Pair pair(PairConfig(GetParam()), 64, 20'000'000);
  std::vector<std::byte> target(8);
  pair.qa->post({.opcode = m::Opcode::rdma_write,
                 .raddr = address_of(target.data()),
                 .rkey = pair.reg_b(target.data(), 8),
                 .inlined = pattern(8, 1)});
  const auto start = sys::now_ns();
  std::optional<Event> event;
  while (!(event = pair.qa->poll()) && sys::now_ns() - start < 20'000'000'000) pair.a->drive(pair.qa->qpn);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_GE(sys::now_ns() - start, 20'000'000);
  EXPECT_LT(sys::now_ns() - start, 20'000'000'000);
}

// A child with an engine of its own, killed in the middle of everything.
TEST(Peers, AKilledPeerFailsItsQueuePairsAndNothingElse) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  auto a = Engine::open({}).value();
  const std::uint32_t pd = a->alloc_pd();
  TestQueue qa(*a, pd);
  const strait_nic_address home = a->address();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto b = Engine::open({}).value();
    TestQueue qb(*b, b->alloc_pd());
    static std::array<std::byte, 64> memory;
    strait_nic_mr_request request{};
    request.pd = 1;
    request.access = STRAIT_NIC_REMOTE_WRITE;
    request.fd = -1;
    request.address = address_of(memory.data());
    request.length_bytes = memory.size();
    const std::uint32_t key = b->register_memory(request)->rkey;
    struct {
      strait_nic_address address;
      std::uint32_t qpn, key;
      std::uint64_t at;
    } told{b->address(), qb.qpn, key, address_of(memory.data())};
    if (!qb.connect(home, qa.qpn)) ::_exit(3);
    if (::write(pipe_fds[1], &told, sizeof told) != sizeof told) ::_exit(2);
    while (true) b->drive(0);
  }
  struct {
    strait_nic_address address;
    std::uint32_t qpn, key;
    std::uint64_t at;
  } told{};
  while (!sys::nap_on(pipe_fds[0], 0)) a->drive(0);  // lets the child's engine in
  ASSERT_EQ(::read(pipe_fds[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
  ASSERT_TRUE(qa.connect(told.address, told.qpn));
  const Wqe wqe{.opcode = m::Opcode::rdma_write, .raddr = told.at, .rkey = told.key, .inlined = pattern(8, 1)};
  const auto deadline = sys::Deadline::after_ns(60'000'000'000);
  std::optional<Event> event;
  for (int i = 0; i < 200; ++i) {
    qa.post(wqe);
    while (!(event = qa.poll()) && !deadline.passed()) a->drive(qa.qpn);
    ASSERT_TRUE(event);
    // The child may still be connecting its side; then it has no queue pair to answer with and the first write is
    // refused.
    ASSERT_EQ(event->syndrome, m::Syndrome::none) << i;
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  qa.post(wqe);
  while (!(event = qa.poll()) && !deadline.passed()) a->drive(qa.qpn);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::transport_retry_exceeded);
  EXPECT_EQ(a->counts().links_lost, 1u);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST(Sleeping, AnArmedEngineIsWokenByAMessage) {
  Pair pair;
  std::vector<std::byte> target(8);
  const std::uint32_t key = pair.reg_b(target.data(), 8);
  for (int i = 0; i < 50; ++i) {
    pair.drive(4);
    ASSERT_TRUE(pair.b->arm());
    EXPECT_FALSE(sys::nap_on(pair.b->event_fd(), 0));
    pair.qa->post({.opcode = m::Opcode::rdma_write,
                   .raddr = address_of(target.data()),
                   .rkey = key,
                   .inlined = pattern(8, static_cast<unsigned>(i))});
    EXPECT_TRUE(sys::nap_on(pair.b->event_fd(), 1'000'000'000)) << "the message must wake it";
    ASSERT_TRUE(pair.wait(*pair.qa));
  }
}

TEST(Sleeping, APeerThatLeftDoesNotKeepTheEngineAwake) {
  Pair pair;
  pair.qb.reset();
  pair.b.reset();
  const auto deadline = sys::Deadline::after_ns(60'000'000'000);
  while (pair.a->counts().links_lost == 0 && !deadline.passed()) pair.a->drive(0);
  ASSERT_EQ(pair.a->counts().links_lost, 1u);
  ASSERT_TRUE(pair.a->arm());
  EXPECT_FALSE(sys::nap_on(pair.a->event_fd(), 0)) << "its queue pair is still there, and nothing is left to be told";
}

TEST(Sleeping, WorkThatWaitsKeepsTheEngineAwake) {
  Pair pair;
  std::vector<std::byte> target(8);
  const std::uint32_t key = pair.reg_b(target.data(), 8);
  pair.qa->post(
      {.opcode = m::Opcode::rdma_write, .raddr = address_of(target.data()), .rkey = key, .inlined = pattern(8, 1)});
  EXPECT_FALSE(pair.b->arm()) << "a message is there";
  pair.drive();
  pair.qa->write({.opcode = m::Opcode::nop});
  pair.qa->publish();
  EXPECT_FALSE(pair.a->arm()) << "a doorbell was rung";
}

TEST(Memory, ImportsOnlyDescriptorsThatCannotShrink) {
  MemoryTable table;
  strait_nic_mr_request request{};
  request.length_bytes = 8192;
  request.address = 0x1000'0000;
  const int plain = ::memfd_create("plain", 0);
  ASSERT_EQ(::ftruncate(plain, 8192), 0);
  request.fd = plain;
  const auto refused = table.add(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("not sealed against shrinking"), std::string::npos) << refused.error().text;
  ::close(plain);
  const sys::Fd sealed = sys::make_sealed_memfd("sealed", 8192).value();
  request.fd = sealed.get();
  request.length_bytes = 8193;
  EXPECT_FALSE(table.add(request)) << "past the end";
  request.length_bytes = 4000;
  request.fd_offset = 96;
  const auto made = table.add(request);
  ASSERT_TRUE(made) << made.error().text;
  Registration* registration = table.find(made->lkey);
  ASSERT_TRUE(write_bytes(*registration, 0x1000'0000 + 10, pattern(4, 1).data(), 4));
  const sys::Mapping view = sys::map_file(sealed.get(), 0, 8192, sys::Protect::read).value();
  EXPECT_EQ(std::memcmp(view.data() + 106, pattern(4, 1).data(), 4), 0);
  request.fd = 0x7fff;
  EXPECT_FALSE(table.add(request));
}

}  // namespace
}  // namespace strait::soft::nic::testing
