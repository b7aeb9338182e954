// SPDX-License-Identifier: Apache-2.0
// Event: raising wakes, clearing stops it, and running out of descriptors is a limit.
#include "sys/event.hpp"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace strait::sys
