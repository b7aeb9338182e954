// SPDX-License-Identifier: Apache-2.0
// Registrations that change, and memory windows bound by the work requests that libmlx5 writes.
#include "soft/nic/verbs_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint32_t kRemoteWrite = STRAIT_NIC_REMOTE_WRITE, kRemoteRead = STRAIT_NIC_REMOTE_READ;

struct Bind {
  int type = 2;
  std::uint32_t old_key = 0;
  std::uint8_t variant = 0;
  std::uint64_t addr = 0;
  std::uint32_t length = 0;  // 0: it is freed
  std::uint32_t lkey = 0;
  std::uint32_t access = kRemoteWrite | kRemoteRead;
  bool zero_based = false;
};

// Byte by byte what libmlx5 writes behind the control segment.
Wqe umr(const Bind& bind, std::uint32_t qpn) {
  Wqe wqe{.opcode = m::Opcode::umr};
  wqe.raw.resize(bind.length != 0 ? 176 : 112);
  std::byte* const at = wqe.raw.data();
  unsigned flags = 0x90;
  if (bind.type == 2) flags |= bind.length != 0 ? 0x20 : 0x08;
  at[0] = static_cast<std::byte>(flags);
  at[5] = static_cast<std::byte>(bind.length != 0 ? 4 : 0);
  std::uint64_t mask = 1u << 29 | 1u << 13;
  if (bind.type == 2) mask |= 1u << 14;
  if (bind.length != 0) mask |= 1u | 1u << 6 | 0xfu << 18;
  put64(at + 8, mask);
  std::byte* const mkey = at + 48;
  put32(mkey + 4, (bind.type == 1 || bind.length == 0 ? 0xffffff00 : qpn << 8) | bind.variant);
  if (bind.length == 0) {
    mkey[0] = std::byte{0x40};
  } else {
    unsigned access = 0;
    if ((bind.access & STRAIT_NIC_REMOTE_ATOMIC) != 0) access |= 0x40;
    if ((bind.access & kRemoteWrite) != 0) access |= 0x20;
    if ((bind.access & kRemoteRead) != 0) access |= 0x10;
    mkey[2] = static_cast<std::byte>(access);
    put64(mkey + 16, bind.zero_based ? 0 : bind.addr);
    put64(mkey + 24, bind.length);
    put32(at + 112, bind.length);
    put32(at + 116, bind.lkey);
    put64(at + 120, bind.addr);
  }
  std::uint32_t imm = 0;
  put32(reinterpret_cast<std::byte*>(&imm), bind.old_key);
  wqe.imm = imm;
  return wqe;
}

