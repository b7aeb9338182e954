// SPDX-License-Identifier: Apache-2.0
// How often a port is called for a message: once for a short one, once a mebibyte for a long one, over every carrier.
#include "soft/nic/port_pieces.hpp"

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {
namespace {

constexpr std::uint64_t kBase = 0x7100'0000'0000;  // what nobody can map

// Memory that only copies reach.
struct Vault {
  explicit Vault(std::vector<std::byte> held) : bytes(std::move(held)) {
    port.abi_version = STRAIT_PLUGIN_ABI;
    port.struct_size = sizeof port;
    port.context = this;
    port.read = [](void* self, std::uint64_t address, void* into, std::uint64_t n) {
      return static_cast<Vault*>(self)->move(
          address, n, [&](std::byte* at) { std::memcpy(into, at, n); }, &Vault::reads);
    };
    port.write = [](void* self, std::uint64_t address, const void* from, std::uint64_t n) {
      return static_cast<Vault*>(self)->move(
          address, n, [&](std::byte* at) { std::memcpy(at, from, n); }, &Vault::writes);
    };
    port.order = [](void*) {};
  }
  template <class Copy>
  std::int32_t move(std::uint64_t address, std::uint64_t n, Copy copy, int Vault::*count) {
    ++(this->*count);
    longest = std::max(longest, n);
    if (refuses || address < kBase || address - kBase > bytes.size() || n > bytes.size() - (address - kBase)) return 1;
    copy(bytes.data() + (address - kBase));
    return 0;
  }
  std::uint32_t key(Engine& engine, std::uint32_t pd) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ;
    request.fd = -1;
    request.address = kBase;
    request.length_bytes = bytes.size();
    request.port = &port;
    return engine.register_memory(request).value().lkey;
  }
  std::vector<std::byte> bytes;
  strait_memory_port port{};
  int reads = 0;
  int writes = 0;
  std::uint64_t longest = 0;
  bool refuses = false;
};

class PortPiecesOver : public ::testing::TestWithParam<Over> {
 protected:
  // Ends with the completion of the one request that was posted.
  static m::Syndrome run(Pair& pair, const Wqe& wqe) {
    pair.qa->post(wqe);
    const sys::Deadline deadline = sys::Deadline::after_ns(60'000'000'000);
    std::optional<Event> event;
    while (!(event = pair.qa->poll()) && !deadline.passed()) {
      pair.b->drive(0);
      pair.a->drive(0);
    }
    EXPECT_TRUE(event);
    return event ? event->syndrome : m::Syndrome::none;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, PortPiecesOver, ::testing::Values(Over::one_copy, Over::through_the_ring, Over::packets),
                         [](const auto& each) {
                           return each.param == Over::one_copy           ? "one_copy"
                                  : each.param == Over::through_the_ring ? "through_the_ring"
                                                                         : "packets";
                         });

TEST_P(PortPiecesOver, AShortMessageIsOneCopyAtEitherEndAndALongOneOnePerMebibyte) {
  struct Size {
    std::uint32_t bytes;
    int calls;
  };
  for (const Size size : {Size{8, 1}, Size{1000, 1}, Size{1 << 20, 1}, Size{(3 << 20) + 5, 4}}) {
    Pair pair((PairConfig(GetParam())));
    Vault from(pattern(size.bytes, 1));
    Vault to{std::vector<std::byte>(size.bytes)};
    const std::uint32_t lkey = from.key(*pair.a, pair.pd_a);
    const std::uint32_t rkey = to.key(*pair.b, pair.pd_b);
    ASSERT_EQ(
        run(pair, {.opcode = m::Opcode::rdma_write, .raddr = kBase, .rkey = rkey, .data = {{kBase, size.bytes, lkey}}}),
        m::Syndrome::none);
    EXPECT_EQ(to.bytes, from.bytes);
    EXPECT_EQ(from.reads, size.calls) << "written from it, " << size.bytes;
    EXPECT_EQ(to.writes, size.calls) << "written into it, " << size.bytes;
    // The other way round: what lies there is read back.
    to.bytes = pattern(size.bytes, 7);
    from.reads = from.writes = to.reads = to.writes = 0;
    ASSERT_EQ(
        run(pair, {.opcode = m::Opcode::rdma_read, .raddr = kBase, .rkey = rkey, .data = {{kBase, size.bytes, lkey}}}),
        m::Syndrome::none);
    EXPECT_EQ(from.bytes, to.bytes);
    EXPECT_EQ(to.reads, size.calls) << "read from it, " << size.bytes;
    EXPECT_EQ(from.writes, size.calls) << "read into it, " << size.bytes;
    // And as a message.
    from.bytes = pattern(size.bytes, 9);
    from.reads = from.writes = to.reads = to.writes = 0;
    pair.qb->post_receive({{kBase, size.bytes, rkey}});
    ASSERT_EQ(run(pair, {.opcode = m::Opcode::send, .data = {{kBase, size.bytes, lkey}}}), m::Syndrome::none);
    EXPECT_EQ(to.bytes, from.bytes);
    EXPECT_EQ(from.reads, size.calls) << "sent from it, " << size.bytes;
    EXPECT_EQ(to.writes, size.calls) << "received into it, " << size.bytes;
    EXPECT_LE(std::max(from.longest, to.longest), kPortPieceBytes) << "bounded";
  }
}

// Half of a message in host memory, at either end of it.
TEST_P(PortPiecesOver, PiecesOfBothKindsOfMemory) {
  constexpr std::uint32_t kHalf = (1 << 20) + 100;
  for (const bool port_first : {true, false}) {
    Pair pair((PairConfig(GetParam())));
    Vault from(pattern(kHalf, 1));
    Vault to{std::vector<std::byte>(kHalf)};
    std::vector<std::byte> host = pattern(kHalf, 2);
    std::vector<std::byte> there(kHalf);
    std::vector<Seg> out{{kBase, kHalf, from.key(*pair.a, pair.pd_a)},
                         {address_of(host.data()), kHalf, pair.reg_a(host.data(), kHalf)}};
    std::vector<Seg> in{{kBase, kHalf, to.key(*pair.b, pair.pd_b)},
                        {address_of(there.data()), kHalf, pair.reg_b(there.data(), kHalf)}};
    if (!port_first) {
      std::swap(out[0], out[1]);
      std::swap(in[0], in[1]);
    }
    pair.qb->post_receive(in);
    ASSERT_EQ(run(pair, {.opcode = m::Opcode::send, .data = out}), m::Syndrome::none);
    EXPECT_EQ(to.bytes, from.bytes);
    EXPECT_EQ(there, host);
    EXPECT_EQ(from.reads, 2);
    EXPECT_EQ(to.writes, 2);
  }
}

// What was read ahead for one message is not given to the next, though it lies at the same place.
TEST_P(PortPiecesOver, EveryMessageSeesTheMemoryAsItIsThen) {
  constexpr std::uint32_t kThirdOfAMegabyte = 300'000;
  Pair pair((PairConfig(GetParam())));
  Vault from(pattern(kThirdOfAMegabyte, 1));
  Vault to{std::vector<std::byte>(kThirdOfAMegabyte)};
  const std::uint32_t lkey = from.key(*pair.a, pair.pd_a);
  const std::uint32_t rkey = to.key(*pair.b, pair.pd_b);
  for (std::uint32_t round = 0; round < 3; ++round) {
    from.bytes = pattern(kThirdOfAMegabyte, round);
    ASSERT_EQ(run(pair, {.opcode = m::Opcode::rdma_write,
                         .raddr = kBase,
                         .rkey = rkey,
                         .data = {{kBase, kThirdOfAMegabyte, lkey}}}),
              m::Syndrome::none);
    EXPECT_EQ(to.bytes, from.bytes);
  }
}

TEST_P(PortPiecesOver, ARefusalEndsTheMessage) {
  constexpr std::uint32_t kThirdOfAMegabyte = 300'000;
  {
    Pair pair((PairConfig(GetParam())));
    Vault from(pattern(kThirdOfAMegabyte, 1));
    Vault to{std::vector<std::byte>(kThirdOfAMegabyte)};
    const std::uint32_t lkey = from.key(*pair.a, pair.pd_a);
    const std::uint32_t rkey = to.key(*pair.b, pair.pd_b);
    to.refuses = true;
    EXPECT_EQ(run(pair, {.opcode = m::Opcode::rdma_write,
                         .raddr = kBase,
                         .rkey = rkey,
                         .data = {{kBase, kThirdOfAMegabyte, lkey}}}),
              m::Syndrome::remote_operation);
  }
  Pair pair((PairConfig(GetParam())));
  Vault from(pattern(kThirdOfAMegabyte, 1));
  Vault to{std::vector<std::byte>(kThirdOfAMegabyte)};
  const std::uint32_t lkey = from.key(*pair.a, pair.pd_a);
  const std::uint32_t rkey = to.key(*pair.b, pair.pd_b);
  from.refuses = true;
  EXPECT_EQ(
      run(pair,
          {.opcode = m::Opcode::rdma_write, .raddr = kBase, .rkey = rkey, .data = {{kBase, kThirdOfAMegabyte, lkey}}}),
      m::Syndrome::local_access);
}

}  // namespace
}  // namespace strait::soft::nic::testing
