// SPDX-License-Identifier: Apache-2.0
#include "sys/poll_flag.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "sys/route.hpp"

namespace strait::sys {
namespace {

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(PollFlag, IsReadableWhileUp) {
  const PollFlag flag = PollFlag::make(false).value();
  const Fd program = flag.copy().value();
  EXPECT_FALSE(readable(program.get()));
  flag.clear();  // does not block
  flag.raise();
  flag.raise();
  EXPECT_TRUE(readable(program.get()));
  EXPECT_TRUE(flag.wait(-1));
  flag.clear();
  EXPECT_FALSE(readable(program.get()));
  EXPECT_FALSE(flag.wait(1'000'000));
}

TEST(PollFlag, SeesWhatTheProgramSets) {
  const PollFlag flag = PollFlag::make(false).value();
  const Fd program = flag.copy().value();
  EXPECT_FALSE(flag.nonblocking());
  ASSERT_EQ(::fcntl(program.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_TRUE(flag.nonblocking());
  EXPECT_TRUE(PollFlag::make(true).value().nonblocking());
}

TEST(Route, OwnAddressesAreReachedFromThemselves) {
  IpBytes loopback{};
  loopback[10] = loopback[11] = 0xff;
  loopback[12] = 127;
  loopback[15] = 1;
  EXPECT_EQ(source_towards(loopback).value(), loopback);
}

}  // namespace
}  // namespace strait::sys
