// SPDX-License-Identifier: Apache-2.0
// Event: raising wakes, clearing stops it, and running out of descriptors is a limit.
#include "sys/event.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "sys/socket.hpp"

namespace strait::sys {
namespace {

bool is_raised(const Event& event) {
  return wait_ready(event.fd(), false, Deadline::after_ns(0));
}

TEST(Event, StaysRaisedUntilItIsCleared) {
  const Event event = Event::make().value();
  EXPECT_FALSE(is_raised(event));
  event.raise();
  event.raise();
  EXPECT_TRUE(is_raised(event));
  EXPECT_TRUE(is_raised(event));
  event.clear();
  EXPECT_FALSE(is_raised(event)) << "one clear takes all raises";
  event.clear();  // nothing to clear: must not block
}

TEST(Event, RaisingNeverBlocksEvenWhenTheCounterIsFull) {
  const Event event = Event::make().value();
  const std::uint64_t almost_full = UINT64_MAX - 1;
  ASSERT_EQ(::write(event.fd(), &almost_full, sizeof almost_full), static_cast<ssize_t>(sizeof almost_full));
  event.raise();
  EXPECT_TRUE(is_raised(event));
}

TEST(Event, WakesASleeper) {
  const Event event = Event::make().value();
  std::thread waker([&event] { event.raise(); });
  EXPECT_TRUE(wait_ready(event.fd(), false, Deadline::after_ns(10'000'000'000)));
  waker.join();
}

TEST(Event, RunningOutOfDescriptorsIsALimit) {
  Calls calls = real_calls();
  calls.eventfd = [](unsigned, int) { return errno = EMFILE, -1; };
  const Result<Event> event = Event::make(calls);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Code::limit);
  EXPECT_NE(event.error().text.find("eventfd"), std::string::npos);
}

TEST(Event, AnEmptyOneIsHarmless) {
  const Event event;
  EXPECT_FALSE(event.valid());
  event.raise();
  event.clear();
}

TEST(Event, TakesOverNothingThatCouldBlock) {
  EXPECT_TRUE(Event::take_over(Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))));
  EXPECT_FALSE(Event::take_over(Fd(::eventfd(0, EFD_CLOEXEC)))) << "it blocks when its counter is full";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  EXPECT_FALSE(Event::take_over(Fd(ends[1]))) << "a pipe";
  EXPECT_FALSE(Event::take_over(Fd()));
}

}  // namespace
}  // namespace strait::sys
