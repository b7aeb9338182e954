// SPDX-License-Identifier: Apache-2.0
// The lab's interop pair itself: a test outside drives two queue pairs of rxe inside against each other. What works
// here is the kernel talking to itself, so that a failure against somebody else is that somebody's.
#include "checks.hpp"
#include "pattern.hpp"
#include "rxe_client.hpp"

namespace strait::lab {
namespace {

class RxePeer : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    auto guest = Guest::boot({.name = GetParam() == Family::v4 ? "peer4" : "peer6"});
    ASSERT_TRUE(guest) << guest.error().explain();
    guest_ = std::move(*guest);
    rxe_.emplace(*guest_);
    ASSERT_GOT(gid, rxe_->open(GetParam(), 1024));
    EXPECT_EQ(gid[15], 2);
    EXPECT_EQ(gid[0], GetParam() == Family::v4 ? 0 : 0xfd);
  }

  struct Pair {
    RxeQueue a;
    RxeQueue b;
  };
  Result<Pair> connected(const std::string& more = "") {
    STRAIT_TRY(RxeQueue a, rxe_->make(QueueKind::rc));
    STRAIT_TRY(RxeQueue b, rxe_->make(QueueKind::rc));
    STRAIT_CHECK(rxe_->connect(a.id, {.gid = b.gid, .qpn = b.qpn, .psn = b.psn, .qkey = 0, .more = more}));
    STRAIT_CHECK(rxe_->connect(b.id, {.gid = a.gid, .qpn = a.qpn, .psn = a.psn, .qkey = 0, .more = more}));
    return Pair{a, b};
  }

  void expect_success(std::uint64_t id, std::uint64_t wr) {
    ASSERT_GOT(done, rxe_->wait(id));
    EXPECT_EQ(done.status, 0) << done.text;
    EXPECT_EQ(done.wr, wr);
  }

  void messages(const Pair& pair);
  void writes_and_reads(const Pair& pair);
  void atomics(const Pair& pair);
  void immediates(const Pair& pair);
  void datagrams();
  void refusals();
  void wrong_requests();

  std::unique_ptr<Guest> guest_;
  std::optional<RxeClient> rxe_;
};

void RxePeer::messages(const Pair& pair) {
  // Sizes around the path MTU, with padding, and of many packets.
  for (const std::uint32_t bytes : {0u, 1u, 61u, 1024u, 1025u, 3000u, 65536u}) {
    SCOPED_TRACE(bytes);
    EXPECT_DONE(rxe_->receive(pair.b.id, 100, 0, 131072));
    EXPECT_DONE(rxe_->post(
        pair.a.id,
        {.op = "send", .wr = 7, .at = 4096, .bytes = bytes, .sges = bytes < 8 ? 1u : 3u, .seed = bytes + 5}));
    expect_success(pair.a.id, 7);
    ASSERT_GOT(received, rxe_->wait(pair.b.id));
    EXPECT_EQ(received.status, 0) << received.text;
    EXPECT_EQ(received.wr, 100u);
    EXPECT_EQ(received.bytes, bytes);
    ASSERT_GOT(crc, rxe_->crc(pair.b.id, 0, bytes));
    EXPECT_EQ(crc, crc32_of_fill(bytes, bytes + 5));
  }
}

void RxePeer::writes_and_reads(const Pair& pair) {
  for (const std::uint32_t bytes : {1u, 61u, 3000u, 100000u}) {
    SCOPED_TRACE(bytes);
    EXPECT_DONE(rxe_->post(
        pair.a.id, {.op = "write", .wr = 8, .bytes = bytes, .va = pair.b.va + 17, .rkey = pair.b.rkey, .seed = bytes}));
    expect_success(pair.a.id, 8);
    ASSERT_GOT(written, rxe_->crc(pair.b.id, 17, bytes));
    EXPECT_EQ(written, crc32_of_fill(bytes, bytes));
    EXPECT_DONE(rxe_->post(
        pair.a.id, {.op = "read", .wr = 9, .at = 200001, .bytes = bytes, .va = pair.b.va + 17, .rkey = pair.b.rkey}));
    expect_success(pair.a.id, 9);
    ASSERT_GOT(read, rxe_->crc(pair.a.id, 200001, bytes));
    EXPECT_EQ(read, crc32_of_fill(bytes, bytes));
  }
}