// b owns the memory and binds windows; a is the peer who uses their keys.
struct Windows : VerbsPair {
  Windows() {
    raise_both();
    memory_key = VerbsPair::reg(*b, pd_b, memory, kAllAccess | kAccessBindWindow);
    source_key = reg_a(source);
  }
  ~Windows() {
    for (const std::uint32_t key : windows) EXPECT_TRUE(b->free_window(key));
  }
  std::uint32_t window(int type) { return windows.emplace_back(b->alloc_window(pd_b, type).value()); }
  m::Syndrome bind(const Bind& bind) {
    qb->post(umr(bind, qb->qpn));
    const auto event = wait(*qb);
    EXPECT_TRUE(event);
    EXPECT_EQ(event->send_opcode, m::Opcode::umr);
    return event->syndrome;
  }
  m::Syndrome write(std::uint32_t rkey, std::uint64_t at, std::uint32_t length = 8) {
    qa->post({.opcode = m::Opcode::rdma_write,
              .raddr = at,
              .rkey = rkey,
              .data = {{address_of(source.data()), length, source_key}}});
    const auto event = wait(*qa);
    EXPECT_TRUE(event);
    return event->syndrome;
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) { return address_of(memory.data()) + offset; }
  // After an error.
  void reconnect() {
    for (auto* const queue : {qa.get(), qb.get()}) {
      step(queue == qa.get() ? *a : *b, queue->qpn, QpState::reset).value();
      while (queue->poll()) {
      }
      queue->set_back();
    }
    raise_both();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(4096), source = pattern(4096, 1);
  std::uint32_t memory_key = 0, source_key = 0;
  std::vector<std::uint32_t> windows;
};

std::uint32_t next_variant(std::uint32_t key) {
  return (key & ~0xffu) | ((key + 1) & 0xff);
}

TEST(Window, Type2OpensExactlyWhatItMaps) {
  Windows w;
  const std::uint32_t old_key = w.window(2), key = next_variant(old_key);
  EXPECT_EQ(w.write(old_key, w.at(1000)), m::Syndrome::remote_access) << "not bound yet";
  w.reconnect();
  const Bind bind{.old_key = old_key,
                  .variant = static_cast<std::uint8_t>(key),
                  .addr = w.at(1000),
                  .length = 100,
                  .lkey = w.memory_key};
  ASSERT_EQ(w.bind(bind), m::Syndrome::none);
  EXPECT_EQ(w.write(key, w.at(1000), 100), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(w.memory.data() + 1000, w.source.data(), 100), 0);
  for (const auto& [offset, length] : {std::pair{999, 2}, std::pair{1000, 101}, std::pair{1100, 1}}) {
    EXPECT_EQ(w.write(key, w.at(static_cast<std::size_t>(offset)), static_cast<std::uint32_t>(length)),
              m::Syndrome::remote_access);
    w.reconnect();
  }
  EXPECT_EQ(w.write(old_key, w.at(1000)), m::Syndrome::remote_access) << "the key it had before";
}

TEST(Window, GrantsOnlyTheRightsItWasGiven) {
  Windows w;
  const std::uint32_t key = w.window(2);
  ASSERT_EQ(w.bind({.old_key = key,
                    .variant = static_cast<std::uint8_t>(key),
                    .addr = w.at(0),
                    .length = 64,
                    .lkey = w.memory_key,
                    .access = kRemoteRead}),
            m::Syndrome::none);
  w.qa->post({.opcode = m::Opcode::rdma_read,
              .raddr = w.at(0),
              .rkey = key,
              .data = {{address_of(w.source.data()), 64, w.source_key}}});
  EXPECT_EQ(w.wait(*w.qa)->syndrome, m::Syndrome::none);
  EXPECT_EQ(w.write(key, w.at(0)), m::Syndrome::remote_access);
}

TEST(Window, ZeroBasedCountsFromItsFirstByte) {
  Windows w;
  const std::uint32_t key = w.window(2);
  ASSERT_EQ(w.bind({.old_key = key,
                    .variant = static_cast<std::uint8_t>(key),
                    .addr = w.at(512),
                    .length = 64,
                    .lkey = w.memory_key,
                    .zero_based = true}),
            m::Syndrome::none);
  EXPECT_EQ(w.write(key, 8, 8), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(w.memory.data() + 520, w.source.data(), 8), 0);
  EXPECT_EQ(w.write(key, 60, 8), m::Syndrome::remote_access);
}

TEST(Window, Type2IsBoundAgainOnlyAfterItWasInvalidated) {
  Windows w;
  std::uint32_t key = w.window(2);
  const auto bind = [&] {
    return w.bind({.old_key = key,
                   .variant = static_cast<std::uint8_t>(key),
                   .addr = w.at(0),
                   .length = 64,
                   .lkey = w.memory_key});
  };
  ASSERT_EQ(bind(), m::Syndrome::none);
  ASSERT_EQ(w.bind({.old_key = key}), m::Syndrome::none);
  EXPECT_EQ(w.write(key, w.at(0)), m::Syndrome::remote_access) << "invalidated";
  w.reconnect();
  ASSERT_EQ(bind(), m::Syndrome::none);
  EXPECT_EQ(w.write(key, w.at(0)), m::Syndrome::none);
  EXPECT_EQ(bind(), m::Syndrome::memory_window_bind) << "it is bound";
  w.reconnect();
  EXPECT_EQ(w.bind({.old_key = next_variant(key)}), m::Syndrome::memory_window_bind) << "not its key";
}

TEST(Window, TheSenderOfAMessageMayInvalidateIt) {
  Windows w;
  const std::uint32_t key = w.window(2);
  ASSERT_EQ(w.bind({.old_key = key,
                    .variant = static_cast<std::uint8_t>(key),
                    .addr = w.at(0),
                    .length = 64,
                    .lkey = w.memory_key}),
            m::Syndrome::none);
  w.qb->post_receive({{w.at(2048), 64, w.memory_key}});
  Wqe inval{.opcode = m::Opcode::send_inval};
  inval.inlined = pattern(8, 2);
  put32(reinterpret_cast<std::byte*>(&inval.imm), key);
  w.qa->post(inval);
  const auto event = w.wait(*w.qb);
  ASSERT_TRUE(event && w.wait(*w.qa));
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_inval);
  EXPECT_EQ(event->imm, key);
  EXPECT_EQ(w.write(key, w.at(0)), m::Syndrome::remote_access);
}

