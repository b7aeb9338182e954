// SPDX-License-Identifier: Apache-2.0
// Fd: one owner, closes once, and says so when there are no descriptors left.
#include "sys/fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace strait::sys {
namespace {

Fd open_null() {
  return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Fd, ClosesWhenItGoesOutOfScope) {
  const int before = count_open_fds();
  int number = -1;
  {
    const Fd fd = open_null();
    ASSERT_TRUE(fd.valid());
    number = fd.get();
    EXPECT_EQ(count_open_fds(), before + 1);
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_EQ(count_open_fds(), before);
}

TEST(Fd, MovingLeavesOneOwner) {
  Fd first = open_null();
  const int number = first.get();
  Fd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT: moved-from on purpose
  EXPECT_EQ(second.get(), number);
  Fd third = open_null();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(is_open(replaced)) << "what an assignment replaces is closed";
  EXPECT_TRUE(is_open(number));
  Fd& alias = third;
  third = std::move(alias);
  EXPECT_TRUE(is_open(number)) << "moving to itself changes nothing";
}

TEST(Fd, ReleaseHandsTheDescriptorOver) {
  Fd fd = open_null();
  const int number = fd.release();
  EXPECT_FALSE(fd.valid());
  fd.reset();
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Fd, DuplicatesAreCloseOnExec) {
  const Fd fd = open_null();
  const Fd copy = fd.duplicate().value();
  EXPECT_NE(copy.get(), fd.get());
  EXPECT_EQ(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Fd, DuplicatingNothingIsAnError) {
  const Result<Fd> copy = Fd().duplicate();
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().sys_errno, EBADF);
}

TEST(Fd, TheLimitOfDescriptorsIsNamedWithARemedy) {
  Fd fd = open_null();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit tight = limit;
  {
    const Fd next = open_null();
    tight.rlim_cur = static_cast<rlim_t>(next.get());  // the lowest free number is now out of bounds
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const Result<Fd> copy = fd.duplicate();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, Code::limit);
  EXPECT_NE(copy.error().remedy.find("ulimit -n"), std::string::npos);
}

TEST(Fd, AnyDescriptorCanBeKeptFromOtherPrograms) {
  const Fd fd(::memfd_create("inherited", 0));
  ASSERT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  close_on_exec(fd.get());
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  close_on_exec(-1);  // nothing to do, and nothing happens
}

}  // namespace
}  // namespace strait::sys
