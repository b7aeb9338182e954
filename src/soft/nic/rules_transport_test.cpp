// SPDX-License-Identifier: Apache-2.0
// The rules of RoCEv2, one by one: path MTU, unreliable connections, datagrams, IPv6 (docs/wire-roce.md).
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

// ---- path MTU

class RuleMtu : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static LiveConfig config() {
    LiveConfig config;
    config.pmtu_bytes = GetParam();
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, RuleMtu, ::testing::Values(256u, 512u, 1024u, 2048u, 4096u),
                         ::testing::PrintToStringParamName());

TEST_P(RuleMtu, CutsWhatIsSent) {
  const std::uint32_t pmtu = GetParam();
  Live live(config());
  auto memory = pattern(3 * pmtu, 1);
  const std::uint32_t key = live.reg(memory.data(), memory.size());
  for (const auto& [bytes, opcodes] : std::vector<std::pair<std::uint32_t, std::vector<unsigned>>>{
           {pmtu, {write_only}},
           {pmtu + 1, {write_first, write_last}},
           {2 * pmtu, {write_first, write_last}},
           {3 * pmtu, {write_first, write_middle, write_last}}}) {
    live.queue->post(
        {.opcode = m::Opcode::rdma_write, .raddr = 0, .rkey = 1, .data = {{address_of(memory.data()), bytes, key}}});
    const auto sent = live.sent();
    ASSERT_EQ(sent.size(), opcodes.size()) << bytes;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(sent[i].opcode, opcodes[i]);
      EXPECT_EQ(sent[i].payload.size(), std::min<std::size_t>(pmtu, bytes - i * pmtu));
    }
    live.feed(live.ack(sent.back().psn));
    EXPECT_TRUE(live.queue->poll());
  }
}

TEST_P(RuleMtu, JudgesWhatArrives) {
  const std::uint32_t pmtu = GetParam();
  for (const std::uint32_t other : {256u, 512u, 1024u, 2048u, 4096u}) {
    for (const bool write : {false, true}) {
      Live live(config());
      std::vector<std::byte> memory(3 * 4096);
      const std::uint32_t key = live.reg(memory.data(), memory.size());
      live.queue->post_receive({{address_of(memory.data()), 3 * 4096, key}});
      const Pkt first{.opcode = write ? write_first + 0u : send_first + 0u,
                      .psn = live.at(0),
                      .va = address_of(memory.data()),
                      .rkey = key,
                      .length = 3 * other,
                      .payload = pattern(other, 1)};
      EXPECT_EQ(live.answer(first).syndrome, other == pmtu ? 0x1fu : 0x61u) << other;
      if (other != pmtu) continue;
      const unsigned middle = write ? write_middle : send_middle;
      const unsigned last = write ? write_last : send_last;
      EXPECT_EQ(live.answer({.opcode = middle, .psn = live.at(1), .payload = pattern(other, 2)}).syndrome, 0x1fu);
      EXPECT_EQ(live.answer({.opcode = last, .psn = live.at(2), .payload = pattern(other, 3)}).syndrome, 0x1fu);
      for (std::uint32_t i = 0; i < 3; ++i)
        EXPECT_EQ(std::memcmp(memory.data() + i * other, pattern(other, i + 1).data(), other), 0);
    }
  }
}

TEST(RuleMtuValue, OnlyTheFiveAreAccepted) {
  LiveConfig config;
  config.connected = false;
  Live live(config);
  PacketPath path = live.config();
  for (const std::uint32_t bytes : {0u, 255u, 1000u, 8192u}) {
    path.pmtu_bytes = bytes;
    const Status refused = live.engine->connect_packets(live.queue->qpn, path);
    ASSERT_FALSE(refused) << bytes;
    EXPECT_NE(refused.error().text.find("256, 512, 1024, 2048 or 4096"), std::string::npos) << refused.error().text;
  }
}

// ---- unreliable connections: a loss costs its message and nothing else

class RuleUc : public ::testing::Test {
 protected:
  static LiveConfig config() {
    LiveConfig config;
    config.transport = r::Transport::uc;
    return config;
  }
  [[nodiscard]] Pkt packet(unsigned opcode, std::uint32_t step, unsigned seed, std::uint32_t n = 256) const {
    return {.opcode = uc + opcode,
            .psn = live.at(step),
            .va = address_of(memory.data()),
            .rkey = key,
            .length = 768,
            .payload = pattern(n, seed)};
  }
  Live live{config()};
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::uint32_t key = live.reg(memory.data(), memory.size());
};