void RxePeer::atomics(const Pair& pair) {
  EXPECT_DONE(rxe_->poke(pair.b.id, 64, 40));
  EXPECT_DONE(rxe_->post(
      pair.a.id,
      {.op = "fetch_add", .wr = 1, .at = 8, .bytes = 8, .va = pair.b.va + 64, .rkey = pair.b.rkey, .add = 2}));
  expect_success(pair.a.id, 1);
  ASSERT_GOT(before, rxe_->peek(pair.a.id, 8));
  ASSERT_GOT(after, rxe_->peek(pair.b.id, 64));
  EXPECT_EQ(before, 40u);
  EXPECT_EQ(after, 42u);
  EXPECT_DONE(rxe_->post(pair.a.id, {.op = "cmp_swap",
                                     .wr = 2,
                                     .at = 8,
                                     .bytes = 8,
                                     .va = pair.b.va + 64,
                                     .rkey = pair.b.rkey,
                                     .compare = 42,
                                     .swap = 0xfeedfacecafebeef}));
  expect_success(pair.a.id, 2);
  EXPECT_DONE(rxe_->post(pair.a.id, {.op = "cmp_swap",
                                     .wr = 3,
                                     .at = 16,
                                     .bytes = 8,
                                     .va = pair.b.va + 64,
                                     .rkey = pair.b.rkey,
                                     .compare = 42,
                                     .swap = 1}));
  expect_success(pair.a.id, 3);
  ASSERT_GOT(swapped, rxe_->peek(pair.b.id, 64));
  ASSERT_GOT(refused, rxe_->peek(pair.a.id, 16));
  EXPECT_EQ(swapped, 0xfeedfacecafebeef);
  EXPECT_EQ(refused, 0xfeedfacecafebeef) << "the second swap finds what the first left";
}

void RxePeer::immediates(const Pair& pair) {
  EXPECT_DONE(rxe_->receive(pair.b.id, 55, 0, 0));
  EXPECT_DONE(rxe_->post(pair.a.id, {.op = "write_imm",
                                     .wr = 4,
                                     .bytes = 2500,
                                     .va = pair.b.va + 4096,
                                     .rkey = pair.b.rkey,
                                     .imm = 0xdeadbeef,
                                     .seed = 3}));
  expect_success(pair.a.id, 4);
  ASSERT_GOT(signal, rxe_->wait(pair.b.id));
  EXPECT_EQ(signal.wr, 55u);
  EXPECT_EQ(signal.imm, 0xdeadbeefu);
  EXPECT_EQ(signal.bytes, 2500u);
  ASSERT_GOT(crc, rxe_->crc(pair.b.id, 4096, 2500));
  EXPECT_EQ(crc, crc32_of_fill(2500, 3));
}

void RxePeer::datagrams() {
  ASSERT_GOT(a, rxe_->make(QueueKind::ud, 65536));
  ASSERT_GOT(b, rxe_->make(QueueKind::ud, 65536));
  EXPECT_DONE(rxe_->connect(a.id, {}));
  EXPECT_DONE(rxe_->connect(b.id, {}));
  for (const std::uint32_t bytes : {0u, 5u, 1000u}) {
    SCOPED_TRACE(bytes);
    EXPECT_DONE(rxe_->receive(b.id, 5, 0, 4096));
    EXPECT_DONE(rxe_->post(a.id, {.op = "send_imm",
                                  .wr = 6,
                                  .at = 0,
                                  .bytes = bytes,
                                  .imm = 77,
                                  .seed = 9,
                                  .to = RxeRemote{.gid = b.gid, .qpn = b.qpn, .psn = 0, .qkey = b.qkey, .more = {}}}));
    expect_success(a.id, 6);
    ASSERT_GOT(received, rxe_->wait(b.id));
    EXPECT_EQ(received.bytes, bytes + 40);
    EXPECT_EQ(received.imm, 77u);
    EXPECT_EQ(received.src_qp, a.qpn);
    ASSERT_GOT(crc, rxe_->crc(b.id, 40, bytes));
    EXPECT_EQ(crc, crc32_of_fill(bytes, 9));
  }
}

