// SPDX-License-Identifier: Apache-2.0
// Sleeping on several things at once: sets of descriptors, timers, pieces of streams, threads without signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "sys/event.hpp"
#include "sys/event_set.hpp"
#include "sys/host.hpp"
#include "sys/quiet_thread.hpp"
#include "sys/stream.hpp"
#include "sys/timer.hpp"

namespace strait::sys {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kLong = 20'000 * kMillisecond;

TEST(EventSet, IsReadableWhileOneMemberIs) {
  const Event first = Event::make().value();
  const Event second = Event::make().value();
  EventSet inner = EventSet::make().value();
  EventSet outer = EventSet::make().value();
  ASSERT_TRUE(inner.add(first.fd()));
  ASSERT_TRUE(inner.add(second.fd()));
  ASSERT_TRUE(outer.add(inner.fd())) << "sets can be members of sets";
  EXPECT_FALSE(outer.wait_ns(0));
  EXPECT_FALSE(outer.ready());
  second.raise();
  EXPECT_TRUE(outer.wait_ns(kLong));
  EXPECT_TRUE(outer.ready());
  second.clear();
  EXPECT_FALSE(outer.wait_ns(0));
  EXPECT_FALSE(outer.ready());
}

TEST(EventSet, RefusesWhatItCannotWatch) {
  EventSet set = EventSet::make().value();
  const Event event = Event::make().value();
  ASSERT_TRUE(set.add(event.fd()));
  EXPECT_EQ(set.add(event.fd()).error().sys_errno, EEXIST);
  EXPECT_EQ(set.add(-1).error().sys_errno, EBADF);
}

TEST(EventSet, SleepsForTheTimeItWasGiven) {
  const EventSet set = EventSet::make().value();
  const std::int64_t start = now_ns();
  EXPECT_FALSE(set.wait_ns(2 * kMillisecond));
  EXPECT_GE(now_ns() - start, 2 * kMillisecond);
}

TEST(Timer, FiresOnceAndCanBeStopped) {
  const Timer timer = Timer::make().value();
  EXPECT_FALSE(nap_on(timer.fd(), 0));
  timer.fire_after_ns(kMillisecond);
  EXPECT_TRUE(nap_on(timer.fd(), kLong));
  timer.stop();
  EXPECT_FALSE(nap_on(timer.fd(), 0)) << "a firing that nobody noticed is taken back";
  timer.fire_after_ns(-5);
  EXPECT_TRUE(nap_on(timer.fd(), kLong)) << "the past is now";
}

class Stream : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_ = Fd(ends[0]);
    far_ = Fd(ends[1]);
  }
  Fd near_;
  Fd far_;
  std::array<std::byte, 8> bytes_{std::byte{1}};
};

TEST_F(Stream, MovesWhatItCan) {
  EXPECT_EQ(receive_some(near_.get(), bytes_).error().code, Code::again);
  EXPECT_EQ(send_some(far_.get(), std::span(bytes_).first(3)).value(), 3U);
  EXPECT_FALSE(at_end(near_.get()));
  EXPECT_EQ(receive_some(near_.get(), bytes_).value(), 3U);
}

TEST_F(Stream, AFullOneIsAnAnswer) {
  const std::vector<std::byte> block(65536);
  Result<std::size_t> sent = std::size_t{0};
  for (int i = 0; sent && i < 10'000; ++i) sent = send_some(near_.get(), block);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::again);
}

TEST_F(Stream, EndsAreTold) {
  finish_sending(far_.get());
  EXPECT_TRUE(at_end(near_.get()));
  EXPECT_EQ(receive_some(near_.get(), bytes_).error().code, Code::gone);
  EXPECT_EQ(send_some(near_.get(), bytes_).value(), bytes_.size()) << "the other direction still works";
  far_.reset();
  EXPECT_EQ(send_some(near_.get(), bytes_).error().code, Code::gone);
  EXPECT_EQ(send_some(-1, bytes_).error().sys_errno, EBADF);
}

TEST_F(Stream, PollsOverMany) {
  pollfd entries[] = {{near_.get(), POLLIN, 0}, {far_.get(), POLLIN, 0}};
  ASSERT_TRUE(send_some(far_.get(), bytes_));
  wait_any(entries, 20'000);
  EXPECT_EQ(entries[0].revents & POLLIN, POLLIN);
  EXPECT_EQ(entries[1].revents, 0);
}

TEST(QuietThread, TakesNoSignals) {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  sigset_t inside;
  ::sigemptyset(&inside);
  std::thread thread = start_quiet_thread([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &inside); }).value();
  thread.join();
  for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM}) EXPECT_EQ(::sigismember(&inside, number), 1);
  for (const int number : {SIGSEGV, SIGBUS}) EXPECT_EQ(::sigismember(&inside, number), 0) << "its own faults";
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(::sigismember(&after, SIGINT), ::sigismember(&before, SIGINT)) << "the maker's own mask is as it was";
}

TEST(Host, ThreadsAndHostsHaveIdentities) {
  EXPECT_EQ(host_id(), host_id());
  const void* other = nullptr;
  std::thread thread([&other] {
    const void* first = thread_mark();
    other = first == thread_mark() ? first : nullptr;
    EXPECT_NE(first, nullptr);
  });
  const void* mine = thread_mark();
  thread.join();
  EXPECT_NE(mine, nullptr);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(host_id("/no/such/root"), (std::array<std::byte, 16>{})) << "zeros when the kernel does not tell";
  EXPECT_NE(network_namespace(), 0u);
  EXPECT_EQ(network_namespace(), network_namespace());
  EXPECT_EQ(network_namespace("/no/such/root"), 0u);
}

}  // namespace
}  // namespace strait::sys