// Type 2 belongs to the queue pair that bound it, type 1 to its domain.
TEST(Window, OtherQueuePairsUseType1Only) {
  for (const int type : {1, 2}) {
    Windows w;
    TestQueue other_a(*w.a, w.pd_a, TestShape{}), other_b(*w.b, w.pd_b, TestShape{});
    VerbsPair::raise_to(*w.a, other_a.qpn, QpType::rc, attributes_to(w.port_b->address(), other_b.qpn, 1, 2),
                        QpState::ready);
    VerbsPair::raise_to(*w.b, other_b.qpn, QpType::rc, attributes_to(w.port_a->address(), other_a.qpn, 2, 1),
                        QpState::ready);
    const std::uint32_t key = w.window(type);
    ASSERT_EQ(w.bind({.type = type,
                      .old_key = key,
                      .variant = static_cast<std::uint8_t>(key),
                      .addr = w.at(0),
                      .length = 64,
                      .lkey = w.memory_key}),
              m::Syndrome::none);
    other_a.post({.opcode = m::Opcode::rdma_write,
                  .raddr = w.at(0),
                  .rkey = key,
                  .data = {{address_of(w.source.data()), 8, w.source_key}}});
    const auto event = w.wait(other_a);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, type == 1 ? m::Syndrome::none : m::Syndrome::remote_access);
  }
}

TEST(Window, Type1IsBoundAgainAtAnyTimeAndToNothing) {
  Windows w;
  std::uint32_t key = w.window(1);
  for (std::size_t i = 0; i < 300; ++i) {
    const std::uint32_t next = next_variant(key);
    ASSERT_EQ(w.bind({.type = 1,
                      .old_key = key,
                      .variant = static_cast<std::uint8_t>(next),
                      .addr = w.at(i),
                      .length = 8,
                      .lkey = w.memory_key}),
              m::Syndrome::none);
    key = next;
    ASSERT_EQ(w.write(key, w.at(i)), m::Syndrome::none);
  }
  const std::uint32_t last = next_variant(key);
  ASSERT_EQ(w.bind({.type = 1, .old_key = key, .variant = static_cast<std::uint8_t>(last)}), m::Syndrome::none);
  EXPECT_EQ(w.write(last, w.at(0)), m::Syndrome::remote_access);
}

TEST(Window, CannotBeBoundToWhatItsOwnerMayNotGive) {
  Windows w;
  const std::uint32_t key = w.window(2);
  const std::uint32_t plain = VerbsPair::reg(*w.b, w.pd_b, w.memory, kAllAccess);
  const std::uint32_t read_only = VerbsPair::reg(*w.b, w.pd_b, w.memory, STRAIT_NIC_REMOTE_READ | kAccessBindWindow);
  const std::uint32_t other_pd = w.b->alloc_pd();
  const std::uint32_t foreign = VerbsPair::reg(*w.b, other_pd, w.memory, kAllAccess | kAccessBindWindow);
  const Bind good{.old_key = key, .variant = 9, .addr = w.at(0), .length = 64, .lkey = w.memory_key};
  const auto refused = [&](auto change) {
    Bind bad = good;
    change(bad);
    EXPECT_EQ(w.bind(bad), m::Syndrome::memory_window_bind);
    w.reconnect();
  };
  refused([&](Bind& b) { b.lkey = plain; });
  refused([&](Bind& b) { b.lkey = read_only; });
  refused([&](Bind& b) { b.lkey = foreign; });
  refused([&](Bind& b) { b.lkey = 0x12345601; });
  refused([&](Bind& b) { b.addr = w.at(4095); });
  refused([&](Bind& b) { b.old_key = w.memory_key; });
  refused([&](Bind& b) { b.type = 1; });
  EXPECT_EQ(w.bind(good), m::Syndrome::none);
}

