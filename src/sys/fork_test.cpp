// SPDX-License-Identifier: Apache-2.0
// What a forked child keeps of its parent: no descriptor that belongs to one process, and the knowledge that it is one.
#include "sys/fork.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strait::sys {
namespace {

bool is_open_here(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

// Runs `check` in a child; true when it answered true there.
template <class Check>
bool in_child(Check check) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ProcessFd process_null() {
  return ProcessFd(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
}

TEST(ProcessFd, IsClosedInTheChildAndStaysOpenInTheParent) {
  const ProcessFd fd = process_null();
  const int number = fd.get();
  ASSERT_TRUE(is_open_here(number));
  EXPECT_TRUE(in_child([&] { return !is_open_here(number) && !fd.valid() && fd.get() == -1; }));
  EXPECT_TRUE(fd.valid());
  EXPECT_TRUE(is_open_here(number));
}

TEST(ProcessFd, ThatWasClosedBeforeDoesNotCloseItsSuccessorInTheChild) {
  ProcessFd fd = process_null();
  const int number = fd.get();
  fd.reset();
  const Fd successor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(successor.get(), number) << "the lowest free number is taken again";
  EXPECT_TRUE(in_child([&] { return is_open_here(number); }));
}

TEST(ProcessFd, OfTheParentClosesNothingInTheChild) {
  EXPECT_TRUE(in_child([] {
    ProcessFd inherited = process_null();
    const int number = inherited.get();
    return in_child([&] {
      const Fd mine(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // takes the number that the fork closed
      inherited.reset();
      return mine.get() == number && is_open_here(number);
    });
  }));
}

TEST(ProcessFd, MovesLikeAnOwner) {
  ProcessFd first = process_null();
  const int number = first.get();
  ProcessFd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT: moved-from on purpose
  EXPECT_EQ(second.get(), number);
  second = ProcessFd();
  EXPECT_FALSE(is_open_here(number));
  EXPECT_FALSE(ProcessFd(Fd()).valid());
}

TEST(ForkMark, TellsTheChild) {
  const ForkMark mark;
  EXPECT_FALSE(mark.in_child());
  EXPECT_TRUE(in_child([&] {
    const ForkMark own;
    return mark.in_child() && !own.in_child();
  }));
  EXPECT_FALSE(mark.in_child());
}

}  // namespace
}  // namespace strait::sys