TEST_F(RuleUc, NobodyAnswers) {
  live.queue->post_receive({{address_of(memory.data()), 1024, key}});
  EXPECT_TRUE(live.feed(packet(send_only, 0, 1)).empty());
  EXPECT_TRUE(live.queue->poll());
  EXPECT_TRUE(live.feed(packet(send_only, 1, 1)).empty()) << "not even where there is no receive";
  EXPECT_EQ(live.drops(roce::Drop::no_receiver), 1u);
  Pkt wrong = packet(write_only, 2, 1, 8);
  wrong.length = 8;
  wrong.rkey ^= 1;
  EXPECT_TRUE(live.feed(wrong).empty()) << "nor to a wrong key";
  EXPECT_FALSE(live.failed());
}

TEST_F(RuleUc, ALostPacketDropsItsMessageAndTheNextOneIsWhole) {
  live.queue->post_receive({{address_of(memory.data()), 1024, key}});
  live.feed(packet(send_first, 0, 1));
  live.feed(packet(send_last, 2, 3));  // the middle is lost
  EXPECT_FALSE(live.queue->poll());
  live.feed(packet(send_first, 3, 4));
  live.feed(packet(send_last, 4, 5, 10));
  const auto event = live.queue->poll();
  ASSERT_TRUE(event) << "in the same receive";
  EXPECT_EQ(event->bytes, 266u);
  EXPECT_EQ(event->counter, 0u);
  EXPECT_EQ(std::memcmp(memory.data(), pattern(256, 4).data(), 256), 0);
}

TEST_F(RuleUc, ALostFirstPacketDropsTheRest) {
  live.queue->post_receive({{address_of(memory.data()), 1024, key}});
  live.feed(packet(send_middle, 1, 1));
  live.feed(packet(send_last, 2, 2));
  EXPECT_FALSE(live.queue->poll());
  EXPECT_EQ(memory, std::vector<std::byte>(4096));
  live.feed(packet(send_only, 3, 3, 20));
  EXPECT_TRUE(live.queue->poll());
}

TEST_F(RuleUc, ALostLastPacketDropsItsMessage) {
  live.queue->post_receive({{address_of(memory.data()), 1024, key}});
  live.feed(packet(send_first, 0, 1));
  live.feed(packet(send_only, 2, 3, 20));
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->bytes, 20u);
  EXPECT_FALSE(live.queue->poll());
}

TEST_F(RuleUc, WritesAndTheirImmediateFollowTheSameRule) {
  live.queue->post_receive({});
  live.feed(packet(write_first, 0, 1));
  live.feed(packet(write_last_imm, 2, 3));
  EXPECT_FALSE(live.queue->poll()) << "its middle is missing";
  live.feed(packet(write_first, 3, 1));
  live.feed(packet(write_middle, 4, 2));
  live.feed(packet(write_last_imm, 5, 3));
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(event->bytes, 768u);
}

TEST_F(RuleUc, AWrongSequenceResyncsAtTheNextFirst) {
  live.queue->post_receive({{address_of(memory.data()), 1024, key}});
  live.feed(packet(send_first, 0, 1));
  live.feed(packet(write_middle, 1, 2));
  live.feed(packet(send_last, 2, 3));
  EXPECT_FALSE(live.queue->poll());
  live.feed(packet(send_only, 3, 4, 4));
  EXPECT_TRUE(live.queue->poll());
  EXPECT_FALSE(live.failed());
}

TEST_F(RuleUc, ASendIsDoneWhenItHasLeft) {
  live.queue->post({.opcode = m::Opcode::send, .data = {{address_of(memory.data()), 600, key}}});
  live.drive();
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].opcode, uc + send_first + 0u);
  EXPECT_EQ(sent[2].opcode, uc + send_last + 0u);
  for (const Pkt& p : sent) EXPECT_FALSE(p.ack_req);
  EXPECT_TRUE(live.queue->poll());
  EXPECT_TRUE(live.qp().idle());
}

TEST_F(RuleUc, ReadsAndAtomicsDoNotExist) {
  live.feed({.opcode = read_request, .psn = live.at(0), .va = address_of(memory.data()), .rkey = key, .length = 8});
  EXPECT_EQ(live.drops(roce::Drop::wrong_transport), 1u);
  live.queue->post(
      {.opcode = m::Opcode::rdma_read, .raddr = 0, .rkey = 1, .data = {{address_of(memory.data()), 8, key}}});
  const auto event = live.wait();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_qp_operation);
}

// ---- datagrams, over both kinds of address

