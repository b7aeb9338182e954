// SPDX-License-Identifier: Apache-2.0
// A second process: lines go both ways, its end is told, and it never outlives its owner.
#include "sys/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "sys/fd.hpp"

namespace strait::sys {
namespace {

Deadline soon() {
  return Deadline::after_ns(5'000'000'000);
}

// This program, started again with one of these words, plays the child before GoogleTest looks at anything.
struct PlayTheChild {
  PlayTheChild() {
    const char* role = ::getenv("STRAIT_CHILD_TEST_ROLE");
    if (role == nullptr) return;
    Lines lines(STDIN_FILENO, STDOUT_FILENO);
    if (std::strcmp(role, "echo") == 0) {
      while (auto line = lines.read(soon())) (void)lines.write("echo " + *line);
      ::_exit(7);
    }
    if (std::strcmp(role, "hang") == 0) {
      (void)lines.write("up");
      for (;;) ::pause();
    }
    if (std::strcmp(role, "die") == 0) ::raise(SIGKILL);
    ::_exit(99);
  }
} play_the_child;

Result<Child> start(const char* role) {
  ::setenv("STRAIT_CHILD_TEST_ROLE", role, 1);
  auto child = Child::start_self({});
  ::unsetenv("STRAIT_CHILD_TEST_ROLE");
  return child;
}

TEST(Child, LinesGoBothWaysAndTheExitStatusComesBack) {
  auto child = start("echo");
  ASSERT_TRUE(child) << child.error().explain();
  ASSERT_TRUE(child->write("one"));
  ASSERT_TRUE(child->write("two words"));
  EXPECT_EQ(child->read(soon()).value(), "echo one");
  EXPECT_EQ(child->read(soon()).value(), "echo two words");
  EXPECT_EQ(child->finish(soon()).value(), 7);
}

TEST(Child, SaysWhichSignalEndedIt) {
  auto child = start("die");
  ASSERT_TRUE(child) << child.error().explain();
  const auto line = child->read(soon());
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, Code::gone);
  EXPECT_NE(line.error().text.find("was killed by signal 9"), std::string::npos) << line.error().text;
  const auto written = child->write("anybody there?");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::gone);
}

TEST(Child, SilenceEndsAtTheDeadline) {
  auto child = start("hang");
  ASSERT_TRUE(child) << child.error().explain();
  EXPECT_EQ(child->read(soon()).value(), "up");
  const auto line = child->read(Deadline::after_ns(20'000'000));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, Code::timeout);
  const auto status = child->finish(Deadline::after_ns(20'000'000));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::timeout);
}

TEST(Child, IsKilledAndReapedWithItsOwner) {
  const int fds_before = count_open_fds();
  pid_t pid = -1;
  {
    auto child = start("hang");
    ASSERT_TRUE(child) << child.error().explain();
    ASSERT_TRUE(child->read(soon()));
    pid = child->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "it still runs, or was left as a zombie";
  EXPECT_EQ(count_open_fds(), fds_before);
}

}  // namespace
}  // namespace strait::sys