void RxePeer::refusals() {
  ASSERT_GOT(pair, connected("timeout=14 retries=1 rnr_retries=0"));
  EXPECT_DONE(
      rxe_->post(pair.a.id, {.op = "write", .wr = 1, .bytes = 8, .va = pair.b.va, .rkey = pair.b.rkey ^ 0x100}));
  ASSERT_GOT(refused, rxe_->wait(pair.a.id));
  EXPECT_EQ(refused.status, 10) << refused.text;  // IBV_WC_REM_ACCESS_ERR
  ASSERT_GOT(state, rxe_->state(pair.a.id));
  EXPECT_EQ(state, "ERR");
  EXPECT_DONE(rxe_->close(pair.a.id));
  EXPECT_FALSE(rxe_->state(pair.a.id));

  ASSERT_GOT(other, connected("timeout=14 retries=1 rnr_retries=0"));
  EXPECT_DONE(rxe_->post(other.a.id, {.op = "send", .wr = 2, .bytes = 8}));
  ASSERT_GOT(not_ready, rxe_->wait(other.a.id));
  EXPECT_EQ(not_ready.status, 13) << not_ready.text;  // IBV_WC_RNR_RETRY_EXC_ERR

  // Of a message longer than its receive rxe has its own idea: a sender would expect IBV_WC_REM_INV_REQ_ERR, a receiver
  // IBV_WC_LOC_LEN_ERR. What it does say is why the flow suite leaves that test out over rxe.
  ASSERT_GOT(third, connected());
  EXPECT_DONE(rxe_->receive(third.b.id, 3, 0, 100));
  EXPECT_DONE(rxe_->post(third.a.id, {.op = "send", .wr = 4, .bytes = 5000}));
  ASSERT_GOT(too_long, rxe_->wait(third.a.id));
  ASSERT_GOT(too_short, rxe_->wait(third.b.id));
  EXPECT_EQ(too_long.status, 11) << too_long.text;   // IBV_WC_REM_OP_ERR
  EXPECT_EQ(too_short.status, 2) << too_short.text;  // IBV_WC_LOC_QP_OP_ERR
  ASSERT_GOT(counters, rxe_->counters());
  EXPECT_GT(counters.number("sent_pkts", 0).value_or(0), 100u);
}

void RxePeer::wrong_requests() {
  for (const char* line :
       {"dance", "qp 1 rc", "qp x rc", "post 1 send at=0 bytes=9", "post 1 send wr=1 at=0x bytes=1", "crc 1 0 99999999",
        "connect 1 gid=12 qpn=1 psn=1", "open v4 1024", "wait 99 0", "receive 1 wr=1 at=99999999 bytes=1"}) {
    const auto answer = guest_->ask(line);
    ASSERT_FALSE(answer) << line;
    EXPECT_NE(answer.error().explain().find("error"), std::string::npos) << answer.error().explain();
  }
}

TEST_P(RxePeer, speaks_to_itself) {
  ASSERT_GOT(pair, connected());
  messages(pair);
  writes_and_reads(pair);
  atomics(pair);
  immediates(pair);
  datagrams();
  refusals();
  wrong_requests();
  ASSERT_GOT(status, guest_->finish());
  EXPECT_EQ(status, 0) << guest_->said();
}

INSTANTIATE_TEST_SUITE_P(Lab, RxePeer, testing::Values(Family::v4, Family::v6),
                         [](const auto& test) { return test.param == Family::v4 ? "ipv4" : "ipv6"; });

}  // namespace
}  // namespace strait::lab
