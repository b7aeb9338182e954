// SPDX-License-Identifier: Apache-2.0
// The life of a queue pair as verbs has it: every state, what each allows, and back to the beginning.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/nic/verbs_testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::nic::testing {
namespace {

Wqe send_of(std::vector<std::byte> payload) {
  Wqe wqe{.opcode = m::Opcode::send};
  wqe.inlined = std::move(payload);
  return wqe;
}

// One message from a to b, whole.
void expect_message(VerbsPair& pair, unsigned seed) {
  std::vector<std::byte> received(64);
  const std::uint32_t key = pair.reg_b(received);
  const auto payload = pattern(16, seed);
  pair.qb->post_receive({{address_of(received.data()), 64, key}});
  const bool datagram = pair.shape_.type == QpType::ud;
  pair.qa->post(datagram ? pair.datagram(payload) : send_of(payload));
  const auto sent = pair.wait(*pair.qa);
  const auto event = pair.wait(*pair.qb);
  ASSERT_TRUE(sent && event);
  EXPECT_EQ(sent->syndrome, m::Syndrome::none);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  const std::size_t skip = datagram ? 40 : 0;
  EXPECT_EQ(event->bytes, 16 + skip);
  EXPECT_EQ(std::memcmp(received.data() + skip, payload.data(), payload.size()), 0);
  EXPECT_TRUE(pair.b->deregister_memory(key));
}

class Life : public ::testing::TestWithParam<QpType> {};

TEST_P(Life, CarriesMessagesInRtsAndAgainAfterReset) {
  VerbsPair pair({.type = GetParam()});
  for (unsigned round = 0; round < 3; ++round) {
    pair.raise_both();
    for (unsigned i = 0; i < 100; ++i) expect_message(pair, round * 100 + i);
    step(*pair.a, pair.qa->qpn, QpState::reset).value();
    step(*pair.b, pair.qb->qpn, QpState::reset).value();
    pair.qa->set_back();
    pair.qb->set_back();
  }
}

TEST_P(Life, WaitsWithSendingUntilRts) {
  VerbsPair pair({.type = GetParam()});
  pair.raise_b();
  pair.raise_a(QpState::rtr);
  std::vector<std::byte> received(64);
  pair.qb->post_receive({{address_of(received.data()), 64, pair.reg_b(received)}});
  pair.qa->post(GetParam() == QpType::ud ? pair.datagram(pattern(8, 1)) : send_of(pattern(8, 1)));
  pair.drive(200);
  EXPECT_FALSE(pair.qa->poll() || pair.qb->poll());
  step(*pair.a, pair.qa->qpn, pair.from_a(), QpState::ready, rts_mask(GetParam())).value();
  EXPECT_TRUE(pair.wait(*pair.qa) && pair.wait(*pair.qb));
}

TEST_P(Life, FlushesEverythingInErrorAndWhatIsPostedLater) {
  VerbsPair pair({.type = GetParam()});
  pair.raise_both();
  std::vector<std::byte> bytes(64);
  const std::uint32_t key = pair.reg_a(bytes);
  for (int i = 0; i < 3; ++i) pair.qa->post_receive({{address_of(bytes.data()), 64, key}});
  step(*pair.a, pair.qa->qpn, QpState::error).value();
  const auto expect_flushed = [&](m::CqeOpcode opcode, std::uint16_t counter) {
    const auto event = pair.wait(*pair.qa);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->opcode, opcode);
    EXPECT_EQ(event->counter, counter);
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  };
  for (std::uint16_t i = 0; i < 3; ++i) expect_flushed(m::CqeOpcode::responder_error, i);
  pair.qa->post_receive({{address_of(bytes.data()), 64, key}});
  expect_flushed(m::CqeOpcode::responder_error, 3);
  pair.qa->post(send_of(pattern(8, 1)));
  expect_flushed(m::CqeOpcode::requester_error, 0);
  EXPECT_EQ(pair.a->query_qp(pair.qa->qpn).value().state, QpState::error);
}

