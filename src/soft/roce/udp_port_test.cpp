// SPDX-License-Identifier: Apache-2.0
// Ports on real sockets: loopback over both families, runs, full queues, and two processes that share an address.
#include "soft/roce/udp_port.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "soft/roce/port_testing.hpp"
#include "soft/roce/udp_wire.hpp"
#include "sys/clock.hpp"
#include "sys/socket.hpp"

namespace strait::soft::roce {
namespace {

using testing::Collector;
using testing::send_one;

// 127.x.y.z is this host for all x, y, z: one per process, so that tests may run beside each other.
IpAddress own_address(std::uint8_t last) {
  const auto pid = static_cast<unsigned>(::getpid());
  return IpAddress::v4(127, static_cast<std::uint8_t>(1 + pid / 250 % 250), static_cast<std::uint8_t>(pid % 250), last);
}

std::unique_ptr<UdpPort> open_port(const IpAddress& address) {
  UdpPortSettings settings;
  settings.address = address;
  return UdpPort::open(settings).value();
}

std::uint32_t qpn_of(const UdpPort& port, std::uint32_t low) {
  return std::uint32_t{port.qpn_range()} << 16 | low;
}

// Receives until `count` packets are there.
void receive_count(UdpPort& port, Collector& got, std::size_t count) {
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (got.packets.size() < count && !deadline.passed()) {
    if (port.receive(got, 1000) == 0 && port.watch())
      (void)sys::wait_ready(port.fd(), false, sys::Deadline::after_ns(50'000'000));
  }
}

TEST(UdpPort, CarriesPacketsOfAllSizesBothWays) {
  const auto a = open_port(own_address(1));
  const auto b = open_port(own_address(2));
  EXPECT_GE(a->mtu_bytes(), 4200U);
  EXPECT_GT(a->receive_buffer_bytes(), 65536);
  for (std::uint32_t psn = 0; psn < 40; ++psn) {
    ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), psn, psn * 37));
    ASSERT_TRUE(send_one(*b, a->address(), qpn_of(*a, 6), psn, 100));
  }
  ASSERT_TRUE(a->flush());
  ASSERT_TRUE(b->flush());
  Collector at_a;
  Collector at_b;
  receive_count(*b, at_b, 40);
  receive_count(*a, at_a, 40);
  ASSERT_EQ(at_b.packets.size(), 40U);
  ASSERT_EQ(at_a.packets.size(), 40U);
  for (std::uint32_t psn = 0; psn < 40; ++psn) {
    const auto& packet = at_b.packets[psn];
    EXPECT_EQ(packet.psn, psn);
    EXPECT_EQ(packet.payload_bytes, psn * 37);
    EXPECT_TRUE(packet.icrc_right && packet.payload_right);
    EXPECT_TRUE(packet.id_unknown);
    EXPECT_EQ(packet.flow, (Flow{a->address(), b->address(), 4791}));
    EXPECT_FALSE(packet.ecn_ce);
  }
  EXPECT_EQ(a->counters().sent, 40U);
  EXPECT_EQ(b->counters().received, 40U);
  EXPECT_LT(b->counters().batches_sent, 3U) << "equal packets to one address go as one run";
}

TEST(UdpPort, EqualPacketsTravelInRunsAndArriveSplit) {
  const auto a = open_port(own_address(3));
  const auto b = open_port(own_address(4));
  constexpr std::uint32_t kCount = 130;
  for (std::uint32_t psn = 0; psn < kCount; ++psn) {
    ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), psn, psn == 70 ? 10 : 1024));
  }
  ASSERT_TRUE(a->flush());
  Collector got;
  EXPECT_LE(b->receive(got, 5), 5);
  receive_count(*b, got, kCount);
  ASSERT_EQ(got.packets.size(), kCount);
  for (std::uint32_t psn = 0; psn < kCount; ++psn) {
    EXPECT_EQ(got.packets[psn].psn, psn);
    EXPECT_TRUE(got.packets[psn].icrc_right && got.packets[psn].payload_right);
  }
  EXPECT_EQ(a->counters().batches_sent, 3U) << "62 fill a datagram, 9 with the short one at the end, 59";
  EXPECT_LT(b->counters().batches_received, 10U);
}

