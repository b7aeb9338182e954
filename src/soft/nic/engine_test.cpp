// SPDX-License-Identifier: Apache-2.0
// Every operation of the software NIC between two engines, over every carrier alike.
#include <array>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

class Operations : public ::testing::TestWithParam<Over> {
 protected:
  static PairConfig config() { return PairConfig(GetParam()); }
  static bool packets() { return GetParam() == Over::packets; }
};
INSTANTIATE_TEST_SUITE_P(Over, Operations, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) {
                           return each.param == Over::one_copy           ? "one_copy"
                                  : each.param == Over::through_the_ring ? "through_the_ring"
                                                                         : "packets";
                         });

TEST_P(Operations, WritesOfEverySizeArriveWhole) {
  Pair pair(config());
  std::vector<std::byte> target(1 << 21);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  for (const std::size_t n :
       {1u, 7u, 8u, 16u, 17u, 63u, 64u, 65u, 4096u, 8191u, 8192u, 8193u, 65536u, 100'003u, 1u << 20, (1u << 20) + 1}) {
    auto source = pattern(n, static_cast<unsigned>(n));
    const std::uint32_t lkey = pair.reg_a(source.data(), n);
    const std::uint64_t index =
        pair.qa->post({.opcode = m::Opcode::rdma_write,
                       .raddr = address_of(target.data()) + 5,
                       .rkey = rkey,
                       .data = {{address_of(source.data()), static_cast<std::uint32_t>(n), lkey}}});
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event) << n;
    EXPECT_EQ(event->opcode, m::CqeOpcode::requester) << static_cast<int>(event->syndrome);
    EXPECT_EQ(event->counter, index & 0xffff);
    EXPECT_EQ(event->send_opcode, m::Opcode::rdma_write);
    EXPECT_EQ(std::memcmp(target.data() + 5, source.data(), n), 0) << n;
    EXPECT_TRUE(pair.a->deregister_memory(lkey));
  }
  const EngineCounts b = pair.b->counts();
  EXPECT_EQ(b.cross_copies > 0, GetParam() == Over::one_copy);
}

TEST_P(Operations, ReadsOfEverySizeArriveWhole) {
  Pair pair(config());
  auto source = pattern(1 << 20, 3);
  const std::uint32_t rkey = pair.reg_b(source.data(), source.size());
  for (const std::size_t n : {1u, 8u, 16u, 17u, 100u, 8192u, 8193u, 300'000u, 1u << 20}) {
    std::vector<std::byte> into(n);
    const std::uint32_t lkey = pair.reg_a(into.data(), n);
    pair.qa->post({.opcode = m::Opcode::rdma_read,
                   .raddr = address_of(source.data()),
                   .rkey = rkey,
                   .data = {{address_of(into.data()), static_cast<std::uint32_t>(n), lkey}}});
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->opcode, m::CqeOpcode::requester);
    EXPECT_EQ(event->bytes, n);
    EXPECT_EQ(std::memcmp(into.data(), source.data(), n), 0) << n;
    EXPECT_TRUE(pair.a->deregister_memory(lkey));
  }
}

