// SPDX-License-Identifier: Apache-2.0
// Keys made of parts of others, filled by the work requests that libmlx5 writes; used by this side and by peers, over
// every carrier.
#include "soft/nic/indirect.hpp"

#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kRead = STRAIT_NIC_REMOTE_READ, kWrite = STRAIT_NIC_REMOTE_WRITE;

struct Strided {
  std::uint64_t addr;
  std::uint16_t length;
  std::uint16_t skip;
  std::uint32_t lkey;
};

struct Umr {
  std::uint32_t key = 0;
  std::uint32_t access = kAllAccess;
  std::vector<Seg> list = {};  // empty, and no strided parts either: only the rights change
  std::vector<Strided> strided = {};
  std::uint32_t rounds = 1;
};

// Byte by byte what libmlx5 writes behind the control segment for mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved.
Wqe umr(const Umr& wanted) {
  const std::size_t parts = wanted.strided.empty() ? wanted.list.size() : wanted.strided.size() + 1;
  const std::size_t list_bytes = (parts * 16 + 63) / 64 * 64;
  Wqe wqe{.opcode = m::Opcode::umr};
  wqe.raw.resize(112 + list_bytes);
  std::byte* const at = wqe.raw.data();
  at[0] = std::byte{0x80};
  at[5] = static_cast<std::byte>(list_bytes / 16);
  put64(at + 8, 1u << 29 | 1u << 13 | 0xfu << 18 | (parts != 0 ? 1u : 0u));
  std::byte* const mkey = at + 48;
  unsigned access = 0;
  if ((wanted.access & STRAIT_NIC_REMOTE_ATOMIC) != 0) access |= 0x40;
  if ((wanted.access & kWrite) != 0) access |= 0x20;
  if ((wanted.access & kRead) != 0) access |= 0x10;
  if ((wanted.access & STRAIT_NIC_LOCAL_WRITE) != 0) access |= 0x08;
  mkey[2] = static_cast<std::byte>(access);
  put32(mkey + 4, 0xffffff00 | (wanted.key & 0xff));
  std::uint64_t length = 0;
  std::byte* part = at + 112;
  for (const Seg& seg : wanted.list) {
    put32(part, seg.length);
    put32(part + 4, seg.lkey);
    put64(part + 8, seg.addr);
    part += 16;
    length += seg.length;
  }
  if (!wanted.strided.empty()) {
    std::byte* const block = part;
    for (const Strided& one : wanted.strided) {
      part += 16;
      put32(part, (std::uint32_t{one.length} + one.skip) << 16 | one.length);
      put32(part + 4, one.lkey);
      put64(part + 8, one.addr);
      length += one.length;
    }
    put32(block, static_cast<std::uint32_t>(length));
    put32(block + 4, 0x400);
    put32(block + 8, wanted.rounds);
    put32(block + 12, static_cast<std::uint32_t>(wanted.strided.size()));
    length *= wanted.rounds;
  }
  put64(mkey + 24, length);
  put32(reinterpret_cast<std::byte*>(&wqe.imm), wanted.key);
  return wqe;
}

// What it writes for IBV_WR_LOCAL_INV.
Wqe invalidate(std::uint32_t key) {
  Wqe wqe{.opcode = m::Opcode::umr};
  wqe.raw.resize(112);
  wqe.raw[0] = std::byte{0x98};
  put64(wqe.raw.data() + 8, 1u << 29 | 1u << 13 | 1u << 14);
  wqe.raw[48] = std::byte{0x40};
  put32(wqe.raw.data() + 52, 0xffffff00);
  put32(reinterpret_cast<std::byte*>(&wqe.imm), key);
  return wqe;
}

// What mlx5dv_create_mkey asks for.
IndirectRequest empty_key(std::uint32_t pd, std::uint32_t room = 16) {
  IndirectRequest out;
  out.pd = pd;
  out.room = room;
  out.free = true;
  return out;
}