TEST(Window, DiesWithItsMemoryAndIsNoLocalKey) {
  Windows w;
  const std::uint32_t key = w.window(2);
  std::vector<std::byte> short_lived(64);
  const std::uint32_t memory = VerbsPair::reg(*w.b, w.pd_b, short_lived, kAllAccess | kAccessBindWindow);
  ASSERT_EQ(w.bind({.old_key = key,
                    .variant = static_cast<std::uint8_t>(key),
                    .addr = address_of(short_lived.data()),
                    .length = 64,
                    .lkey = memory}),
            m::Syndrome::none);
  EXPECT_EQ(w.write(key, address_of(short_lived.data())), m::Syndrome::none);
  w.qb->post({.opcode = m::Opcode::send, .data = {{address_of(short_lived.data()), 8, key}}});
  EXPECT_EQ(w.wait(*w.qb)->syndrome, m::Syndrome::local_protection);
  w.reconnect();
  EXPECT_FALSE(w.b->deregister_memory(key)) << "it is no registration";
  w.b->deregister_memory(memory).value();
  EXPECT_EQ(w.write(key, address_of(short_lived.data())), m::Syndrome::remote_access);
}

TEST(Window, CountsForItsDomain) {
  Windows w;
  const std::uint32_t pd = w.b->alloc_pd();
  const std::uint32_t key = w.b->alloc_window(pd, 1).value();
  EXPECT_FALSE(w.b->free_pd(pd));
  EXPECT_FALSE(w.b->alloc_window(pd, 3));
  EXPECT_FALSE(w.b->alloc_window(0x999, 1));
  w.b->free_window(key).value();
  EXPECT_FALSE(w.b->free_window(key));
  w.b->free_pd(pd).value();
}

// ---- Registrations that change ----

strait_nic_mr_request request_for(std::uint32_t pd, std::vector<std::byte>& bytes, std::uint32_t access) {
  strait_nic_mr_request request{};
  request.struct_size = sizeof request;
  request.pd = pd;
  request.access = access;
  request.fd = -1;
  request.address = address_of(bytes.data());
  request.length_bytes = bytes.size();
  return request;
}

TEST(Rereg, GivesAKeyOtherBytes) {
  Windows w;
  std::vector<std::byte> other(128);
  w.b->rereg_memory(w.memory_key, kReregTranslation, request_for(w.pd_b, other, 0)).value();
  EXPECT_EQ(w.write(w.memory_key, address_of(other.data()), 128), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(other.data(), w.source.data(), 128), 0);
  EXPECT_EQ(w.write(w.memory_key, w.at(0)), m::Syndrome::remote_access) << "what it was before";
}

TEST(Rereg, GivesAKeyOtherRightsAndAnotherDomain) {
  Windows w;
  w.b->rereg_memory(w.memory_key, kReregAccess, request_for(0, w.memory, STRAIT_NIC_REMOTE_READ)).value();
  EXPECT_EQ(w.write(w.memory_key, w.at(0)), m::Syndrome::remote_access);
  w.reconnect();
  w.b->rereg_memory(w.memory_key, kReregAccess, request_for(0, w.memory, kAllAccess)).value();
  EXPECT_EQ(w.write(w.memory_key, w.at(0)), m::Syndrome::none);
  const std::uint32_t pd = w.b->alloc_pd();
  w.b->rereg_memory(w.memory_key, kReregPd, request_for(pd, w.memory, 0)).value();
  EXPECT_FALSE(w.b->free_pd(pd)) << "it has a registration now";
  EXPECT_EQ(w.write(w.memory_key, w.at(0)), m::Syndrome::remote_access);
}

