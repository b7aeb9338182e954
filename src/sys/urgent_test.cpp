// SPDX-License-Identifier: Apache-2.0
#include "sys/urgent.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace strait::sys {
namespace {

bool is_urgent(int fd, int timeout_ms = 0) {
  pollfd entry{fd, POLLPRI, 0};
  return ::poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLPRI) != 0;
}

TEST(Urgent, IsUpFromRaiseUntilAByteIsRead) {
  auto flag = Urgent::make();
  ASSERT_TRUE(flag) << flag.error().explain();
  auto watch = flag->copy();
  ASSERT_TRUE(watch);
  EXPECT_FALSE(is_urgent(watch->get()));
  for (int round = 0; round < 100; ++round) {
    for (int again = 0; again <= round % 4; ++again) flag->raise();
    ASSERT_TRUE(is_urgent(watch->get(), 1000)) << round;
    char byte = 0;
    if (round % 2 == 0) {
      Urgent::clear(watch->get());
    } else {
      ASSERT_EQ(::read(watch->get(), &byte, 1), 1) << round;
      EXPECT_EQ(::read(watch->get(), &byte, 1), -1) << "never blocks";
    }
    ASSERT_FALSE(is_urgent(watch->get())) << round;
  }
}

TEST(Urgent, NobodyHasToReadIt) {
  auto flag = Urgent::make();
  ASSERT_TRUE(flag);
  auto watch = flag->copy();
  ASSERT_TRUE(watch);
  for (int i = 0; i < 100'000; ++i) flag->raise();
  EXPECT_TRUE(is_urgent(watch->get(), 1000));
  Urgent::clear(watch->get());
  EXPECT_FALSE(is_urgent(watch->get()));
  flag->raise();
  EXPECT_TRUE(is_urgent(watch->get(), 1000));
}

}  // namespace
}  // namespace strait::sys
