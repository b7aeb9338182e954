// SPDX-License-Identifier: Apache-2.0
// TCP: connections that work, and every way in which they do not, each within its deadline and without leaking.
#include "sys/socket.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace strait::sys {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
Deadline soon() {
  return Deadline::after_ns(50'000'000);
}
Deadline in_time() {
  return Deadline::after_ns(20 * kSecond);
}
const Endpoint kAnyPort{"127.0.0.1", 0};

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 + 7);
  return bytes;
}

struct Pair {
  Fd near;
  Fd far;
};

Pair connected() {
  Endpoint bound;
  const Fd listener = tcp_listen(kAnyPort, &bound).value();
  Pair pair;
  pair.near = tcp_connect(bound, in_time()).value();
  EXPECT_TRUE(wait_ready(listener.get(), false, in_time()));
  pair.far = accept_one(listener.get()).value();
  return pair;
}

// Runs `wait`, which must end by the 50 ms deadline of soon(); generous because the machine may be busy.
template <class Wait>
void expect_ends_in_time(Wait wait) {
  const std::int64_t start = now_ns();
  wait();
  const std::int64_t took = now_ns() - start;
  EXPECT_GE(took, 50'000'000) << "gave up early";
  EXPECT_LT(took, 10 * kSecond) << "the deadline did not hold";
}

TEST(Tcp, MovesBytesBothWays) {
  const Pair pair = connected();
  const auto message = some_bytes(1000);
  std::vector<std::byte> got(message.size());
  ASSERT_TRUE(send_all(pair.near.get(), message, in_time()));
  ASSERT_TRUE(receive_all(pair.far.get(), got, in_time()));
  EXPECT_EQ(got, message);
  ASSERT_TRUE(send_all(pair.far.get(), message, in_time()));
  ASSERT_TRUE(receive_all(pair.near.get(), got, in_time()));
}

TEST(Tcp, PortZeroPicksOneAndSaysWhich) {
  Endpoint bound;
  const Fd listener = tcp_listen(kAnyPort, &bound).value();
  EXPECT_EQ(bound.host, "127.0.0.1");
  EXPECT_NE(bound.port, 0);
}

TEST(Tcp, APortInUseIsNamedWithARemedy) {
  Endpoint bound;
  const Fd listener = tcp_listen(kAnyPort, &bound).value();
  const int before = count_open_fds();
  const Result<Fd> second = tcp_listen(bound, nullptr);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().sys_errno, EADDRINUSE);
  EXPECT_NE(second.error().text.find(bound.text()), std::string::npos);
  EXPECT_NE(second.error().remedy.find("port"), std::string::npos);
  EXPECT_EQ(count_open_fds(), before);
}

TEST(Tcp, AnAddressOfAnotherMachineCannotBeListenedOn) {
  const Result<Fd> listener = tcp_listen({"192.0.2.1", 0}, nullptr);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().sys_errno, EADDRNOTAVAIL);
  EXPECT_NE(listener.error().remedy.find("not an address of this machine"), std::string::npos);
}

TEST(Tcp, NobodyListening) {
  Endpoint bound;
  { const Fd listener = tcp_listen(kAnyPort, &bound).value(); }
  const int before = count_open_fds();
  const Result<Fd> fd = tcp_connect(bound, in_time());
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().sys_errno, ECONNREFUSED);
  EXPECT_NE(fd.error().remedy.find("Nobody listens there"), std::string::npos);
  EXPECT_EQ(count_open_fds(), before);
}

TEST(Tcp, ANameThatDoesNotResolve) {
  const Result<Fd> fd = tcp_connect({"256.256.256.256", 1}, in_time());
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::invalid);
  EXPECT_NE(fd.error().text.find("256.256.256.256"), std::string::npos);
}

TEST(Tcp, AListenerThatNeverAnswersHoldsTheDeadline) {
  // A full backlog: the kernel drops further connection requests, as a peer that is stuck would.
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), length), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  const Endpoint to{"127.0.0.1", ntohs(at.sin_port)};
  std::vector<Fd> waiting;
  Result<Fd> fd = tcp_connect(to, soon());
  for (int i = 0; fd && i < 8; ++i) {
    waiting.push_back(std::move(*fd));
    const std::int64_t start = now_ns();
    fd = tcp_connect(to, soon());
    EXPECT_LT(now_ns() - start, 10 * kSecond);
  }
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::timeout);
  EXPECT_NE(fd.error().text.find(to.text()), std::string::npos);
}

TEST(Tcp, APeerThatSaysNothingHoldsTheDeadline) {
  const Pair pair = connected();
  std::byte byte{};
  expect_ends_in_time([&] { EXPECT_EQ(receive_all(pair.near.get(), {&byte, 1}, soon()).error().code, Code::timeout); });
}

TEST(Tcp, APeerThatReadsNothingHoldsTheDeadline) {
  const Pair pair = connected();
  const std::vector<std::byte> flood(64 << 20);
  expect_ends_in_time([&] { EXPECT_EQ(send_all(pair.near.get(), flood, soon()).error().code, Code::timeout); });
}

TEST(Tcp, APeerThatClosedIsGone) {
  Pair pair = connected();
  ASSERT_TRUE(send_all(pair.far.get(), some_bytes(3), in_time()));
  pair.far.reset();
  std::byte four[4] = {};
  const Status got = receive_all(pair.near.get(), four, in_time());
  ASSERT_FALSE(got) << "three bytes are not four";
  EXPECT_EQ(got.error().code, Code::gone);
  // The first sends may still be buffered; the kernel learns of the reset soon.
  Status sent;
  const Deadline limit = in_time();
  while (sent && !limit.passed()) sent = send_all(pair.near.get(), some_bytes(4096), in_time());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::gone);
}

TEST(Tcp, WithoutSockets) {
  Calls calls = real_calls();
  calls.socket = [](int, int, int) { return errno = EMFILE, -1; };
  EXPECT_EQ(tcp_listen(kAnyPort, nullptr, calls).error().code, Code::limit);
  EXPECT_EQ(tcp_connect({"127.0.0.1", 1}, in_time(), calls).error().code, Code::limit);
  EXPECT_EQ(unix_listen("strait-test", calls).error().code, Code::limit);
  EXPECT_EQ(unix_connect("strait-test", in_time(), calls).error().code, Code::limit);
}

TEST(Tcp, WithoutIpv6TheOtherAddressesOfANameAreTried) {
  Calls calls = real_calls();
  calls.socket = [](int domain, int type, int protocol) {
    if (domain == AF_INET6) return errno = EAFNOSUPPORT, -1;
    return real_calls().socket(domain, type, protocol);
  };
  Endpoint bound;
  const Result<Fd> listener = tcp_listen({"localhost", 0}, &bound, calls);
  ASSERT_TRUE(listener) << listener.error().text;
  EXPECT_EQ(bound.host, "127.0.0.1");
  EXPECT_TRUE(tcp_connect({"localhost", bound.port}, in_time(), calls));
  const Result<Fd> only_v6 = tcp_connect({"::1", bound.port}, in_time(), calls);
  ASSERT_FALSE(only_v6);
  EXPECT_EQ(only_v6.error().sys_errno, EAFNOSUPPORT);
}

TEST(Tcp, NobodyWaitingToBeAcceptedIsNotAnError) {
  const Fd listener = tcp_listen(kAnyPort, nullptr).value();
  EXPECT_EQ(accept_one(listener.get()).error().code, Code::again);
  EXPECT_EQ(accept_one(-1).error().sys_errno, EBADF);
}

}  // namespace
}  // namespace strait::sys