TEST_P(Life, RefusesWhatVerbsRefuses) {
  VerbsPair pair({.type = GetParam()});
  const QpType type = GetParam();
  const QpAttributes all = pair.from_a();
  const auto refused = [&](QpState to, std::uint32_t mask) {
    const Status answer = step(*pair.a, pair.qa->qpn, all, to, mask);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::invalid);
  };
  for (const QpState to : {QpState::rtr, QpState::ready, QpState::sqd, QpState::sqe, QpState::error})
    refused(to, rtr_mask(type));
  refused(QpState::init, kQpState);                       // attributes are missing
  refused(QpState::init, init_mask(type) | kQpDestQpn);   // one too many
  refused(static_cast<QpState>(7), init_mask(type));      // no such state
  refused(QpState::init, init_mask(type) | kQpCurState);  // not in RESET
  EXPECT_EQ(pair.a->query_qp(pair.qa->qpn).value().state, QpState::reset);
  pair.raise_a(QpState::init);
  refused(QpState::ready, rts_mask(type));
  refused(QpState::sqd, kQpState);
  if (type != QpType::ud) refused(QpState::rtr, rtr_mask(type) & ~kQpDestQpn);
  step(*pair.a, pair.qa->qpn, all, QpState::rtr, rtr_mask(type)).value();
  refused(QpState::init, init_mask(type));
  refused(QpState::rtr, rtr_mask(type));
  refused(QpState::ready, kQpState);
  step(*pair.a, pair.qa->qpn, all, QpState::ready, rts_mask(type)).value();
  refused(QpState::rtr, rtr_mask(type));
  refused(QpState::sqe, kQpState);
  step(*pair.a, pair.qa->qpn, QpState::error).value();
  for (const QpState to : {QpState::init, QpState::rtr, QpState::ready, QpState::sqd}) refused(to, kQpState);
  step(*pair.a, pair.qa->qpn, QpState::reset).value();
}

INSTANTIATE_TEST_SUITE_P(All, Life, ::testing::Values(QpType::rc, QpType::uc, QpType::ud),
                         [](const auto& type) { return std::string(type_name(type.param)); });

TEST(LifeRc, GivesAllAttributesBack) {
  VerbsPair pair;
  QpAttributes all = pair.from_a();
  all.timeout = 14;
  all.retries = 5;
  all.rnr_retries = 6;
  all.min_rnr_timer = 12;
  all.path.traffic_class = 3;
  all.path.hop_limit = 64;
  VerbsPair::raise_to(*pair.a, pair.qa->qpn, QpType::rc, all, QpState::ready);
  const QpAttributes got = pair.a->query_qp(pair.qa->qpn).value();
  EXPECT_EQ(got.state, QpState::ready);
  EXPECT_EQ(got.access, all.access);
  EXPECT_EQ(got.port, 1);
  EXPECT_EQ(got.path.dgid, all.path.dgid);
  EXPECT_EQ(got.path.traffic_class, 3);
  EXPECT_EQ(got.path.hop_limit, 64);
  EXPECT_EQ(got.path_mtu, all.path_mtu);
  EXPECT_EQ(got.timeout, 14);
  EXPECT_EQ(got.retries, 5);
  EXPECT_EQ(got.rnr_retries, 6);
  EXPECT_EQ(got.rq_psn, all.rq_psn);
  EXPECT_EQ(got.sq_psn, all.sq_psn);
  EXPECT_EQ(got.max_reads, all.max_reads);
  EXPECT_EQ(got.max_dest_reads, all.max_dest_reads);
  EXPECT_EQ(got.min_rnr_timer, 12);
  EXPECT_EQ(got.dest_qpn, pair.qb->qpn);
  EXPECT_FALSE(pair.a->query_qp(0xabcdef));
}

TEST(LifeRc, RefusesValuesOutOfRange) {
  VerbsPair pair;
  pair.raise_a(QpState::init);
  const auto refused = [&](auto change) {
    QpAttributes all = pair.from_a();
    change(all);
    EXPECT_FALSE(step(*pair.a, pair.qa->qpn, all, QpState::rtr, rtr_mask(QpType::rc)));
  };
  refused([](QpAttributes& a) { a.path_mtu = 0; });
  refused([](QpAttributes& a) { a.path_mtu = 6; });
  refused([](QpAttributes& a) { a.max_dest_reads = 17; });
  refused([](QpAttributes& a) { a.min_rnr_timer = 32; });
  refused([](QpAttributes& a) { a.path.is_global = false; });
  refused([](QpAttributes& a) { a.path.dgid = roce::IpAddress::parse("fd00::1").value().gid; });  // port is IPv4
  EXPECT_EQ(pair.a->query_qp(pair.qa->qpn).value().state, QpState::init);
  step(*pair.a, pair.qa->qpn, pair.from_a(), QpState::rtr, rtr_mask(QpType::rc)).value();
}

// The passive side of a connection gets data before it was told to send.
TEST(LifeRc, ReceivesAndAnswersInRtr) {
  VerbsPair pair;
  pair.raise_a();
  pair.raise_b(QpState::rtr);
  expect_message(pair, 1);
  expect_message(pair, 2);
  EXPECT_EQ(pair.heard_b.count(AsyncKind::communication_established), 1);
  ASSERT_EQ(pair.heard_b.async.size(), 1u);
  EXPECT_EQ(pair.heard_b.async[0].number, pair.qb->qpn);
  EXPECT_EQ(pair.heard_b.async[0].user, 77u);
  std::vector<std::byte> here(64), there = pattern(64, 3);
  const std::uint32_t lkey = pair.reg_a(here);
  pair.qa->post({.opcode = m::Opcode::rdma_read,
                 .raddr = address_of(there.data()),
                 .rkey = pair.reg_b(there),
                 .data = {{address_of(here.data()), 64, lkey}}});
  const auto read = pair.wait(*pair.qa);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->syndrome, m::Syndrome::none);
  EXPECT_EQ(here, there);
}

