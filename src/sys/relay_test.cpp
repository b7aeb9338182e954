// SPDX-License-Identifier: Apache-2.0
// A body goes on while a call of it waits in the kernel for ever; what is not left behind costs it nothing.
#include "sys/relay.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "sys/clock.hpp"

namespace strait::sys {
namespace {

long thread_number() {
  return ::syscall(SYS_gettid);
}

// A pipe in which nothing is until the test says so.
struct EmptyPipe {
  int ends[2] = {-1, -1};
  EmptyPipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~EmptyPipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void fill() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
};

// Who is asked for, in order.
class Asked {
 public:
  bool note(std::uint64_t owner, std::size_t enough) {
    const std::lock_guard lock(mutex_);
    owners_.push_back(owner);
    return owners_.size() >= enough;
  }
  std::vector<std::uint64_t> owners() {
    const std::lock_guard lock(mutex_);
    return owners_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> owners_;
};

TEST(Relay, CallsAnswerOnOneThread) {
  Relay relay([](std::uint64_t) { return true; });
  int yes = 0, no = 0;
  bool one_thread = true;
  ASSERT_TRUE(relay.run([&] {
    const long here = thread_number();
    for (int i = 0; i < 100'000; ++i) {
      const auto end = relay.call(1, [i] { return i % 3 == 0; });
      yes += end == Relay::End::yes ? 1 : 0;
      no += end == Relay::End::no ? 1 : 0;
    }
    one_thread = here == thread_number();
  }));
  EXPECT_EQ(yes, 33'334);
  EXPECT_EQ(no, 66'666);
  EXPECT_TRUE(one_thread);
  EXPECT_EQ(relay.left_behind(), 0u);
}

// Again and again: everything of the body is where it was, and the late bytes are where the call put them.
TEST(Relay, WhatNeverComesBackIsLeftBehind) {
  constexpr std::size_t kTimes = 8;
  static char late[kTimes];
  static std::atomic<std::size_t> came{0};
  EmptyPipe pipe;
  Asked asked;
  Relay relay([&](std::uint64_t owner) { return asked.note(owner, 0); });
  std::vector<long> threads;
  std::size_t left = 0, after = 0;
  ASSERT_TRUE(relay.run([&] {
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < kTimes; ++i) {
      mine.push_back(i);
      threads.push_back(thread_number());
      struct Read {
        int from;
        char* to;
        bool operator()() const {
          const bool read = ::read(from, to, 1) == 1;
          came.fetch_add(1);
          return read;
        }
      };
      left += relay.call(7, Read{pipe.ends[0], late + i}) == Relay::End::left_behind ? 1u : 0u;
      after += relay.call(8, [] { return true; }) == Relay::End::yes ? 1u : 0u;
    }
    for (std::size_t i = 0; i < kTimes; ++i) EXPECT_EQ(mine[i], i);
  }));
  EXPECT_EQ(left, kTimes);
  EXPECT_EQ(after, kTimes);
  EXPECT_EQ(relay.left_behind(), kTimes);
  std::sort(threads.begin(), threads.end());
  EXPECT_EQ(std::unique(threads.begin(), threads.end()), threads.end()) << "a thread that was left came back";
  for (const std::uint64_t owner : asked.owners()) EXPECT_EQ(owner, 7u);
  EXPECT_EQ(came.load(), 0u);
  for (std::size_t i = 0; i < kTimes; ++i) pipe.fill();
  for (const auto deadline = Deadline::after_ns(30'000'000'000); came.load() != kTimes && !deadline.passed();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(std::string(late, kTimes), std::string(kTimes, 'x'));
}

TEST(Relay, WhatComesBackInTimeIsNotLeft) {
  EmptyPipe pipe;
  Asked asked;
  Relay relay([&](std::uint64_t owner) {
    if (asked.note(owner, 3)) pipe.fill();
    return false;
  });
  Relay::End end = Relay::End::no;
  ASSERT_TRUE(relay.run([&] {
    end = relay.call(5, [from = pipe.ends[0]] {
      char byte = 0;
      return ::read(from, &byte, 1) == 1 && byte == 'x';
    });
  }));
  EXPECT_EQ(end, Relay::End::yes);
  EXPECT_GE(asked.owners().size(), 3u);
  EXPECT_EQ(relay.left_behind(), 0u);
}

// A loaded machine is nobody's fault.
TEST(Relay, WaitingForACpuIsNotWaiting) {
  Asked asked;
  Relay relay([&](std::uint64_t owner) { return asked.note(owner, 0); });
  Relay::End end = Relay::End::no;
  ASSERT_TRUE(relay.run([&] {
    end = relay.call(5, [] {
      volatile std::uint64_t turns = 0;
      for (const std::int64_t start = now_ns(); now_ns() - start < 20 * Relay::kTickNs;) turns = turns + 1;
      return true;
    });
  }));
  EXPECT_EQ(end, Relay::End::yes);
  EXPECT_TRUE(asked.owners().empty());
}

}  // namespace
}  // namespace strait::sys