TEST_P(Operations, ManyPiecesAreGatheredAndScattered) {
  Pair pair(config());
  auto source = pattern(200'000, 9);
  std::vector<std::byte> target(200'000);
  const std::uint32_t lkey = pair.reg_a(source.data(), source.size());
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  const std::uint64_t base = address_of(source.data());
  pair.qa->post(
      {.opcode = m::Opcode::rdma_write,
       .raddr = address_of(target.data()),
       .rkey = rkey,
       .data = {{base + 100'000, 50'000, lkey}, {base, 1, lkey}, {base + 1, 49'999, lkey}, {base + 7, 3, lkey}}});
  ASSERT_TRUE(pair.wait(*pair.qa));
  std::vector<std::byte> expected(source.begin() + 100'000, source.begin() + 150'000);
  expected.insert(expected.end(), source.begin(), source.begin() + 50'000);
  expected.insert(expected.end(), source.begin() + 7, source.begin() + 10);
  EXPECT_EQ(std::memcmp(target.data(), expected.data(), expected.size()), 0);
  // And back, scattered into two pieces.
  std::vector<std::byte> back(100'003);
  const std::uint32_t back_key = pair.reg_a(back.data(), back.size());
  pair.qa->post({.opcode = m::Opcode::rdma_read,
                 .raddr = address_of(target.data()),
                 .rkey = rkey,
                 .data = {{address_of(back.data()) + 3, 100'000, back_key}, {address_of(back.data()), 3, back_key}}});
  ASSERT_TRUE(pair.wait(*pair.qa));
  EXPECT_EQ(std::memcmp(back.data() + 3, expected.data(), 100'000), 0);
  EXPECT_EQ(std::memcmp(back.data(), expected.data() + 100'000, 3), 0);
}

TEST_P(Operations, SendsFillReceivesInOrderWithImmediate) {
  Pair pair(config());
  std::vector<std::byte> into(3 * 70'000);
  const std::uint32_t lkey_b = pair.reg_b(into.data(), into.size());
  auto source = pattern(70'000, 4);
  const std::uint32_t lkey = pair.reg_a(source.data(), source.size());
  const std::uint32_t sizes[] = {10, 5000, 70'000};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::uint64_t at = address_of(into.data()) + i * 70'000;
    pair.qb->post_receive({{at, 30, lkey_b}, {at + 30, 69'970, lkey_b}});
  }
  for (const std::uint32_t n : sizes) {
    pair.qa->post(
        {.opcode = m::Opcode::send_imm, .data = {{address_of(source.data()), n, lkey}}, .imm = 0x01020304u + n});
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto event = pair.wait(*pair.qb);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_imm);
    EXPECT_EQ(event->counter, i);
    EXPECT_EQ(event->bytes, sizes[i]);
    std::uint32_t imm = 0;
    const std::uint32_t sent = 0x01020304u + sizes[i];
    std::memcpy(&imm, &sent, 4);
    EXPECT_EQ(__builtin_bswap32(event->imm), imm) << "an immediate is four opaque bytes";
    EXPECT_EQ(std::memcmp(into.data() + i * 70'000, source.data(), sizes[i]), 0);
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.wait(*pair.qa));
}

TEST_P(Operations, WriteWithImmediateTakesOneReceiveAndPlainWriteNone) {
  Pair pair(config());
  std::vector<std::byte> target(64);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  pair.qb->post_receive({});
  pair.qa->post(
      {.opcode = m::Opcode::rdma_write, .raddr = address_of(target.data()), .rkey = rkey, .inlined = pattern(8, 1)});
  ASSERT_TRUE(pair.wait(*pair.qa));
  EXPECT_FALSE(pair.qb->poll());
  pair.qa->post({.opcode = m::Opcode::rdma_write_imm,
                 .raddr = address_of(target.data()),
                 .rkey = rkey,
                 .inlined = pattern(12, 2),
                 .imm = 5});
  const auto event = pair.wait(*pair.qb);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(event->bytes, 12u);
  ASSERT_TRUE(pair.wait(*pair.qa));
}

// Memory in a sealed file, registered for local use: the owner maps it instead of copying by system call.
TEST(Engine, SourcesInAFileAreMappedByTheOwnerAndLetGoAtDeregistration) {
  Pair pair;
  constexpr std::uint32_t kBytes = 1 << 16;
  const sys::Fd file = sys::make_sealed_memfd("source", 4096 + kBytes).value();
  const sys::Mapping view = sys::map_file(file.get(), 0, 4096 + kBytes, sys::Protect::read_write).value();
  std::vector<std::byte> target(kBytes);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  for (unsigned round = 1; round <= 3; ++round) {
    const auto bytes = pattern(kBytes, round);
    std::memcpy(view.data() + 100, bytes.data(), kBytes);
    strait_nic_mr_request request{};
    request.pd = pair.pd_a;
    request.access = STRAIT_NIC_LOCAL_WRITE;
    request.fd = file.get();
    request.fd_offset = 100;
    request.address = 0x5000'0000;  // the same name each round, another registration behind it
    request.length_bytes = kBytes;
    const std::uint32_t lkey = pair.a->register_memory(request).value().lkey;
    pair.qa->post({.opcode = m::Opcode::rdma_write,
                   .raddr = address_of(target.data()),
                   .rkey = rkey,
                   .data = {{0x5000'0000, kBytes, lkey}}});
    auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
    EXPECT_EQ(target, bytes);
    // And back: the owner writes into the mapped destination.
    std::memset(view.data() + 100, 0, kBytes);
    pair.qa->post({.opcode = m::Opcode::rdma_read,
                   .raddr = address_of(target.data()),
                   .rkey = rkey,
                   .data = {{0x5000'0000, kBytes, lkey}}});
    ASSERT_TRUE(pair.wait(*pair.qa));
    EXPECT_EQ(std::memcmp(view.data() + 100, bytes.data(), kBytes), 0);
    EXPECT_EQ(pair.b->counts().mapped_copies, 2 * round);
    EXPECT_TRUE(pair.a->deregister_memory(lkey));
  }
}

TEST_P(Operations, AtomicsReturnTheOldValueAndCarriesStopAtBoundaries) {
  Pair pair(config());
  alignas(8) std::array<std::uint64_t, 4> words{40, 7, 0x00ff00ff00ff00ffull, 0x1111111122222222ull};
  alignas(8) std::uint64_t old = 0;
  const std::uint32_t rkey = pair.reg_b(words.data(), sizeof words);
  const std::uint32_t lkey = pair.reg_a(&old, 8);
  const auto run = [&](m::Opcode opcode, std::uint8_t opmod, unsigned word, std::vector<std::uint64_t> atomic,
                       std::uint32_t width = 8) {
    pair.qa->post({.opcode = opcode,
                   .raddr = address_of(&words[word]),
                   .rkey = rkey,
                   .data = {{address_of(&old), width, lkey}},
                   .opmod = opmod,
                   .atomic = std::move(atomic)});
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->opcode, m::CqeOpcode::requester) << static_cast<int>(event->syndrome);
    EXPECT_EQ(event->bytes, width);
  };
  run(m::Opcode::atomic_fa, 0, 0, {2, 0xdeadbeef});
  EXPECT_EQ(old, 40u);
  EXPECT_EQ(words[0], 42u);
  run(m::Opcode::atomic_cs, 0, 1, {100, 7});
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(words[1], 100u);
  run(m::Opcode::atomic_cs, 0, 1, {200, 7});
  EXPECT_EQ(old, 100u);
  EXPECT_EQ(words[1], 100u) << "a compare that fails changes nothing";
  if (packets()) return;  // the masked forms have no packets
  // Four 16-bit fields: each wraps within itself.
  words[2] = 0xffff0001ffff0001ull;
  run(m::Opcode::atomic_masked_fa, m::kOpmodMasked8, 2, {0x0001000100010001ull, 0x8000800080008000ull});
  EXPECT_EQ(words[2], 0x0000000200000002ull);
  run(m::Opcode::atomic_masked_fa, m::kOpmodMasked8, 2, {0xffull, ~0ull});
  EXPECT_EQ(words[2], 0x00000002000000fdull) << "all boundaries set: exclusive or";
  run(m::Opcode::atomic_masked_cs, m::kOpmodMasked8, 3, {0xff00, 0x22, 0xff00, 0xff});
  EXPECT_EQ(old, 0x1111111122222222ull);
  EXPECT_EQ(words[3], 0x111111112222ff22ull);
  // 4 bytes wide: swap, compare, swap mask, compare mask as 32-bit words.
  words[0] = 5;
  run(m::Opcode::atomic_masked_cs, m::kOpmodMasked4, 0, {0x0000000900000005ull, 0xffffffffffffffffull}, 4);
  EXPECT_EQ(static_cast<std::uint32_t>(words[0]), 9u);
  run(m::Opcode::atomic_masked_fa, m::kOpmodMasked4, 0, {0x0000000300000000ull, 0}, 4);
  EXPECT_EQ(static_cast<std::uint32_t>(words[0]), 12u);
}

TEST_P(Operations, UnsignaledWorkCompletesWithTheNextSignaledOne) {
  Pair pair(config());
  std::vector<std::byte> target(64);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  std::uint64_t last = 0;
  for (int i = 0; i < 8; ++i) {
    last = pair.qa->write({.opcode = m::Opcode::rdma_write,
                           .raddr = address_of(target.data()) + static_cast<std::uint64_t>(i) * 8,
                           .rkey = rkey,
                           .inlined = pattern(8, static_cast<unsigned>(i)),
                           .flags = static_cast<std::uint8_t>(i == 7 ? m::kCompletionAlways : 0)});
  }
  pair.qa->publish();
  const auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->counter, last & 0xffff);
  pair.drive(8);
  EXPECT_FALSE(pair.qa->poll()) << "one completion for eight";
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(std::memcmp(target.data() + i * 8, pattern(8, i).data(), 8), 0);
}

TEST_P(Operations, NopsCompleteInOrderAndFencesWaitForReads) {
  Pair pair(config());
  std::vector<std::byte> remote(1 << 16);
  std::vector<std::byte> local(1 << 16);
  const std::uint32_t rkey = pair.reg_b(remote.data(), remote.size());
  const std::uint32_t lkey = pair.reg_a(local.data(), local.size());
  const auto read = pair.qa->write({.opcode = m::Opcode::rdma_read,
                                    .raddr = address_of(remote.data()),
                                    .rkey = rkey,
                                    .data = {{address_of(local.data()), 1 << 16, lkey}}});
  const auto nop = pair.qa->write({.opcode = m::Opcode::nop});
  const auto fenced = pair.qa->write({.opcode = m::Opcode::rdma_write,
                                      .raddr = address_of(remote.data()),
                                      .rkey = rkey,
                                      .inlined = pattern(8, 1),
                                      .flags = m::kCompletionAlways | m::kFenceAndInitiatorSmall});
  pair.qa->publish();
  for (const std::uint64_t index : {read, nop, fenced}) {
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->counter, index & 0xffff);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
  }
}

TEST_P(Operations, BothDoorbellConventionsAndRepeatedDoorbellsGiveTheSameSequence) {
  Pair pair(config());
  std::vector<std::byte> target(8);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  const Wqe wqe{
      .opcode = m::Opcode::rdma_write, .raddr = address_of(target.data()), .rkey = rkey, .inlined = pattern(8, 1)};
  // The next free index in the register and no record at all, as device libraries may do it.
  pair.qa->write(wqe);
  std::uint64_t bell = 0;
  put32(reinterpret_cast<std::byte*>(&bell), static_cast<std::uint32_t>(pair.qa->pi) << 8);
  put32(reinterpret_cast<std::byte*>(&bell) + 4, pair.qa->qpn << 8);
  *pair.qa->doorbell() = bell;
  ASSERT_TRUE(pair.wait(*pair.qa));
  // Record only, no doorbell.
  pair.qa->write(wqe);
  put32(pair.qa->record() + 4, static_cast<std::uint32_t>(pair.qa->pi));
  ASSERT_TRUE(pair.wait(*pair.qa));
  // The same doorbell again and again changes nothing.
  pair.qa->post(wqe);
  for (int i = 0; i < 5; ++i) {
    pair.qa->publish();
    pair.drive();
  }
  ASSERT_TRUE(pair.wait(*pair.qa));
  pair.drive();
  EXPECT_FALSE(pair.qa->poll());
  // A record that jumps further than the ring is not believed.
  put32(pair.qa->record() + 4, static_cast<std::uint32_t>(pair.qa->pi + 1000));
  pair.drive();
  EXPECT_FALSE(pair.qa->poll());
  pair.qa->post(wqe);
  ASSERT_TRUE(pair.wait(*pair.qa));
}

TEST_P(Operations, RingIndicesWrapSixteenBitsManyTimes) {
  Pair pair(config(), 16);
  std::vector<std::byte> target(32);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  for (unsigned i = 0; i < 70'000; ++i) {
    // Two blocks each: the payload crosses the end of the 16-block ring every now and then.
    const bool large = i % 7 == 3;
    pair.qa->post({.opcode = m::Opcode::rdma_write,
                   .raddr = address_of(target.data()),
                   .rkey = rkey,
                   .inlined = pattern(large ? 32 : 8, i),
                   .flags = m::kCompletionAlways});
    std::optional<Event> event;
    while (!(event = pair.qa->poll())) pair.drive(1);
    ASSERT_EQ(event->syndrome, m::Syndrome::none) << i;
    if (i % 1000 == 3) {
      const std::size_t n = large ? 32 : 8;
      ASSERT_EQ(std::memcmp(target.data(), pattern(n, i).data(), n), 0) << i;
    }
  }
}

TEST(Engine, LongEntriesPutTheStructureInTheirSecondHalf) {
  Pair pair;
  TestQueue long_a(*pair.a, pair.pd_a, 64, 16, 32, ~0u, 128);
  TestQueue long_b(*pair.b, pair.pd_b, 64, 16, 32, ~0u, 128);
  ASSERT_TRUE(long_a.connect(pair.b->address(), long_b.qpn));
  ASSERT_TRUE(long_b.connect(pair.a->address(), long_a.qpn));
  std::vector<std::byte> target(8);
  const std::uint32_t rkey = pair.reg_b(target.data(), target.size());
  for (int i = 0; i < 100; ++i) {
    long_a.post(
        {.opcode = m::Opcode::rdma_write, .raddr = address_of(target.data()), .rkey = rkey, .inlined = pattern(8, 1)});
    const auto event = pair.wait(long_a);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->qpn, long_a.qpn);
  }
}

TEST(Engine, QueuePairsOfOneEngineReachEachOther) {
  auto engine = Engine::open({}).value();
  const std::uint32_t pd = engine->alloc_pd();
  TestQueue one(*engine, pd);
  TestQueue two(*engine, pd);
  ASSERT_TRUE(one.connect(engine->address(), two.qpn));
  ASSERT_TRUE(two.connect(engine->address(), one.qpn));
  auto source = pattern(50'000, 2);
  std::vector<std::byte> target(50'000);
  strait_nic_mr_request request{sizeof request,
                                pd,
                                STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE,
                                -1,
                                0,
                                address_of(source.data()),
                                source.size(),
                                nullptr,
                                -1,
                                0,
                                0};
  const std::uint32_t lkey = engine->register_memory(request)->lkey;
  request.address = address_of(target.data());
  const std::uint32_t rkey = engine->register_memory(request)->rkey;
  for (TestQueue* queue : {&one, &two}) {
    std::memset(target.data(), 0, target.size());
    queue->post({.opcode = m::Opcode::rdma_write,
                 .raddr = address_of(target.data()),
                 .rkey = rkey,
                 .data = {{address_of(source.data()), 50'000, lkey}}});
    std::optional<Event> event;
    for (int i = 0; i < 1000 && !(event = queue->poll()); ++i) engine->drive(0);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::none);
    EXPECT_EQ(std::memcmp(target.data(), source.data(), source.size()), 0);
  }
}

TEST(Engine, AnAcknowledgementRidesOnTheNextMessageTheOtherWay) {
  Pair pair;
  std::vector<std::byte> memory_a(8);
  std::vector<std::byte> memory_b(8);
  const std::uint32_t key_a = pair.reg_a(memory_a.data(), 8);
  const std::uint32_t key_b = pair.reg_b(memory_b.data(), 8);
  for (int i = 0; i < 100; ++i) {
    pair.qa->post({.opcode = m::Opcode::rdma_write,
                   .raddr = address_of(memory_b.data()),
                   .rkey = key_b,
                   .inlined = pattern(8, 1)});
    pair.b->drive(pair.qb->qpn);
    pair.qb->post({.opcode = m::Opcode::rdma_write,
                   .raddr = address_of(memory_a.data()),
                   .rkey = key_a,
                   .inlined = pattern(8, 2)});
    pair.a->drive(pair.qa->qpn);
    ASSERT_TRUE(pair.qa->poll()) << "completed by the message that came back";
    while (!pair.qb->poll()) pair.drive(1);
  }
  EXPECT_GE(pair.b->counts().acks_carried, 99u);
}

}  // namespace
}  // namespace strait::soft::nic::testing