// b owns the memory and the key; a is the peer.
struct Sides : Pair {
  explicit Sides(Over over = Over::packets) : Pair(PairConfig(over)) {
    memory_key = Pair::reg_b(memory.data(), memory.size());
    source_key = Pair::reg_a(source.data(), source.size());
    key = new_key(empty_key(pd_b));
  }
  std::uint32_t new_key(IndirectRequest request) {
    const std::uint32_t made = b->add_indirect(std::move(request)).value();
    return b->name_key(made, 0).value();
  }
  m::Syndrome post(TestQueue& queue, const Wqe& wqe) {
    queue.post(wqe);
    const auto event = wait(queue);
    EXPECT_TRUE(event);
    return event ? event->syndrome : m::Syndrome::none;
  }
  m::Syndrome fill(const Umr& wanted) { return post(*qb, umr(wanted)); }
  m::Syndrome move(m::Opcode opcode, std::uint64_t at, std::uint32_t length, std::uint32_t rkey = 0) {
    return post(*qa, {.opcode = opcode,
                      .raddr = at,
                      .rkey = rkey != 0 ? rkey : key,
                      .data = {{address_of(source.data()), length, source_key}}});
  }
  m::Syndrome write(std::uint64_t at, std::uint32_t length, std::uint32_t rkey = 0) {
    return move(m::Opcode::rdma_write, at, length, rkey);
  }
  m::Syndrome read(std::uint64_t at, std::uint32_t length, std::uint32_t rkey = 0) {
    return move(m::Opcode::rdma_read, at, length, rkey);
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return address_of(memory.data()) + offset; }
  [[nodiscard]] Seg part(std::size_t offset, std::uint32_t length) const { return {at(offset), length, memory_key}; }

  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20), source = pattern(1 << 20, 1);
  std::uint32_t memory_key = 0, source_key = 0, key = 0;
};

struct Indirect : ::testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Every, Indirect, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets));