class RuleUd : public ::testing::TestWithParam<bool> {
 protected:
  static LiveConfig config() {
    LiveConfig config;
    config.transport = r::Transport::ud;
    config.v6 = GetParam();
    config.pmtu_bytes = 1024;
    return config;
  }
  [[nodiscard]] Pkt datagram(std::uint32_t n) const {
    return {.opcode = ud_send,
            .psn = 0x123456,
            .ack_req = false,
            .qkey = live.config().qkey,
            .source_qpn = 0x00beef,
            .payload = pattern(n, 6)};
  }
  void post_receive(std::uint32_t n) { live.queue->post_receive({{address_of(inbox.data()), n, key}}); }
  Live live{config()};
  std::vector<std::byte> inbox = std::vector<std::byte>(2048);
  std::uint32_t key = live.reg(inbox.data(), inbox.size());
};
INSTANTIATE_TEST_SUITE_P(Over, RuleUd, ::testing::Bool(), [](const auto& each) { return each.param ? "v6" : "v4"; });

TEST_P(RuleUd, FortyBytesOfHeaderComeBeforeThePayload) {
  post_receive(100);
  EXPECT_TRUE(live.feed(datagram(21)).empty());
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send);
  EXPECT_EQ(event->bytes, 61u) << "the 40 count";
  EXPECT_EQ(event->flags_rqpn & 0xffffff, 0x00beefu);
  EXPECT_NE(event->flags_rqpn & m::kCqeGrh, 0u);
  EXPECT_EQ(std::memcmp(inbox.data() + 40, pattern(21, 6).data(), 21), 0);
  EXPECT_EQ(inbox[61], std::byte{0});
  // The header is the one that was on the wire, with a right checksum.
  Pkt sent = datagram(21);
  sent.qpn = live.queue->qpn;
  const Bytes wire = on_the_wire(live.flow, bytes_of(sent));
  if (GetParam()) {
    EXPECT_EQ(std::memcmp(inbox.data(), wire.data(), 40), 0);
    return;
  }
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(inbox[i], std::byte{0}) << i;
  EXPECT_EQ(std::memcmp(inbox.data() + 20, wire.data(), 10), 0);
  EXPECT_EQ(std::memcmp(inbox.data() + 32, wire.data() + 12, 8), 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < 40; i += 2)
    sum += std::to_integer<std::uint32_t>(inbox[i]) << 8 | std::to_integer<std::uint32_t>(inbox[i + 1]);
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
}

TEST_P(RuleUd, SequenceNumbersAreNotLookedAt) {
  for (const std::uint32_t psn : {5u, 5u, 0u, 0xffffffu}) {
    post_receive(100);
    Pkt p = datagram(4);
    p.psn = psn;
    live.feed(p);
    EXPECT_TRUE(live.queue->poll());
  }
}

TEST_P(RuleUd, AWrongQueueKeyIsDropped) {
  post_receive(100);
  Pkt p = datagram(4);
  p.qkey ^= 1;
  EXPECT_TRUE(live.feed(p).empty());
  EXPECT_FALSE(live.queue->poll());
  EXPECT_EQ(live.drops(roce::Drop::bad_qkey), 1u);
}

TEST_P(RuleUd, WithoutAReceiveItIsDropped) {
  EXPECT_TRUE(live.feed(datagram(4)).empty());
  EXPECT_EQ(live.drops(roce::Drop::no_receiver), 1u);
  EXPECT_FALSE(live.failed());
  post_receive(100);
  live.feed(datagram(4));
  EXPECT_TRUE(live.queue->poll());
}

TEST_P(RuleUd, AReceiveThatIsTooSmallFailsAlone) {
  post_receive(60);
  post_receive(61);
  live.feed(datagram(21));
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_length);
  live.feed(datagram(21));
  event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
}

TEST_P(RuleUd, AnImmediateIsDelivered) {
  post_receive(100);
  Pkt p = datagram(4);
  p.opcode = ud_send_imm;
  p.imm = 0x0a0b0c0d;
  live.feed(p);
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_imm);
  EXPECT_EQ(event->imm, 0x0a0b0c0du);
}

// The work request carries the address: 48 bytes between control and data.
void post_datagram(Live& live, const roce::IpAddress& to, const void* from, std::uint32_t n, std::uint32_t key) {
  std::byte* const wqe = live.queue->sq();
  std::memset(wqe, 0, 128);
  put32(wqe, static_cast<std::uint32_t>(m::Opcode::send));
  put32(wqe + 4, live.queue->qpn << 8 | 5);
  wqe[11] = std::byte{m::kCompletionAlways};
  put32(wqe + 16, 0x55667788);              // queue key
  put32(wqe + 24, 0x80000000u | 0x00cafe);  // extended, destination
  std::memcpy(wqe + 48, to.gid.data(), 16);
  put32(wqe + 64, n);
  put32(wqe + 68, key);
  put64(wqe + 72, address_of(from));
  live.queue->pi = 2;
  live.queue->publish();
  live.drive();
}