TEST(Rereg, ChangesNothingWhenItIsRefused) {
  Windows w;
  std::vector<std::byte> nothing;
  EXPECT_FALSE(w.b->rereg_memory(w.memory_key, kReregTranslation, request_for(w.pd_b, nothing, 0)));
  EXPECT_FALSE(w.b->rereg_memory(w.memory_key, kReregPd, request_for(0x999, w.memory, 0)));
  EXPECT_FALSE(w.b->rereg_memory(w.memory_key, 8, request_for(w.pd_b, w.memory, 0)));
  EXPECT_FALSE(w.b->rereg_memory(0x777701, kReregAccess, request_for(w.pd_b, w.memory, 0)));
  EXPECT_FALSE(w.b->rereg_memory(w.window(2), kReregAccess, request_for(w.pd_b, w.memory, kAllAccess)));
  EXPECT_EQ(w.write(w.memory_key, w.at(0)), m::Syndrome::none);
}

TEST(Rereg, TakesWindowsFromWhatItWas) {
  Windows w;
  const std::uint32_t key = w.window(1);
  ASSERT_EQ(w.bind({.type = 1,
                    .old_key = key,
                    .variant = static_cast<std::uint8_t>(key),
                    .addr = w.at(0),
                    .length = 64,
                    .lkey = w.memory_key}),
            m::Syndrome::none);
  std::vector<std::byte> other(128);
  w.b->rereg_memory(w.memory_key, kReregTranslation, request_for(w.pd_b, other, 0)).value();
  EXPECT_EQ(w.write(key, w.at(0)), m::Syndrome::remote_access);
}

// A key that is part of another one, under addresses and rights of its own.
TEST(Alias, ReachesItsPartUnderItsOwnName) {
  Windows w;
  const auto key = w.b->add_alias({.of = w.memory_key,
                                   .pd = w.pd_b,
                                   .access = kRemoteWrite,
                                   .inner_address = w.at(1000),
                                   .address = 0x7000,
                                   .length_bytes = 100});
  ASSERT_TRUE(key) << key.error().text;
  EXPECT_EQ(w.write(*key, 0x7000, 100), m::Syndrome::none);
  EXPECT_EQ(std::memcmp(w.memory.data() + 1000, w.source.data(), 100), 0);
  for (const auto& [at, length] : {std::pair{0x6fff, 2u}, std::pair{0x7000, 101u}, std::pair{0x7064, 1u}}) {
    EXPECT_EQ(w.write(*key, static_cast<std::uint64_t>(at), length), m::Syndrome::remote_access);
    w.reconnect();
  }
  // When what it is part of has gone it maps nothing; it can still be given back.
  ASSERT_TRUE(w.b->deregister_memory(w.memory_key));
  EXPECT_EQ(w.write(*key, 0x7000), m::Syndrome::remote_access);
  EXPECT_TRUE(w.b->remove_alias(*key));
  EXPECT_FALSE(w.b->remove_alias(*key));
}

TEST(Alias, OfNothingOrOfMoreThanThereIs) {
  Windows w;
  const auto make = [&](std::uint32_t of, std::uint64_t inner, std::uint64_t bytes) {
    return w.b->add_alias(
        {.of = of, .pd = w.pd_b, .access = kRemoteWrite, .inner_address = inner, .address = 0, .length_bytes = bytes});
  };
  EXPECT_FALSE(make(0x12345600, w.at(0), 8));
  // Bytes outside are outside when they are used, not when the key is made.
  const auto beyond = make(w.memory_key, w.at(4000), 200);
  ASSERT_TRUE(beyond);
  EXPECT_EQ(w.write(*beyond, 0, 96), m::Syndrome::none);
  EXPECT_EQ(w.write(*beyond, 0, 97), m::Syndrome::remote_access);
  EXPECT_TRUE(w.b->remove_alias(*beyond));
}

TEST(Key, TakesTheLowByteItsOwnerChose) {
  Windows w;
  std::vector<std::byte> more(4096);
  const std::uint32_t key = VerbsPair::reg(*w.b, w.pd_b, more, kAllAccess);
  const auto named = w.b->name_key(key, 0xab);
  ASSERT_TRUE(named);
  EXPECT_EQ(*named, (key & ~0xffu) | 0xab);
  EXPECT_EQ(w.write(*named, address_of(more.data())), m::Syndrome::none);
  EXPECT_EQ(w.write((key & ~0xffu) | 0xac, address_of(more.data())), m::Syndrome::remote_access);
  EXPECT_FALSE(w.b->name_key(0x77777700, 1));
}

}  // namespace
}  // namespace strait::soft::nic::testing
