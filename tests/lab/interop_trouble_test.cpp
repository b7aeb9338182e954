// SPDX-License-Identifier: Apache-2.0
// Our NIC and rdma_rxe when something goes wrong: lost packets, wrong keys, receives that are not there.
#include "interop.hpp"

namespace strait::lab {
namespace {

// The guest's statuses (ibv_wc_status).
constexpr int kLocalQpOperation = 2, kFlushed = 5, kRemoteInvalid = 9, kRemoteAccess = 10, kRetryExceeded = 12,
              kRnrExceeded = 13;

// ---- Loss
// ------------------------------------------------------------------------------------------------------------

struct Trouble {
  const char* name;
  Wire wire;
  const char* sends;
  const char* arrives;
};

class InteropLossy : public InteropTest, public testing::WithParamInterface<Trouble> {};

INSTANTIATE_TEST_SUITE_P(Lab, InteropLossy,
                         testing::Values(Trouble{"ours", {Family::v4, 1024}, "drop=5%,seed=2", ""},
                                         Trouble{"theirs", {Family::v4, 1024}, "", "drop=5%,seed=3"},
                                         Trouble{"both", {Family::v6, 1024}, "drop=5%,seed=4", "drop=5%,seed=5"},
                                         Trouble{"everything",
                                                 {Family::v4, 4096},
                                                 "drop=3%,dup=3%,reorder=3%,corrupt=3%,seed=6",
                                                 "drop=6%,seed=7"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(InteropLossy, every_byte_arrives_once) {
  start(GetParam().wire, GetParam().sends, GetParam().arrives);
  if (HasFatalFailure()) return;
  ASSERT_GOT_MOVED(ends, connected({.theirs = "timeout=17"}));
  const std::uint32_t bytes = 20 * wire_.pmtu_bytes + 1;
  for (int i = 0; i < 3; ++i) {
    write_both_ways(ends, bytes + 1);
    read_both_ways(ends, bytes + 2);
    send_both_ways(ends, bytes + 3, i == 1);
    write_imm_both_ways(ends, bytes);
    add_and_swap_both_ways(ends);  // once each, or the sums are wrong
    if (HasFailure()) break;
  }
  if (GetParam().sends[0] != '\0') {
    EXPECT_GT(side_->engine().counts().faults_injected, 10u);
  }
  if (GetParam().arrives[0] != '\0') {
    EXPECT_GT(side_->port().lost, 10u);
  }
  EXPECT_GT(side_->counts().packets_resent + side_->counts().duplicates, 0u);
}

// ---- Refusals
// --------------------------------------------------------------------------------------------------------

class InteropRefused : public InteropTest, public testing::WithParamInterface<Wire> {
 protected:
  void SetUp() override { start(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Lab, InteropRefused, testing::Values(Wire{Family::v4, 1024}, Wire{Family::v6, 1024}),
                         [](const auto& test) { return test.param.name(); });

TEST_P(InteropRefused, wrong_keys_of_ours) {
  for (const m::Opcode opcode : {m::Opcode::rdma_write, m::Opcode::rdma_read, m::Opcode::atomic_fa}) {
    SCOPED_TRACE(static_cast<int>(opcode));
    ASSERT_GOT_MOVED(ends, connected());
    write_both_ways(ends, 100);
    Wqe wqe = ours(opcode, 512, opcode == m::Opcode::atomic_fa ? 8 : 5000, ends, 0);
    if (opcode == m::Opcode::atomic_fa) wqe.atomic = {1, 0};
    wqe.rkey ^= 0x100;
    expect_ours(ends, wqe, m::Syndrome::remote_access);
    expect_ours(ends, ours(m::Opcode::rdma_write, 0, 8, ends, 0), m::Syndrome::flushed);
  }
  // Beyond the memory's end.
  ASSERT_GOT_MOVED(ends, connected());
  expect_ours(ends, ours(m::Opcode::rdma_write, 0, 5000, ends, ends.far.bytes - 4999), m::Syndrome::remote_access);
  // An atomic that is not aligned.
  ASSERT_GOT_MOVED(other, connected());
  Wqe wqe = ours(m::Opcode::atomic_fa, 512, 8, other, 4);
  wqe.atomic = {1, 0};
  expect_ours(other, wqe, m::Syndrome::remote_invalid_request);
}

TEST_P(InteropRefused, wrong_keys_of_theirs) {
  for (const char* op : {"write", "read", "fetch_add"}) {
    SCOPED_TRACE(op);
    ASSERT_GOT_MOVED(ends, connected());
    write_both_ways(ends, 100);
    const bool atomic = op == std::string_view("fetch_add");
    RxeWork work = theirs(op, 512, atomic ? 8 : 5000, 0);
    work.sges = 1;
    work.rkey ^= 0x100;
    expect_theirs(ends, work, kRemoteAccess);
    ASSERT_GOT(state, rxe_->state(ends.far.id));
    EXPECT_EQ(state, "ERR");
    // Our queue pair is in error too, as hardware's would be.
    expect_ours(ends, ours(m::Opcode::rdma_write, 0, 8, ends, 0), m::Syndrome::flushed);
  }
  ASSERT_GOT_MOVED(ends, connected());
  expect_theirs(ends, theirs("write", 0, 5000, Side::kBytes - 4999), kRemoteAccess);
}

TEST_P(InteropRefused, messages_longer_than_their_receive) {
  ASSERT_GOT_MOVED(ends, connected());
  EXPECT_DONE(rxe_->receive(ends.far.id, 3, 0, 100));
  expect_ours(ends, ours(m::Opcode::send, 0, 5000), m::Syndrome::remote_operation);  // rxe's idea: see rxe_peer_test
  theirs_done(ends, 3, kLocalQpOperation);
  ASSERT_GOT_MOVED(other, connected());
  post_receive(other, 0, 100);
  expect_theirs(other, theirs("send", 0, 5000), kRemoteInvalid);
  const auto here = side_->wait(*other.near);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->opcode, m::CqeOpcode::responder_error);
  EXPECT_EQ(here->syndrome, m::Syndrome::local_length);
}

TEST_P(InteropRefused, receives_that_come_late) {
  ASSERT_GOT_MOVED(ends, connected());
  for (const std::uint32_t bytes : {8u, 5003u}) {
    SCOPED_TRACE(bytes);
    fill(side_->memory(0, bytes), 21);
    const std::uint64_t heard = side_->counts().rnr_received;
    ends.near->post(ours(m::Opcode::send, 0, bytes));
    EXPECT_FALSE(side_->wait(*ends.near, 300'000'000)) << "there is no receive yet";
    EXPECT_DONE(rxe_->receive(ends.far.id, 9, 64, 8192));
    ours_done(ends);
    theirs_done(ends, 9);
    expect_bytes_there(ends, 64, bytes, 21);
    EXPECT_GT(side_->counts().rnr_received, heard);

    const std::uint64_t said = side_->engine().counts().rnr_sent;
    RxeWork work = theirs("send", 300'000, bytes);
    work.seed = 22;
    EXPECT_DONE(rxe_->post(ends.far.id, work));
    ASSERT_GOT(early, rxe_->poll(ends.far.id, 300));
    EXPECT_FALSE(early) << "there is no receive yet";
    post_receive(ends, 200'000, 8192);
    theirs_done(ends, 7);
    const auto here = side_->wait(*ends.near);
    ASSERT_TRUE(here);
    EXPECT_EQ(here->opcode, m::CqeOpcode::responder_send);
    EXPECT_EQ(here->bytes, bytes);
    expect_bytes_here(200'000, bytes, 22);
    EXPECT_GT(side_->engine().counts().rnr_sent, said);
  }
}

TEST_P(InteropRefused, receives_that_never_come) {
  ASSERT_GOT_MOVED(ends, connected({.rnr_retries = 2}));
  expect_ours(ends, ours(m::Opcode::send, 0, 8), m::Syndrome::rnr_retry_exceeded);
  ASSERT_GOT_MOVED(other, connected({.theirs = "rnr_retries=2"}));
  expect_theirs(other, theirs("send", 0, 8), kRnrExceeded);
}

TEST_P(InteropRefused, nobody_answers) {
  ASSERT_GOT_MOVED(ends, connected({.ack_timeout_ns = 200'000'000, .retries = 2}));
  write_both_ways(ends, 100);
  EXPECT_DONE(rxe_->fail_queue(ends.far.id));
  expect_ours(ends, ours(m::Opcode::rdma_write, 0, 8, ends, 0), m::Syndrome::transport_retry_exceeded);

  ASSERT_GOT_MOVED(other, connected({.theirs = "timeout=15 retries=2"}));
  side_->port().deaf = true;
  RxeWork work = theirs("write", 0, 3000, 0);
  EXPECT_DONE(rxe_->post(other.far.id, work));
  work.wr = 8;
  EXPECT_DONE(rxe_->post(other.far.id, work));
  theirs_done(other, 7, kRetryExceeded);
  theirs_done(other, 8, kFlushed);
  EXPECT_GE(side_->port().lost, 3u) << "once, and two retries";
  side_->port().deaf = false;
}

}  // namespace
}  // namespace strait::lab