// Who receives all the time is not told of what arrives. Who waits is, also of what came before.
TEST(UdpPort, TellsWhoeverWaitsAfterAskingToBeTold) {
  const auto a = open_port(own_address(7));
  const auto b = open_port(own_address(8));
  const auto readable = [&] { return sys::wait_ready(b->fd(), false, sys::Deadline::after_ns(20'000'000)); };
  const auto send = [&](std::uint32_t psn) {
    ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), psn, 8));
    ASSERT_TRUE(a->flush());
  };
  Collector got;
  const auto spin_until = [&](std::size_t count) {
    const auto deadline = sys::Deadline::after_ns(20'000'000'000);
    while (got.packets.size() < count && !deadline.passed()) (void)b->receive(got, 1000);
  };
  std::uint32_t psn = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(b->watch());
    EXPECT_FALSE(readable());
    send(psn);
    EXPECT_TRUE(readable()) << "it was asked";
    for (const std::uint32_t end = psn + 200; psn != end; send(++psn)) spin_until(psn + 1);
    EXPECT_FALSE(readable()) << "one has arrived that nobody who receives all the time needs to be told of";
    ASSERT_TRUE(b->watch());
    EXPECT_TRUE(readable()) << "it came before the question";
    spin_until(++psn);
    // Receiving in vain for long is as good as asking.
    for (int i = 0; i < 2000; ++i) EXPECT_EQ(b->receive(got, 1), 0);
    send(psn);
    EXPECT_TRUE(readable());
    spin_until(++psn);
  }
  EXPECT_EQ(got.packets.size(), psn);
}

TEST(UdpPort, SegmentationCanBeTurnedOff) {
  UdpPortSettings settings;
  settings.address = own_address(5);
  settings.segmentation = false;
  const auto a = UdpPort::open(settings).value();
  const auto b = open_port(own_address(6));
  for (std::uint32_t psn = 0; psn < 20; ++psn) ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), psn, 500));
  ASSERT_TRUE(a->flush());
  EXPECT_EQ(a->counters().batches_sent, 20U);
  Collector got;
  receive_count(*b, got, 20);
  EXPECT_EQ(got.packets.size(), 20U);
}

// ::1 is shared with whoever else runs these tests now: their ports pass our packets on, unless they just ended.
TEST(UdpPort, CarriesPacketsOverIpv6) {
  const auto port = open_port(IpAddress::parse("::1").value());
  Collector got;
  const auto deadline = sys::Deadline::after_ns(20'000'000'000);
  while (got.packets.size() < 70 && !deadline.passed()) {
    for (std::uint32_t psn = 0; psn < 70; ++psn) {
      ASSERT_TRUE(send_one(*port, port->address(), qpn_of(*port, 9), psn, 2048));
    }
    ASSERT_TRUE(port->flush());
    for (int i = 0; i < 100 && got.packets.size() < 70; ++i) {
      if (port->receive(got, 1000) == 0) (void)sys::wait_ready(port->fd(), false, sys::Deadline::after_ns(5'000'000));
    }
  }
  ASSERT_GE(got.packets.size(), 70U);
  for (const auto& packet : got.packets) {
    EXPECT_TRUE(packet.icrc_right && packet.payload_right);
    EXPECT_FALSE(packet.id_unknown);
    EXPECT_EQ(packet.flow.source_port, 4791);
  }
  EXPECT_LT(port->counters().batches_sent, port->counters().sent / 10);
}

TEST(UdpPort, FullQueueIsSaidAndKept) {
  const auto a = open_port(own_address(7));
  const auto b = open_port(own_address(8));
  std::uint32_t queued = 0;
  while (send_one(*a, b->address(), qpn_of(*b, 5), queued, 4096)) ++queued;
  EXPECT_GT(queued, 100U);
  EXPECT_EQ(a->begin(b->address(), 1, a->mtu_bytes() + 1), nullptr);
  ASSERT_TRUE(a->flush());
  EXPECT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), queued, 4096));
  Collector got;
  receive_count(*b, got, queued);
  EXPECT_EQ(got.packets.size(), queued);
}