TEST_P(Indirect, PeersReachTheListAsOneRange) {
  Sides s(GetParam());
  EXPECT_EQ(s.fill({.key = s.key, .list = {s.part(100, 8), s.part(5000, 300'000), s.part(7, 1)}}), m::Syndrome::none);
  std::vector<std::byte> expected(s.memory.size());
  std::memcpy(expected.data() + 100, s.source.data(), 8);
  std::memcpy(expected.data() + 5000, s.source.data() + 8, 300'000);
  std::memcpy(expected.data() + 7, s.source.data() + 300'008, 1);
  ASSERT_EQ(s.write(0, 300'009), m::Syndrome::none);
  EXPECT_TRUE(s.memory == expected);
  const std::vector<std::byte> sent = s.source;
  std::fill(s.source.begin(), s.source.end(), std::byte{0});
  ASSERT_EQ(s.read(3, 300'006), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(s.source.data(), sent.data() + 3, 300'006), 0);
  EXPECT_EQ(s.source[300'006], std::byte{0});
}

TEST_P(Indirect, PartsThatRepeatAreTakenInTurn) {
  Sides s(GetParam());
  ASSERT_EQ(s.fill({.key = s.key,
                    .strided = {{s.at(0), 8, 2, s.memory_key}, {s.at(600'000), 5, 0, s.memory_key}},
                    .rounds = 10'000}),
            m::Syndrome::none);
  std::vector<std::byte> expected(s.memory.size());
  constexpr std::uint32_t from = 6, length = 13 * 9'990;
  for (std::uint32_t i = 0; i < length; ++i) {
    const std::uint32_t round = (from + i) / 13, rest = (from + i) % 13;
    expected[rest < 8 ? round * 10 + rest : 600'000 + round * 5 + rest - 8] = s.source[i];
  }
  ASSERT_EQ(s.write(from, length), m::Syndrome::none);
  EXPECT_TRUE(s.memory == expected);
}

TEST_P(Indirect, ThisSideSendsFromItAndReceivesIntoIt) {
  Sides s(GetParam());
  const std::uint32_t theirs = s.a->add_indirect(empty_key(s.pd_a)).value();
  const std::uint32_t sent = s.a->name_key(theirs, 0).value();
  ASSERT_EQ(s.post(*s.qa, umr({.key = sent,
                               .access = 0,
                               .list = {{address_of(s.source.data()) + 1000, 50'000, s.source_key},
                                        {address_of(s.source.data()), 1000, s.source_key}}})),
            m::Syndrome::none);
  ASSERT_EQ(s.fill({.key = s.key, .access = STRAIT_NIC_LOCAL_WRITE, .list = {s.part(10, 11), s.part(90, 50'989)}}),
            m::Syndrome::none);
  s.qb->post_receive({{0, 51'000, s.key}});
  s.qa->post({.opcode = m::Opcode::send, .data = {{0, 51'000, sent}}});
  const auto received = s.wait(*s.qb);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->syndrome, m::Syndrome::none);
  EXPECT_EQ(received->bytes, 51'000u);
  EXPECT_EQ(s.wait(*s.qa)->syndrome, m::Syndrome::none);
  std::vector<std::byte> message(s.source.begin() + 1000, s.source.begin() + 51'000);
  message.insert(message.end(), s.source.begin(), s.source.begin() + 1000);
  EXPECT_EQ(std::memcmp(s.memory.data() + 10, message.data(), 11), 0);
  EXPECT_EQ(std::memcmp(s.memory.data() + 90, message.data() + 11, 50'989), 0);
  // From memory of one piece, which the other side may fetch by itself.
  s.qb->post_receive({{1, 40'000, s.key}, s.part(200'000, 5'000)});
  s.qa->post({.opcode = m::Opcode::send, .data = {{address_of(s.source.data()), 45'000, s.source_key}}});
  ASSERT_EQ(s.wait(*s.qb)->syndrome, m::Syndrome::none);
  EXPECT_EQ(s.wait(*s.qa)->syndrome, m::Syndrome::none);
  EXPECT_EQ(std::memcmp(s.memory.data() + 11, s.source.data(), 10), 0);
  EXPECT_EQ(std::memcmp(s.memory.data() + 90, s.source.data() + 10, 39'990), 0);
  EXPECT_EQ(std::memcmp(s.memory.data() + 200'000, s.source.data() + 40'000, 5'000), 0);
  // And what a read brings.
  ASSERT_EQ(s.post(*s.qa, umr({.key = sent,
                               .access = STRAIT_NIC_LOCAL_WRITE,
                               .list = {{address_of(s.source.data()) + 77, 30'000, s.source_key},
                                        {address_of(s.source.data()), 70, s.source_key}}})),
            m::Syndrome::none);
  ASSERT_EQ(
      s.post(*s.qa,
             {.opcode = m::Opcode::rdma_read, .raddr = s.at(90), .rkey = s.memory_key, .data = {{0, 30'070, sent}}}),
      m::Syndrome::none);
  EXPECT_EQ(std::memcmp(s.source.data() + 77, s.memory.data() + 90, 30'000), 0);
  EXPECT_EQ(std::memcmp(s.source.data(), s.memory.data() + 30'090, 70), 0);
}

TEST_P(Indirect, EndsWhereItsPartsEnd) {
  for (const auto& [at, length] :
       {std::pair{0u, 17u}, std::pair{16u, 1u}, std::pair{~0u, 2u}, std::pair{0u, 100'000u}}) {
    Sides s(GetParam());
    ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(0, 8), s.part(64, 8)}}), m::Syndrome::none);
    EXPECT_EQ(s.write(at, length), m::Syndrome::remote_access);
    EXPECT_TRUE(s.memory == std::vector<std::byte>(s.memory.size()));
  }
  Sides s(GetParam());
  ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(0, 8), s.part(64, 8)}}), m::Syndrome::none);
  EXPECT_EQ(s.post(*s.qb, {.opcode = m::Opcode::send, .data = {{0, 17, s.key}}}), m::Syndrome::local_protection);
}

TEST_P(Indirect, PartsMustBeThereAndAllowIt) {
  const auto written_to = [&](auto list_of) {
    Sides s(GetParam());
    EXPECT_EQ(s.fill({.key = s.key, .list = list_of(s)}), m::Syndrome::none);
    const m::Syndrome syndrome = s.write(0, 16);
    EXPECT_EQ(std::count(s.memory.begin(), s.memory.end(), std::byte{0}), std::ssize(s.memory));
    return syndrome;
  };
  using List = std::vector<Seg>;
  EXPECT_EQ(written_to([](Sides& s) {
              return List{s.part(0, 8), {s.at(8), 8, 0x123400}};
            }),
            m::Syndrome::remote_access)
      << "no such key";
  EXPECT_EQ(written_to([](Sides& s) {
              return List{s.part(0, 8), s.part(s.memory.size() - 7, 8)};
            }),
            m::Syndrome::remote_access)
      << "beyond the registration";
  EXPECT_EQ(written_to([](Sides& s) {
              const std::uint32_t other = s.reg(*s.b, s.b->alloc_pd(), s.memory.data(), 4096);
              return List{s.part(0, 8), {s.at(0), 8, other}};
            }),
            m::Syndrome::remote_access)
      << "another domain's";
  EXPECT_EQ(written_to([](Sides& s) {
              const std::uint32_t other = s.reg(*s.b, s.pd_b, s.memory.data(), 4096, kRead);
              return List{s.part(0, 8), {s.at(0), 8, other}};
            }),
            m::Syndrome::remote_access)
      << "only to be read";
  EXPECT_EQ(written_to([](Sides& s) {
              const std::uint32_t window = s.b->alloc_window(s.pd_b, 2).value();
              return List{s.part(0, 8), {s.at(0), 8, window}};
            }),
            m::Syndrome::remote_access)
      << "a window";
  EXPECT_EQ(written_to([](Sides& s) {
              const std::uint32_t other = s.reg_b(s.memory.data(), 4096);
              EXPECT_TRUE(s.b->deregister_memory(other));
              return List{s.part(0, 8), {s.at(0), 8, other}};
            }),
            m::Syndrome::remote_access)
      << "gone";
}

TEST_P(Indirect, GrantsOnlyTheRightsItWasGiven) {
  Sides s(GetParam());
  ASSERT_EQ(s.fill({.key = s.key, .access = kRead, .list = {s.part(0, 8), s.part(64, 8)}}), m::Syndrome::none);
  EXPECT_EQ(s.read(0, 16), m::Syndrome::none);
  // Its parts stay when only the rights change.
  ASSERT_EQ(s.fill({.key = s.key, .access = kRead | kWrite}), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 16), m::Syndrome::none);
  ASSERT_EQ(s.fill({.key = s.key, .access = kRead}), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 16), m::Syndrome::remote_access);
}

TEST_P(Indirect, AtomicsChangeAWordOfOnePart) {
  for (const bool torn : {false, true}) {
    Sides s(GetParam());
    ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(64, torn ? 12u : 16u), s.part(1024, 16)}}), m::Syndrome::none);
    const m::Syndrome syndrome = s.post(*s.qa, {.opcode = m::Opcode::atomic_fa,
                                                .raddr = 8,
                                                .rkey = s.key,
                                                .data = {{address_of(s.source.data()), 8, s.source_key}},
                                                .atomic = {5, 0}});
    std::uint64_t word = 0;
    std::memcpy(&word, s.memory.data() + 72, 8);
    EXPECT_EQ(word, torn ? 0u : 5u);
    EXPECT_EQ(syndrome, torn ? m::Syndrome::remote_operation : m::Syndrome::none);
  }
}

TEST_P(Indirect, IsInvalidatedByItsOwnerAndFilledAgain) {
  Sides s(GetParam());
  ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(0, 8)}}), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 8), m::Syndrome::none);
  EXPECT_EQ(s.post(*s.qb, invalidate(s.key)), m::Syndrome::none);
  ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(512, 8)}}), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 8), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(s.memory.data() + 512, s.source.data(), 8), 0);
  EXPECT_EQ(s.post(*s.qb, invalidate(s.key)), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 8), m::Syndrome::remote_access);
}

TEST_P(Indirect, IsInvalidatedByPeersWhoMay) {
  for (const bool may : {true, false}) {
    Sides s(GetParam());
    IndirectRequest request = empty_key(s.pd_b);
    request.peers_may_free = may;
    const std::uint32_t key = s.new_key(std::move(request));
    ASSERT_EQ(s.fill({.key = key, .list = {s.part(0, 8)}}), m::Syndrome::none);
    // The key is for all queue pairs of its domain, so these show what became of it when the first two have failed.
    const Pair::More others = s.more();
    s.qb->post_receive({});
    std::uint32_t imm = 0;
    put32(reinterpret_cast<std::byte*>(&imm), key);
    ASSERT_EQ(s.post(*s.qa, {.opcode = m::Opcode::send_inval, .imm = imm}), m::Syndrome::none);
    const auto event = s.wait(*s.qb);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, may ? m::Syndrome::none : m::Syndrome::remote_invalid_request);
    EXPECT_EQ(s.post(*others.on_a, {.opcode = m::Opcode::rdma_write, .rkey = key, .inlined = pattern(8, 1)}),
              may ? m::Syndrome::remote_access : m::Syndrome::none);
  }
}

// Over packets and through the ring a message takes many passes. What it uses goes in the middle of it.
TEST_P(Indirect, GoesWhileAMessageIsUnderWay) {
  for (const int who : {0, 1, 2}) {
    Sides s(GetParam());
    ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(0, 500'000), s.part(510'000, 500'000)}}), m::Syndrome::none);
    s.qa->post({.opcode = m::Opcode::rdma_read,
                .raddr = 0,
                .rkey = s.key,
                .data = {{address_of(s.source.data()), 1'000'000, s.source_key}}});
    s.drive(2);
    if (who == 0) {
      EXPECT_TRUE(s.b->remove_alias(s.key));
    }
    if (who == 1) {
      EXPECT_TRUE(s.b->deregister_memory(s.memory_key));
    }
    if (who == 2) s.qb->post(invalidate(s.key));
    const auto event = s.wait(*s.qa);
    ASSERT_TRUE(event);
    if (GetParam() == Over::packets) {
      EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
    }
    if (event->syndrome != m::Syndrome::none) {
      EXPECT_EQ(event->syndrome, m::Syndrome::remote_access);
    }
  }
}

TEST_P(Indirect, OfIndirectKeysAndOfItself) {
  Sides s(GetParam());
  const std::uint32_t outer = s.new_key(empty_key(s.pd_b));
  ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(100, 50), s.part(0, 50)}}), m::Syndrome::none);
  ASSERT_EQ(s.fill({.key = outer, .list = {{40, 20, s.key}, {0, 10, s.key}}}), m::Syndrome::none);
  ASSERT_EQ(s.write(0, 30, outer), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(s.memory.data() + 140, s.source.data(), 10), 0);
  EXPECT_EQ(std::memcmp(s.memory.data() + 0, s.source.data() + 10, 10), 0);
  EXPECT_EQ(std::memcmp(s.memory.data() + 100, s.source.data() + 20, 10), 0);
  ASSERT_EQ(s.fill({.key = outer, .list = {{0, 100, outer}, {0, 100, outer}, {0, 100, outer}}}), m::Syndrome::none);
  EXPECT_EQ(s.write(0, 100, outer), m::Syndrome::remote_access);
}

TEST(IndirectKey, NonsenseCompletesWithAnError) {
  struct Case {
    const char* what;
    void (*spoil)(Wqe&);
    m::Syndrome syndrome;
  };
  const Case cases[] = {
      {"no such key", [](Wqe& w) { put32(reinterpret_cast<std::byte*>(&w.imm), 0x7fff00); },
       m::Syndrome::memory_window_bind},
      {"more parts than there is room for",
       [](Wqe& w) {
         w.raw.resize(w.raw.size() + 256);
         w.raw[5] = std::byte{20};
       },
       m::Syndrome::memory_window_bind},
      {"more parts than the work request has", [](Wqe& w) { w.raw[5] = std::byte{8}; },
       m::Syndrome::local_qp_operation},
      {"a list elsewhere", [](Wqe& w) { w.raw[0] = std::byte{0}; }, m::Syndrome::memory_window_bind},
      {"a part of a list", [](Wqe& w) { w.raw[0] = std::byte{0x90}; }, m::Syndrome::memory_window_bind},
      {"a signature", [](Wqe& w) { w.raw[7] = std::byte{4}; }, m::Syndrome::memory_window_bind},
      {"a signature by the mask", [](Wqe& w) { w.raw[14] |= std::byte{0x10}; }, m::Syndrome::memory_window_bind},
      {"another page size", [](Wqe& w) { w.raw[15] |= std::byte{2}; }, m::Syndrome::memory_window_bind},
      {"free only", [](Wqe& w) { w.raw[0] = std::byte{0xa0}; }, m::Syndrome::memory_window_bind},
      {"a range that wraps",
       [](Wqe& w) {
         w.raw[15] |= std::byte{0x40};
         put64(w.raw.data() + 64, ~std::uint64_t{0});
       },
       m::Syndrome::memory_window_bind},
      {"parts of no bytes", [](Wqe& w) { put32(w.raw.data() + 112, 0); }, m::Syndrome::local_qp_operation},
      {"no parts", [](Wqe& w) { std::fill(w.raw.begin() + 112, w.raw.end(), std::byte{0}); },
       m::Syndrome::local_qp_operation},
      {"a block that never comes", [](Wqe& w) { put32(w.raw.data() + 116, 0x400); }, m::Syndrome::local_qp_operation},
      {"a block longer than its work request",
       [](Wqe& w) {
         put32(w.raw.data() + 116, 0x400);
         put64(w.raw.data() + 120, std::uint64_t{1} << 32 | 4);
       },
       m::Syndrome::local_qp_operation},
      {"a block that is not as long as its parts",
       [](Wqe& w) {
         put32(w.raw.data() + 116, 0x400);
         put64(w.raw.data() + 120, std::uint64_t{1} << 32 | 1);
         put32(w.raw.data() + 128, 0x00110011);
       },
       m::Syndrome::local_qp_operation},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Sides s;
    ASSERT_EQ(s.fill({.key = s.key, .list = {s.part(0, 8)}}), m::Syndrome::none);
    Wqe wqe = umr({.key = s.key, .list = {s.part(512, 16), s.part(1024, 8)}});
    each.spoil(wqe);
    EXPECT_EQ(s.post(*s.qb, wqe), each.syndrome);
  }
  Sides s;
  EXPECT_EQ(s.post(*s.qb, invalidate(s.key)), m::Syndrome::memory_window_bind) << "free already";
  Sides other;
  IndirectRequest fixed;
  fixed.pd = other.pd_b;
  fixed.length_bytes = 8;
  fixed.layout.add(other.memory_key, other.at(0), 8);
  EXPECT_EQ(other.fill({.key = other.new_key(std::move(fixed)), .list = {other.part(8, 8)}}),
            m::Syndrome::memory_window_bind)
      << "not for work requests";
}

TEST(IndirectKey, BelongsToADomainAndIsGoneOnce) {
  Sides s;
  EXPECT_FALSE(s.b->add_indirect(empty_key(0x7777)));
  EXPECT_FALSE(s.b->free_pd(s.pd_b));
  const std::uint32_t pd = s.b->alloc_pd();
  const std::uint32_t key = s.new_key(empty_key(pd));
  EXPECT_FALSE(s.b->free_pd(pd));
  EXPECT_EQ(s.fill({.key = key, .list = {s.part(0, 8)}}), m::Syndrome::memory_window_bind) << "another domain's";
  EXPECT_FALSE(s.b->deregister_memory(key));
  EXPECT_FALSE(s.b->free_window(key));
  EXPECT_TRUE(s.b->remove_alias(key));
  EXPECT_FALSE(s.b->remove_alias(key));
  EXPECT_TRUE(s.b->free_pd(pd));
}

// Every range of small layouts, against counting byte by byte.
TEST(IndirectLayout, FindsWhatCountingFinds) {
  for (const std::uint64_t stride : {0u, 1u, 3u, 5u, 9u}) {
    for (const std::uint64_t rounds : {1u, 2u, 4u}) {
      Layout layout;
      layout.add(1, 100, 3, stride);
      layout.add(2, 200, 1, 2);
      layout.add(3, 300, 5, stride + 1);
      layout.repeat(rounds);
      std::vector<std::pair<std::uint32_t, std::uint64_t>> bytes;
      for (std::uint64_t r = 0; r < rounds; ++r) {
        for (const Layout::Part& part : layout.parts()) {
          for (std::uint64_t i = 0; i < part.length_bytes; ++i)
            bytes.push_back({part.key, part.address + r * part.stride + i});
        }
      }
      for (std::uint64_t at = 0; at < bytes.size(); ++at) {
        EXPECT_FALSE(layout.reaches(at, bytes.size() - at + 1));
        for (std::uint64_t length = 1; at + length <= bytes.size(); ++length) {
          ASSERT_TRUE(layout.reaches(at, length));
          const Layout::At first = layout.find(at, length);
          EXPECT_EQ(std::pair(first.key, first.address), bytes[at]);
          ASSERT_GE(first.length_bytes, 1u);
          EXPECT_EQ(std::pair(first.key, first.address + first.length_bytes - 1), bytes[at + first.length_bytes - 1]);
          for (std::size_t i = 0; i < layout.parts().size(); ++i) {
            std::uint64_t low = ~std::uint64_t{0}, behind = 0;
            for (std::uint64_t j = at; j < at + length; ++j) {
              if (bytes[j].first != layout.parts()[i].key) continue;
              low = std::min(low, bytes[j].second);
              behind = std::max(behind, bytes[j].second + 1);
            }
            const Layout::At hull = layout.hull(i, at, length);
            EXPECT_EQ(hull.length_bytes, behind == 0 ? 0 : behind - low) << at << " " << length << " " << i;
            if (behind != 0) {
              EXPECT_EQ(hull.address, low);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strait::soft::nic::testing