TEST(LifeRc, DrainsAndGoesOn) {
  VerbsPair pair;
  pair.raise_a();
  pair.raise_b(QpState::init);  // nobody answers yet
  std::vector<std::byte> received(64);
  const std::uint32_t key = pair.reg_b(received);
  for (int i = 0; i < 2; ++i) pair.qb->post_receive({{address_of(received.data()), 64, key}});
  pair.qa->post(send_of(pattern(8, 1)));
  QpAttributes drain;
  drain.sqd_notify = true;
  step(*pair.a, pair.qa->qpn, drain, QpState::sqd, kQpState | kQpSqdNotify).value();
  EXPECT_TRUE(pair.a->query_qp(pair.qa->qpn).value().sq_draining);
  EXPECT_EQ(pair.heard_a.count(AsyncKind::sq_drained), 0);
  pair.qa->post(send_of(pattern(8, 2)));  // stays where it is
  step(*pair.b, pair.qb->qpn, pair.from_b(), QpState::rtr, rtr_mask(QpType::rc)).value();
  ASSERT_TRUE(pair.wait(*pair.qa) && pair.wait(*pair.qb));
  pair.drive(200);
  EXPECT_EQ(pair.heard_a.count(AsyncKind::sq_drained), 1);
  EXPECT_FALSE(pair.a->query_qp(pair.qa->qpn).value().sq_draining);
  EXPECT_FALSE(pair.qb->poll());
  step(*pair.a, pair.qa->qpn, QpState::ready).value();
  EXPECT_TRUE(pair.wait(*pair.qa) && pair.wait(*pair.qb));
}

// An unreliable queue pair that failed to send still receives, and sends again when told.
TEST(LifeUd, StopsSendingAfterAnErrorAndGoesOn) {
  VerbsPair pair({.type = QpType::ud});
  pair.raise_both();
  Wqe bad = pair.datagram({});
  bad.data = {{0x1000, 8, 0xdead00}};
  pair.qa->post(bad);
  const auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_protection);
  EXPECT_EQ(pair.a->query_qp(pair.qa->qpn).value().state, QpState::sqe);
  pair.qa->post(pair.datagram(pattern(8, 1)));
  const auto flushed = pair.wait(*pair.qa);
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->syndrome, m::Syndrome::flushed);
  step(*pair.a, pair.qa->qpn, QpState::ready).value();
  expect_message(pair, 5);
}

TEST(LifeRc, NeedsNoSendQueueAndNoReceiveQueue) {
  VerbsPair pair;
  TestQueue target(*pair.b, pair.pd_b, {.blocks = 0, .receives = 0});
  QpAttributes there = pair.from_a();
  there.dest_qpn = target.qpn;
  VerbsPair::raise_to(*pair.a, pair.qa->qpn, QpType::rc, there, QpState::ready);
  VerbsPair::raise_to(*pair.b, target.qpn, QpType::rc, pair.from_b(), QpState::ready);
  auto here = pattern(64, 3);
  std::vector<std::byte> bytes(64);
  pair.qa->post({.opcode = m::Opcode::rdma_write,
                 .raddr = address_of(bytes.data()),
                 .rkey = pair.reg_b(bytes),
                 .data = {{address_of(here.data()), 64, pair.reg_a(here)}}});
  const auto event = pair.wait(*pair.qa);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
  EXPECT_EQ(bytes, here);
}

// A program writes to its record whatever it likes, at any time.
TEST(LifeRc, GarbageInTheRecordWhileInResetIsNotLookedAt) {
  VerbsPair pair;
  std::memset(pair.qa->record(), 0x5a, 8);
  pair.drive(200);
  EXPECT_TRUE(pair.a->arm());
  pair.qa->set_back();
  pair.raise_both();
  expect_message(pair, 9);
}

// A child that wrote to a doorbell page would post in its parent's name.
TEST(Doorbells, AreNotThereInAFork) {
  Pair pair;
  const auto page = reinterpret_cast<std::uintptr_t>(pair.qa->doorbell()) / sys::page_bytes() * sys::page_bytes();
  const auto mapped = [&] {
    unsigned char resident = 0;
    return ::mincore(reinterpret_cast<void*>(page), sys::page_bytes(), &resident) == 0;
  };
  EXPECT_TRUE(mapped());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(mapped() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it is mapped there";
}

}  // namespace
}  // namespace strait::soft::nic::testing