TEST(UdpPort, PacketThatCannotLeaveIsCountedAndDoesNotStopTheRest) {
  const auto a = open_port(own_address(9));
  // From a loopback address nothing leaves the host.
  ASSERT_TRUE(send_one(*a, IpAddress::v4(192, 0, 2, 1), 5, 0, 8));
  ASSERT_TRUE(send_one(*a, IpAddress::parse("fd00::1").value(), 5, 1, 8));
  ASSERT_TRUE(send_one(*a, a->address(), qpn_of(*a, 5), 2, 8));
  ASSERT_TRUE(a->flush());
  EXPECT_GE(a->counters().send_refused, 1U);
  EXPECT_NE(a->counters().last_send_errno, 0);
  Collector got;
  receive_count(*a, got, 1);
  ASSERT_EQ(got.packets.size(), 1U);
  EXPECT_EQ(got.packets[0].psn, 2U);
}

TEST(UdpPort, RefusesAddressesItCannotHave) {
  for (const char* text : {"0.0.0.0", "::", "224.0.0.1", "192.0.2.1"}) {
    UdpPortSettings settings;
    settings.address = IpAddress::parse(text).value();
    const auto port = UdpPort::open(settings);
    ASSERT_FALSE(port) << text;
    EXPECT_EQ(port.error().code, Code::invalid);
    EXPECT_FALSE(port.error().remedy.empty());
  }
}

TEST(UdpPort, RangesAreExclusiveAndComeBack) {
  const IpAddress address = own_address(10);
  UdpPortSettings settings;
  settings.address = address;
  settings.qpn_range = 200;
  {
    const auto first = UdpPort::open(settings).value();
    EXPECT_EQ(first->qpn_range(), 200);
    EXPECT_EQ(UdpPort::open(settings).error().code, Code::again);
    EXPECT_NE(open_port(address)->qpn_range(), 200);
  }
  EXPECT_TRUE(UdpPort::open(settings));
}

TEST(UdpPort, NobodyHoldsTheRange) {
  const auto a = open_port(own_address(11));
  const auto range = static_cast<std::uint32_t>(a->qpn_range() % 255 + 1);
  for (std::uint32_t psn = 0; psn < 3; ++psn) ASSERT_TRUE(send_one(*a, a->address(), range << 16, psn, 8));
  ASSERT_TRUE(send_one(*a, a->address(), qpn_of(*a, 1), 3, 8));
  ASSERT_TRUE(a->flush());
  Collector got;
  receive_count(*a, got, 1);
  ASSERT_EQ(got.packets.size(), 1U);
  EXPECT_EQ(got.packets[0].psn, 3U);
  EXPECT_EQ(a->counters().forward_no_holder, 3U);
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  int ends[2] = {-1, -1};
};

