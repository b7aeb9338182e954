// SPDX-License-Identifier: Apache-2.0
// UDP in runs, local datagrams and the host's addresses: what arrives is what was sent, and refusals say why.
#include "sys/udp.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include "sys/local_datagram.hpp"
#include "sys/output_file.hpp"
#include "sys/socket.hpp"

namespace strait::sys {
namespace {

constexpr IpBytes kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
constexpr IpBytes kLoopback6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr IpBytes kDocumentation = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};

Deadline soon_enough() {
  return Deadline::after_ns(20'000'000'000);
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  return out;
}

// All datagrams that arrive until `bytes` have, put one behind the other; the sizes of the segments beside them.
struct Received {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> segments;
  UdpSocket::In last;
};
Received receive_bytes(UdpSocket& socket, std::size_t bytes) {
  Received out;
  std::vector<std::byte> buffers(4 * 65536);
  UdpSocket::In in[4];
  while (out.bytes.size() < bytes && wait_ready(socket.fd(), false, soon_enough())) {
    const std::size_t count = socket.receive(in, buffers.data(), 65536).value();
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* const at = buffers.data() + i * 65536;
      out.bytes.insert(out.bytes.end(), at, at + in[i].bytes);
      for (std::size_t from = 0; from < in[i].bytes; from += in[i].segment_bytes) {
        out.segments.push_back(std::min(in[i].segment_bytes, in[i].bytes - from));
      }
      out.last = in[i];
    }
  }
  return out;
}

class UdpBothFamilies : public testing::TestWithParam<IpBytes> {};
INSTANTIATE_TEST_SUITE_P(Loopback, UdpBothFamilies, testing::Values(kLoopback, kLoopback6));

TEST_P(UdpBothFamilies, RunOfEqualDatagramsArrivesAsSuch) {
  UdpSettings settings;
  settings.address = GetParam();
  settings.traffic_class = 3;  // congestion experienced
  UdpSocket a = UdpSocket::open(settings).value();
  UdpSocket b = UdpSocket::open(settings).value();
  ASSERT_TRUE(a.can_segment());
  const auto bytes = pattern(10 * 1000 + 300);
  const UdpSocket::Out out{&settings.address, b.port(), bytes.data(), bytes.size(), 1000};
  ASSERT_EQ(a.send({&out, 1}).taken, 1U);
  const Received got = receive_bytes(b, bytes.size());
  EXPECT_EQ(got.bytes, bytes);
  EXPECT_EQ(got.segments.size(), 11U);
  EXPECT_EQ(got.segments.back(), 300U);
  EXPECT_TRUE(got.last.ecn_ce);
  EXPECT_EQ(got.last.from, settings.address);
  EXPECT_EQ(got.last.to, settings.address);
  EXPECT_EQ(got.last.from_port, a.port());
  EXPECT_GT(b.receive_buffer_bytes(), 0);
}

// Who sends the same again and again has it told to the socket. Whatever else follows is cut as it asks to be.
TEST_P(UdpBothFamilies, ManyRunsOfOneKindLeaveOthersAsTheyAre) {
  UdpSettings settings;
  settings.address = GetParam();
  UdpSocket a = UdpSocket::open(settings).value();
  UdpSocket b = UdpSocket::open(settings).value();
  const auto bytes = pattern(1000);
  const auto arrives = [&](std::size_t n, std::uint16_t segment, const std::vector<std::size_t>& segments) {
    const UdpSocket::Out out{&settings.address, b.port(), bytes.data(), n, segment};
    ASSERT_EQ(a.send({&out, 1}).taken, 1U);
    EXPECT_EQ(receive_bytes(b, n).segments, segments);
  };
  for (int i = 0; i < 40; ++i) arrives(60, 40, {40, 20});
  arrives(30, 0, {30});
  arrives(100, 0, {100});
  arrives(100, 60, {60, 40});
  const UdpSocket::Out both[2] = {{&settings.address, b.port(), bytes.data(), 90, 0},
                                  {&settings.address, b.port(), bytes.data(), 90, 50}};
  ASSERT_EQ(a.send(both).taken, 2U);
  EXPECT_EQ(receive_bytes(b, 180).segments, (std::vector<std::size_t>{90, 50, 40}));
  for (int i = 0; i < 40; ++i) arrives(300, 0, {300});
  arrives(60, 40, {40, 20});
}

TEST_P(UdpBothFamilies, BoundToAnyAddressItSaysWhichWasMeant) {
  UdpSettings settings;
  settings.address = GetParam();
  settings.any_destination = true;
  UdpSocket a = UdpSocket::open(settings).value();
  UdpSocket b = UdpSocket::open(settings).value();
  const auto bytes = pattern(100);
  const UdpSocket::Out out[2] = {{&settings.address, b.port(), bytes.data(), 40, 0},
                                 {&settings.address, b.port(), bytes.data() + 40, 60, 0}};
  ASSERT_EQ(a.send(out).taken, 2U);
  const Received got = receive_bytes(b, bytes.size());
  EXPECT_EQ(got.bytes, bytes);
  EXPECT_EQ(got.last.to, settings.address);
  EXPECT_EQ(got.last.from, settings.address);
  EXPECT_FALSE(got.last.ecn_ce);
}

TEST(Udp, SaysWhyItCannot) {
  UdpSettings settings;
  settings.address = kDocumentation;
  const auto foreign = UdpSocket::open(settings);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().sys_errno, EADDRNOTAVAIL);
  EXPECT_FALSE(foreign.error().remedy.empty());

  settings.address = kLoopback;
  const UdpSocket holder = UdpSocket::open(settings).value();
  settings.port = holder.port();
  const auto taken = UdpSocket::open(settings);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().sys_errno, EADDRINUSE);
  settings.interface = "no-such-if0";
  EXPECT_EQ(UdpSocket::open(settings).error().code, Code::invalid);
}

