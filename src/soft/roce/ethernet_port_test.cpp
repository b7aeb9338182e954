// SPDX-License-Identifier: Apache-2.0
// Ports on Ethernet frames: two of them find each other and talk; a raw peer asks them as a kernel would.
#include "soft/roce/ethernet_port.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "soft/roce/ip_udp.hpp"
#include "soft/roce/port_testing.hpp"
#include "soft/roce/testing.hpp"
#include "sys/clock.hpp"
#include "sys/socket.hpp"

namespace strait::soft::roce {
namespace {

using testing::Bytes;
using testing::Collector;
using testing::from_hex;
using testing::send_one;

constexpr Mac kMacA = {0x02, 0, 0, 0, 0, 0xa};
constexpr Mac kMacB = {0x02, 0, 0, 0, 0, 0xb};

std::string socket_path(const char* end) {
  return ::testing::TempDir() + "strait-eth-" + end + "-" + std::to_string(::getpid());
}

EthernetPortSettings settings_of(const char* address, const Mac& mac, const char* local, const char* remote) {
  EthernetPortSettings settings;
  settings.address = IpAddress::parse(address).value();
  settings.mac = mac;
  settings.local_path = socket_path(local);
  settings.remote_path = socket_path(remote);
  return settings;
}

class EthernetBothFamilies : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Link, EthernetBothFamilies,
                         ::testing::Values(std::pair{"198.51.100.1", "198.51.100.2"}, std::pair{"fd00::1", "fd00::2"}));

TEST_P(EthernetBothFamilies, TwoPortsFindEachOther) {
  const auto a = EthernetPort::open(settings_of(GetParam().first, kMacA, "a", "b")).value();
  const auto b = EthernetPort::open(settings_of(GetParam().second, kMacB, "b", "a")).value();
  EXPECT_EQ(a->mtu_bytes(), a->address().is_v4() ? 1472U : 1452U);
  for (std::uint32_t psn = 0; psn < 5; ++psn) ASSERT_TRUE(send_one(*a, b->address(), 7, psn, 1000 + psn));
  ASSERT_TRUE(a->flush());
  Collector at_a;
  Collector at_b;
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (at_b.packets.size() < 5 && !deadline.passed()) {
    (void)b->receive(at_b, 10);  // the question, then the packets
    (void)a->receive(at_a, 10);  // the answer
  }
  ASSERT_EQ(at_b.packets.size(), 5U);
  for (std::uint32_t psn = 0; psn < 5; ++psn) {
    EXPECT_EQ(at_b.packets[psn].psn, psn);
    EXPECT_TRUE(at_b.packets[psn].icrc_right && at_b.packets[psn].payload_right);
    EXPECT_FALSE(at_b.packets[psn].id_unknown);
    EXPECT_EQ(at_b.packets[psn].flow, (Flow{a->address(), b->address(), testing::kSourcePort}));
  }
  // b learned a's MAC from the question: its answer needs none.
  ASSERT_TRUE(send_one(*b, a->address(), 8, 99, 16));
  ASSERT_TRUE(b->flush());
  (void)a->receive(at_a, 10);
  ASSERT_EQ(at_a.packets.size(), 1U);
  EXPECT_EQ(at_a.packets[0].psn, 99U);
}

TEST_P(EthernetBothFamilies, UnknownNeighbourIsGivenUpAndCounted) {
  const auto a = EthernetPort::open(settings_of(GetParam().first, kMacA, "lone-a", "lone-b")).value();
  const auto deaf = sys::LocalDatagram::bind({socket_path("lone-b"), false}).value();
  for (std::uint32_t psn = 0; psn < 40; ++psn) {
    ASSERT_TRUE(send_one(*a, IpAddress::parse(GetParam().second).value(), 7, psn, 8));
  }
  ASSERT_TRUE(a->flush());
  EXPECT_EQ(a->counters().send_refused, 8U) << "32 wait, the oldest are lost";
  Collector got;
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (a->counters().send_refused < 40 && !deadline.passed()) {
    (void)a->receive(got, 10);
    ::usleep(10'000);
  }
  EXPECT_EQ(a->counters().send_refused, 40U);
  EXPECT_EQ(a->counters().last_send_errno, EHOSTUNREACH);
  int questions = 0;
  std::vector<std::byte> frame(2000);
  while (deaf.receive(frame)) ++questions;
  EXPECT_EQ(questions, 5);
}

// Frames as other implementations make them.
class RawPeer : public ::testing::Test {
 protected:
  Bytes exchange(EthernetPort& port, const Bytes& frame) {
    EXPECT_EQ(raw_.send({socket_path("raw-port"), false}, frame, {}), 0);
    (void)port.receive(got_, 10);
    Bytes answer(70000);
    const auto received = raw_.receive(answer);
    answer.resize(received ? received->bytes : 0);
    return answer;
  }
  sys::LocalDatagram raw_ = sys::LocalDatagram::bind({socket_path("raw-peer"), false}).value();
  Collector got_;
};

TEST_F(RawPeer, AnswersArp) {
  const auto port = EthernetPort::open(settings_of("198.51.100.1", kMacA, "raw-port", "raw-peer")).value();
  const Bytes question = from_hex(
      "ffffffffffff 020000000002 0806 0001 0800 06 04 0001 020000000002 c6336402 000000000000 c6336401 "
      "000000000000000000000000000000000000");  // padded to the least length of a frame
  EXPECT_EQ(
      exchange(*port, question),
      from_hex("020000000002 02000000000a 0806 0001 0800 06 04 0002 02000000000a c6336401 020000000002 c6336402"));
  Bytes other = question;
  other[41] = std::byte{0x07};
  EXPECT_TRUE(exchange(*port, other).empty()) << "a question for somebody else";
  EXPECT_TRUE(exchange(*port, Bytes(question.begin(), question.begin() + 41)).empty()) << "cut short";
}

TEST_F(RawPeer, AnswersNeighbourSolicitation) {
  const auto port = EthernetPort::open(settings_of("fd00::1", kMacA, "raw-port", "raw-peer")).value();
  Bytes question = ask_neighbour({0x02, 0, 0, 0, 0, 2}, IpAddress::parse("fd00::2").value(), port->address());
  const Bytes answer = exchange(*port, question);
  ASSERT_EQ(answer.size(), 14U + 40 + 32);
  EXPECT_EQ(Bytes(answer.begin(), answer.begin() + 54),
            from_hex("020000000002 02000000000a 86dd 60000000 0020 3a ff fd000000000000000000000000000001 "
                     "fd000000000000000000000000000002"));
  EXPECT_EQ(answer[54], std::byte{136});
  EXPECT_EQ(answer[58], std::byte{0x60}) << "solicited, override";
  EXPECT_EQ(Bytes(answer.begin() + 62, answer.end()), from_hex("fd000000000000000000000000000001 0201 02000000000a"));
  question[60] ^= std::byte{1};
  EXPECT_TRUE(exchange(*port, question).empty()) << "wrong checksum";
  // Duplicate detection comes from nobody and is answered to everybody.
  const Bytes duplicate = ask_neighbour({0x02, 0, 0, 0, 0, 3}, IpAddress{}, port->address());
  const Bytes taken = exchange(*port, duplicate);
  ASSERT_EQ(taken.size(), 86U);
  EXPECT_EQ(Bytes(taken.begin(), taken.begin() + 6), from_hex("333300000001"));
  EXPECT_EQ(taken[58], std::byte{0x20});
}

TEST_F(RawPeer, SeesIdentificationAndCongestion) {
  const auto port = EthernetPort::open(settings_of("10.0.0.2", kMacA, "raw-port", "raw-peer")).value();
  const Bytes ip = from_hex(testing::kGoldenPackets[0].hex);  // 10.0.0.1 to 10.0.0.2
  const auto bth = testing::bth_of(ip);
  const Flow flow = testing::flow_of(ip);
  Bytes frame = from_hex("02000000000a 020000000002 0800");
  Bytes headers(ip_udp_bytes(flow));
  write_ip_udp(flow, bth, {0x03, 9, 0x1234}, headers.data());
  frame.insert(frame.end(), headers.begin(), headers.end());
  frame.insert(frame.end(), bth.begin(), bth.end());
  class Look final : public Sink {
   public:
    void on_packet(const Arrival& arrival) override {
      ++count;
      ip_id = arrival.ip_id;
      ecn_ce = arrival.ecn_ce;
      from = arrival.flow.source;
    }
    int count = 0;
    std::uint16_t ip_id = 0;
    bool ecn_ce = false;
    IpAddress from;
  } look;
  ASSERT_EQ(raw_.send({socket_path("raw-port"), false}, frame, {}), 0);
  EXPECT_EQ(port->receive(look, 10), 1);
  EXPECT_EQ(look.ip_id, 0x1234);
  EXPECT_TRUE(look.ecn_ce);
  // The sender's MAC is known from its packet: no question is needed to answer it.
  ASSERT_TRUE(send_one(*port, look.from, 1, 1, 4));
  ASSERT_TRUE(port->flush());
  Bytes answer(2000);
  answer.resize(raw_.receive(answer).value().bytes);
  EXPECT_EQ(Bytes(answer.begin(), answer.begin() + 14), from_hex("020000000002 02000000000a 0800"));
  EXPECT_EQ(Bytes(answer.begin() + 18, answer.begin() + 22), from_hex("0000 4000")) << "identification 0, DF";

  const std::uint64_t before = port->counters().not_roce;
  frame[14 + 10] ^= std::byte{1};  // header checksum
  ASSERT_EQ(raw_.send({socket_path("raw-port"), false}, frame, {}), 0);
  EXPECT_EQ(port->receive(look, 10), 0);
  EXPECT_EQ(port->counters().not_roce, before + 1);
}

TEST(EthernetPort, SurvivesAPeerThatIsNotThere) {
  const auto a = EthernetPort::open(settings_of("198.51.100.1", kMacA, "gone-a", "gone-b")).value();
  ASSERT_TRUE(send_one(*a, IpAddress::v4(198, 51, 100, 2), 7, 0, 8));
  ASSERT_TRUE(a->flush());
  const auto b = EthernetPort::open(settings_of("198.51.100.2", kMacB, "gone-b", "gone-a")).value();
  Collector got;
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (got.packets.empty() && !deadline.passed()) {
    (void)a->receive(got, 10);  // asks again after a while
    (void)b->receive(got, 10);
    ::usleep(1000);
  }
  EXPECT_EQ(got.packets.size(), 1U);
}

TEST(EthernetPort, FullSocketKeepsTheRest) {
  const auto a = EthernetPort::open(settings_of("198.51.100.1", kMacA, "full-a", "full-b")).value();
  const auto b = EthernetPort::open(settings_of("198.51.100.2", kMacB, "full-b", "full-a")).value();
  Collector got;
  ASSERT_TRUE(send_one(*b, a->address(), 7, 1000, 8));
  ASSERT_TRUE(b->flush());
  for (int i = 0; i < 5; ++i) {
    (void)a->receive(got, 10);
    (void)b->receive(got, 10);
  }
  ASSERT_EQ(got.packets.size(), 1U);
  got.packets.clear();
  // More than the kernel keeps for a receiver that does not read.
  std::uint32_t count = 0;
  while (send_one(*a, b->address(), 7, count, 1024)) ++count;
  const Status first = a->flush();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Code::again);
  while (got.packets.size() < count) {
    if (b->receive(got, 1000) == 0 && a->flush() && b->receive(got, 1000) == 0) break;
  }
  ASSERT_EQ(got.packets.size(), count);
  for (std::uint32_t psn = 0; psn < count; ++psn) EXPECT_EQ(got.packets[psn].psn, psn);
}

TEST(EthernetPort, RefusesWhatCannotBe) {
  const auto code = [](auto change) {
    EthernetPortSettings settings = settings_of("198.51.100.1", kMacA, "bad-a", "bad-b");
    change(settings);
    const auto port = EthernetPort::open(settings);
    return port ? Code::ok : port.error().code;
  };
  EXPECT_EQ(code([](auto&) {}), Code::ok);
  EXPECT_EQ(code([](auto& s) { s.address = {}; }), Code::invalid);
  EXPECT_EQ(code([](auto& s) { s.mac[0] = 1; }), Code::invalid);
  EXPECT_EQ(code([](auto& s) { s.link_mtu_bytes = 70000; }), Code::invalid);
  EXPECT_EQ(code([](auto& s) { s.remote_path = s.local_path; }), Code::invalid);
  EXPECT_EQ(code([](auto& s) { s.local_path = "/no/such/folder/socket"; }), Code::system);
}

}  // namespace
}  // namespace strait::soft::roce