TEST_P(RuleUd, ASendSaysWhereItGoes) {
  const auto to = roce::IpAddress::parse(GetParam() ? "fd00::77" : "10.0.0.77").value();
  auto payload = pattern(300, 2);
  std::memcpy(inbox.data(), payload.data(), payload.size());
  post_datagram(live, to, inbox.data(), 300, key);
  ASSERT_EQ(live.port->on_the_way().size(), 1u);
  EXPECT_EQ(live.port->on_the_way().front().flow.destination, to);
  const auto sent = live.sent();
  EXPECT_EQ(sent[0].opcode, ud_send);
  EXPECT_EQ(sent[0].qpn, 0x00cafeu);
  EXPECT_EQ(sent[0].qkey, 0x55667788u);
  EXPECT_EQ(sent[0].source_qpn, live.queue->qpn);
  EXPECT_EQ(sent[0].payload, payload);
  EXPECT_TRUE(live.queue->poll()) << "done when it has left";
}

// One packet is one message. As verbs has it the sender is told; rdma_rxe sends nothing and says that all is well.
TEST_P(RuleUd, WhatDoesNotFitOnePacketIsTheSendersLocalLengthError) {
  const auto to = roce::IpAddress::parse(GetParam() ? "fd00::77" : "10.0.0.77").value();
  post_datagram(live, to, inbox.data(), 1024, key);
  ASSERT_EQ(live.sent().size(), 1u) << "the path MTU itself still fits";
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);

  Live other{config()};
  post_datagram(other, to, inbox.data(), 1025, other.reg(inbox.data(), inbox.size()));
  EXPECT_TRUE(other.sent().empty());
  event = other.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::requester_error);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_length);
}

TEST_P(RuleUd, FaultsAndCapturesKeepItsDestination) {
  const auto to = roce::IpAddress::parse(GetParam() ? "fd00::77" : "10.0.0.77").value();
  for (const char* plan : {"dup=100%", "reorder=100%", "delay=100%:1us"}) {
    LiveConfig faulty = config();
    faulty.engine.faults = FaultPlan::parse(plan).value();
    faulty.engine.capture = ::testing::TempDir() + fmt::format("strait-ud-{}-{}.pcapng", ::getpid(), GetParam());
    {
      Live other(faulty);
      post_datagram(other, to, inbox.data(), 300, other.reg(inbox.data(), inbox.size()));
      const std::size_t copies = plan[1] == 'u' ? 2 : 1;
      EXPECT_TRUE(other.drive_until([&] { return other.port->on_the_way().size() == copies; })) << plan;
      for (const auto& frame : other.port->on_the_way()) EXPECT_EQ(frame.flow.destination, to) << plan;
      other.sent();  // checks the CRC
      std::ifstream file(faulty.engine.capture, std::ios::binary);
      const std::string captured{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      const std::string address(reinterpret_cast<const char*>(to.gid.data()) + (GetParam() ? 0 : 12),
                                GetParam() ? 16 : 4);
      EXPECT_NE(captured.find(address), std::string::npos) << plan;
    }
    ::unlink(faulty.engine.capture.c_str());
  }
}

// ---- the reliable connection over IPv6

TEST(RuleV6, RequestsAndAnswers) {
  LiveConfig config;
  config.v6 = true;
  Live live(config);
  std::vector<std::byte> memory(1024);
  const std::uint32_t key = live.reg(memory.data(), memory.size());
  const Pkt write{.opcode = write_only,
                  .psn = live.at(0),
                  .va = address_of(memory.data()),
                  .rkey = key,
                  .length = 9,
                  .payload = pattern(9, 1)};
  EXPECT_EQ(live.answer(write).syndrome, 0x1fu);
  EXPECT_EQ(live.feed({.opcode = read_request, .psn = live.at(1), .va = write.va, .rkey = key, .length = 600}).size(),
            3u);
  EXPECT_EQ(live.answer({.opcode = fetch_add, .psn = live.at(4), .va = write.va, .rkey = key}).opcode, atomic_ack);
  live.queue->post({.opcode = m::Opcode::rdma_write, .raddr = 0, .rkey = 1, .inlined = pattern(8, 1)});
  EXPECT_EQ(live.sent().size(), 1u);
  live.feed(live.ack(live.ours(0)));
  EXPECT_TRUE(live.queue->poll());
  // From the IPv4 address of the same number it is somebody else.
  live.flow.source = roce::IpAddress::v4(10, 0, 0, 2);
  live.flow.destination = roce::IpAddress::v4(10, 0, 0, 1);
  EXPECT_TRUE(live.feed({.opcode = read_request, .psn = live.at(5)}).empty());
}

}  // namespace
}  // namespace strait::soft::nic::testing