TEST(Udp, ReportsTheEntryThatWasRefused) {
  UdpSettings settings;
  settings.address = kLoopback;
  UdpSocket a = UdpSocket::open(settings).value();
  const auto bytes = pattern(70000);
  const UdpSocket::Out out[3] = {{&kLoopback, a.port(), bytes.data(), 10, 0},
                                 {&kLoopback, a.port(), bytes.data(), 70000, 0},
                                 {&kLoopback, a.port(), bytes.data(), 10, 0}};
  const UdpSocket::Sent sent = a.send(out);
  EXPECT_EQ(sent.taken, 1U);
  EXPECT_EQ(sent.error, EMSGSIZE);
  const UdpSocket::Out other{&kLoopback6, a.port(), bytes.data(), 10, 0};
  EXPECT_EQ(a.send({&other, 1}).error, EAFNOSUPPORT);
}

TEST(Udp, LeaksNothingWhenRefused) {
  const int before = count_open_fds();
  UdpSettings settings;
  settings.address = kDocumentation;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(UdpSocket::open(settings));
  Calls broken = real_calls();
  broken.socket = [](int, int, int) {
    errno = EMFILE;
    return -1;
  };
  EXPECT_EQ(UdpSocket::open(settings, broken).error().code, Code::limit);
  EXPECT_EQ(LocalDatagram::bind({"strait-never", true}, broken).error().code, Code::limit);
  EXPECT_EQ(count_open_fds(), before);
}

TEST(Interfaces, KnowTheHostsAddresses) {
  EXPECT_TRUE(is_own_address(kLoopback));
  IpBytes other_loopback = kLoopback;
  other_loopback[14] = 77;
  EXPECT_TRUE(is_own_address(other_loopback));
  EXPECT_TRUE(is_own_address(kLoopback6));
  EXPECT_FALSE(is_own_address(kDocumentation));
  EXPECT_GE(interface_of(other_loopback).value().mtu_bytes, 16384U);
  EXPECT_EQ(interface_of(kLoopback6).value().name, interface_of(kLoopback).value().name);
  EXPECT_EQ(interface_of(kDocumentation).error().code, Code::invalid);
}

std::string unique_name(const char* what) {
  return std::string("strait-") + what + "-" + std::to_string(::getpid());
}

TEST(LocalDatagrams, CarryBytesAndTheSendersUser) {
  const LocalName name{unique_name("local"), true};
  const LocalDatagram a = LocalDatagram::bind(name).value();
  const LocalDatagram b = LocalDatagram::bind({name.text + "-b", true}).value();
  const auto bytes = pattern(5000);
  ASSERT_EQ(b.send(name, std::span(bytes).first(10), std::span(bytes).subspan(10)), 0);
  std::vector<std::byte> into(6000);
  const auto got = a.receive(into).value();
  EXPECT_EQ(got.bytes, 5000U);
  EXPECT_EQ(got.sender, effective_user());
  EXPECT_FALSE(got.cut);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), into.begin()));
  EXPECT_EQ(a.receive(into).error().code, Code::again);
  ASSERT_EQ(b.send(name, bytes, {}), 0);
  EXPECT_TRUE(a.receive(std::span(into).first(100)).value().cut);
}

TEST(LocalDatagrams, NameIsFreeWhenItsHolderIsGone) {
  const LocalName name{unique_name("holder"), true};
  const LocalDatagram other = LocalDatagram::bind({name.text + "-x", true}).value();
  {
    const LocalDatagram a = LocalDatagram::bind(name).value();
    EXPECT_EQ(LocalDatagram::bind(name).error().code, Code::again);
  }
  EXPECT_EQ(other.send(name, {}, pattern(1)), ECONNREFUSED);
  EXPECT_TRUE(LocalDatagram::bind(name));
}

TEST(LocalDatagrams, PathOfADeadHolderIsTakenOver) {
  const LocalName name{testing::TempDir() + unique_name("path"), false};
  {
    // What a crash leaves: the file without the socket.
    LocalDatagram a = LocalDatagram::bind(name).value();
    ASSERT_EQ(::link(name.text.c_str(), (name.text + ".kept").c_str()), 0);
  }
  ASSERT_EQ(::rename((name.text + ".kept").c_str(), name.text.c_str()), 0);
  {
    const LocalDatagram b = LocalDatagram::bind(name).value();
    EXPECT_EQ(LocalDatagram::bind(name).error().code, Code::again);
  }
  struct stat info {};
  EXPECT_NE(::lstat(name.text.c_str(), &info), 0) << "the path is removed";
  std::ofstream(name.text) << "precious";
  EXPECT_FALSE(LocalDatagram::bind(name));
  EXPECT_EQ(::unlink(name.text.c_str()), 0) << "a file that is no socket is left alone";
  EXPECT_EQ(LocalDatagram::bind({std::string(200, 'x'), true}).error().code, Code::invalid);
  EXPECT_EQ(LocalDatagram::bind({"", true}).error().code, Code::invalid);
}

TEST(OutputFiles, HoldWhatWasAppended) {
  const std::string path = testing::TempDir() + unique_name("out");
  {
    OutputFile file = OutputFile::create(path).value();
    ASSERT_TRUE(file.append(pattern(1000)));
    ASSERT_TRUE(file.append(pattern(5)));
  }
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str().size(), 1005U);
  (void)::unlink(path.c_str());
  EXPECT_FALSE(OutputFile::create("/no/such/folder/file"));
  EXPECT_EQ(OutputFile::create("/dev/full").value().append(pattern(1)).error().sys_errno, ENOSPC);
}

}  // namespace
}  // namespace strait::sys
