// SPDX-License-Identifier: Apache-2.0
// EventThread: called for what is readable and in time, ended before its owner, and not there in a child.
#include "sys/event_thread.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "sys/socket.hpp"

namespace strait::sys {
namespace {

bool comes(const Event& event) {
  return wait_ready(event.fd(), false, Deadline::after_ns(10'000'000'000));
}

TEST(EventThread, IsCalledForWhatIsReadable) {
  const Event asked = Event::make().value();
  const Event answered = Event::make().value();
  EventThread thread;
  ASSERT_TRUE(thread.start([&] {
    asked.clear();
    answered.raise();
    return std::int64_t{-1};
  }));
  ASSERT_TRUE(thread.add(asked.fd()));
  for (int i = 0; i < 10; ++i) {
    asked.raise();
    ASSERT_TRUE(comes(answered));
    answered.clear();
  }
}

TEST(EventThread, ComesAgainWhenItWantedTo) {
  const Event first = Event::make().value();
  const Event third = Event::make().value();
  int calls = 0;
  EventThread thread;
  ASSERT_TRUE(thread.start([&] {
    first.clear();
    if (++calls == 3) third.raise();
    return calls < 3 ? std::int64_t{1'000'000} : std::int64_t{-1};
  }));
  ASSERT_TRUE(thread.add(first.fd()));
  first.raise();
  EXPECT_TRUE(comes(third));
}

TEST(EventThread, BeginsByItselfIfItShould) {
  const Event began = Event::make().value();
  EventThread thread;
  ASSERT_TRUE(thread.start(
      [&] {
        began.raise();
        return std::int64_t{-1};
      },
      0));
  EXPECT_TRUE(comes(began));
}

TEST(EventThread, IsDeafToWhatWasRemoved) {
  const Event loud = Event::make().value();
  const Event answered = Event::make().value();
  EventThread thread;
  ASSERT_TRUE(thread.start([&] {
    thread.remove(loud.fd());  // it stays raised
    answered.raise();
    return std::int64_t{-1};
  }));
  ASSERT_TRUE(thread.add(loud.fd()));
  loud.raise();
  ASSERT_TRUE(comes(answered));
  answered.clear();
  EXPECT_FALSE(wait_ready(answered.fd(), false, Deadline::after_ns(20'000'000)));
}

TEST(EventThread, AChildWaitsForNothing) {
  auto thread = std::make_unique<EventThread>();
  ASSERT_TRUE(thread->start([] { return std::int64_t{-1}; }));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    thread.reset();  // the thread is the parent's
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(EventThread, ThatNeverStartedEndsToo) {
  const EventThread thread;
}

}  // namespace
}  // namespace strait::sys