// The other process: serves its port on the shared address until told to stop, says what it passed on, and ends with 0
// if it got the 64 packets meant for it.
[[noreturn]] void be_the_other_process(const IpAddress& shared, int tell, int stop) {
  UdpPortSettings settings;
  settings.address = shared;
  auto port = UdpPort::open(settings);
  if (!port) ::_exit(10);
  const std::uint8_t range = (*port)->qpn_range();
  if (::write(tell, &range, 1) != 1) ::_exit(11);
  Collector got;
  while (!sys::wait_ready(stop, false, sys::Deadline::after_ns(0))) {
    if ((*port)->receive(got, 1000) == 0)
      (void)sys::wait_ready((*port)->fd(), false, sys::Deadline::after_ns(1'000'000));
  }
  for (const auto& packet : got.packets) {
    if (!packet.icrc_right || !packet.payload_right || packet.qpn >> 16 != range) ::_exit(12);
  }
  const std::uint64_t forwarded = (*port)->counters().forwarded;
  if (::write(tell, &forwarded, sizeof forwarded) != sizeof forwarded) ::_exit(13);
  ::_exit(got.packets.size() == 64 ? 0 : 14);
}

TEST(UdpPort, TwoProcessesShareAnAddress) {
  const IpAddress shared = own_address(12);
  std::vector<IpAddress> others;
  for (std::uint8_t i = 0; i < 8; ++i) others.push_back(own_address(static_cast<std::uint8_t>(20 + i)));
  const Pipe tell;
  const Pipe stop;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) be_the_other_process(shared, tell.ends[1], stop.ends[0]);
  std::uint8_t their_range = 0;
  ASSERT_EQ(::read(tell.ends[0], &their_range, 1), 1);
  const auto mine = open_port(shared);
  ASSERT_NE(mine->qpn_range(), their_range);

  // From several addresses, so that the kernel's choice falls on both sockets. Whichever it is, of every sender eight
  // packets reach the wrong one.
  for (const IpAddress& other : others) {
    const auto sender = open_port(other);
    for (std::uint32_t psn = 0; psn < 8; ++psn) {
      ASSERT_TRUE(send_one(*sender, shared, std::uint32_t{their_range} << 16 | 7, psn, 256));
      ASSERT_TRUE(send_one(*sender, shared, qpn_of(*mine, 7), psn, 256));
    }
    ASSERT_TRUE(sender->flush());
  }
  Collector got;
  receive_count(*mine, got, 64);
  EXPECT_EQ(got.packets.size(), 64U);
  for (const auto& packet : got.packets) {
    EXPECT_TRUE(packet.icrc_right && packet.payload_right);
    EXPECT_EQ(packet.qpn, qpn_of(*mine, 7));
    EXPECT_NE(packet.flow.source, shared) << "forwarding keeps the flow";
  }
  // What is not ours and still waits here goes on its way.
  for (int i = 0; i < 100; ++i) {
    (void)mine->receive(got, 100);
    ::usleep(1000);
  }
  ASSERT_EQ(::write(stop.ends[1], "x", 1), 1);
  std::uint64_t they_forwarded = 0;
  EXPECT_EQ(::read(tell.ends[0], &they_forwarded, sizeof they_forwarded), static_cast<ssize_t>(sizeof they_forwarded));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(mine->counters().forwarded + they_forwarded, 64U);
}

std::unique_ptr<UdpPort> open_shared(const IpAddress& address) {
  UdpPortSettings settings;
  settings.address = address;
  settings.shared = {address};
  return UdpPort::open(settings).value();
}

// The kernel gives all packets of a flow to one of the sockets on port 4791. Whichever that is: those who never look do
// not stand between the others.
TEST(UdpPort, AProcessThatIsStoppedIsInNobodysWay) {
  const auto a = open_shared(own_address(20));
  const auto b = open_shared(own_address(20));
  std::vector<std::unique_ptr<UdpPort>> stopped;
  for (int i = 0; i < 8; ++i) stopped.push_back(open_shared(own_address(20)));
  for (std::uint32_t psn = 0; psn < 40; ++psn) {
    ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*b, 5), psn, 64));
    ASSERT_TRUE(send_one(*a, b->address(), qpn_of(*stopped[0], 5), psn, 64)) << "and between them some for another";
  }
  ASSERT_TRUE(a->flush());
  Collector got;
  receive_count(*b, got, 40);
  ASSERT_EQ(got.packets.size(), 40U);
  for (std::uint32_t psn = 0; psn < 40; ++psn) {
    EXPECT_EQ(got.packets[psn].psn, psn) << "in order";
    EXPECT_TRUE(got.packets[psn].icrc_right && got.packets[psn].payload_right);
    EXPECT_EQ(got.packets[psn].flow, (Flow{a->address(), b->address(), 4791}));
  }
}

// As where another user's processes have it: those on this host are in reach all the same.
TEST(UdpPort, DoesWithoutThePortThatEverybodyKnows) {
  const IpAddress address = own_address(21);
  sys::UdpSettings taken;
  taken.address = address.gid;
  taken.port = 4791;
  const auto stranger = sys::UdpSocket::open(taken).value();
  UdpPortSettings plain;
  plain.address = address;
  EXPECT_FALSE(UdpPort::open(plain)) << "nobody shares with it";
  const auto a = open_shared(address);
  const auto b = open_shared(address);
  EXPECT_FALSE(a->is_public());
  ASSERT_TRUE(send_one(*a, address, qpn_of(*b, 5), 1, 64));
  ASSERT_TRUE(send_one(*b, address, qpn_of(*a, 5), 2, 64));
  ASSERT_TRUE(a->flush());
  ASSERT_TRUE(b->flush());
  Collector at_a;
  Collector at_b;
  receive_count(*b, at_b, 1);
  receive_count(*a, at_a, 1);
  ASSERT_EQ(at_a.packets.size(), 1U);
  ASSERT_EQ(at_b.packets.size(), 1U);
  EXPECT_TRUE(at_a.packets[0].icrc_right && at_b.packets[0].icrc_right);
  EXPECT_EQ(at_b.packets[0].flow.source_port, a->leaves_from(0));
}

// A child that the application forked for something else lives on after the port has gone: neither the range nor the
// kernel's choice among the sockets of the address may depend on it.
TEST(UdpPort, ForkedChildHoldsNothing) {
  UdpPortSettings settings;
  settings.address = own_address(14);
  settings.qpn_range = 77;
  auto port = UdpPort::open(settings).value();
  const Pipe runs;
  const Pipe stop;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)!::write(runs.ends[1], "r", 1);
    char end = 0;
    ::_exit(::read(stop.ends[0], &end, 1) == 1 ? 0 : 1);
  }
  // It closes its copies when it first runs.
  char running = 0;
  ASSERT_EQ(::read(runs.ends[0], &running, 1), 1);
  port.reset();
  const auto again = UdpPort::open(settings);
  EXPECT_TRUE(again);
  if (again) {
    for (std::uint32_t psn = 0; psn < 20; ++psn) ASSERT_TRUE(send_one(**again, settings.address, 77U << 16, psn, 8));
    ASSERT_TRUE((*again)->flush());
    Collector got;
    receive_count(**again, got, 20);
    EXPECT_EQ(got.packets.size(), 20U);
  }
  ASSERT_EQ(::write(stop.ends[1], "x", 1), 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it lived all the time";
}

// A stranger on the host may write to the claim's name, but not say who sent a packet unless it is the same user.
TEST(UdpPort, GarbageOnTheClaimIsCounted) {
  const auto port = open_port(own_address(13));
  const auto stranger = sys::LocalDatagram::bind({"strait-stranger-" + std::to_string(::getpid()), true}).value();
  const std::byte garbage[100] = {};
  ASSERT_EQ(stranger.send(range_name(port->address(), port->qpn_range()), std::span(garbage).first(3), {}), 0);
  ASSERT_EQ(stranger.send(range_name(port->address(), port->qpn_range()), garbage, {}), 0);
  Collector got;
  for (int i = 0; i < 100; ++i) (void)port->receive(got, 10);
  EXPECT_EQ(port->counters().not_roce, 2U);
  EXPECT_TRUE(got.packets.empty());
}

}  // namespace
}  // namespace strait::soft::roce
