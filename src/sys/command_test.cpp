// SPDX-License-Identifier: Apache-2.0
#include "sys/command.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace strait::sys {
namespace {

Result<int> shell(const std::string& script, std::vector<std::pair<std::string, std::string>> environment = {}) {
  return run_command({"/bin/sh", {"sh", "-c", script}, std::move(environment), {}});
}

TEST(Command, PassesOnHowItEnded) {
  EXPECT_EQ(shell("exit 0").value(), 0);
  EXPECT_EQ(shell("exit 7").value(), 7);
  EXPECT_EQ(shell("kill -9 $$").value(), 128 + SIGKILL);
}

TEST(Command, ChangesTheEnvironment) {
  ::setenv("STRAIT_TEST_OLD", "old", 1);
  EXPECT_EQ(
      shell("test \"$STRAIT_TEST_OLD\" = old && test \"$STRAIT_TEST_NEW\" = new", {{"STRAIT_TEST_NEW", "new"}}).value(),
      0);
  EXPECT_EQ(shell("test \"$STRAIT_TEST_OLD\" = other", {{"STRAIT_TEST_OLD", "other"}}).value(), 0);
}

TEST(Command, SignalsArePassedOn) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t runner = ::fork();
  if (runner == 0) {
    ::dup2(ready[1], 1);
    const auto status = shell("trap 'exit 5' USR1; echo; while :; do sleep 0.02; done");
    ::_exit(status ? *status : 99);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(runner, SIGUSR1);
  int status = 0;
  ASSERT_EQ(::waitpid(runner, &status, 0), runner);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Command, IsHeardWhenItOpensFiles) {
  std::mutex lock;
  std::set<std::string> heard;
  std::set<pid_t> processes;
  Command command{"/bin/sh", {"sh", "-c", "cat /dev/zero-not-there 2>/dev/null; true </etc/passwd; exit 6"}, {}, {}};
  command.heard = [&](pid_t process, const std::string& path) {
    const std::scoped_lock hold(lock);
    heard.insert(path);
    processes.insert(process);
  };
  EXPECT_EQ(run_command(command).value(), 6);
  EXPECT_TRUE(heard.contains("/dev/zero-not-there"));
  EXPECT_TRUE(heard.contains("/etc/passwd"));
  EXPECT_GE(processes.size(), 2u) << "the shell, and cat";
  command.program = "/dev/null";
  EXPECT_EQ(run_command(command).error().sys_errno, EACCES);
}

TEST(Command, WhatCannotBeStartedIsAnError) {
  const auto status = run_command({"/dev/null", {"null"}, {}, {}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sys_errno, EACCES);
  EXPECT_NE(status.error().text.find("/dev/null"), std::string::npos);
}

TEST(Command, SignalsAreAsBeforeAfterwards) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  EXPECT_EQ(shell("exit 0").value(), 0);
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < 32; ++number)
    EXPECT_EQ(::sigismember(&before, number), ::sigismember(&after, number)) << number;
}

TEST(FindProgram, LooksWhereAShellLooks) {
  EXPECT_NE(find_program("sh").value().find("/sh"), std::string::npos);
  EXPECT_EQ(find_program("/bin/sh").value(), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program-here").error().code, Code::gone);
  EXPECT_EQ(find_program("/no/such/program").error().code, Code::gone);
  EXPECT_EQ(find_program("/etc/passwd").error().code, Code::denied);
  EXPECT_EQ(find_program("/tmp").error().code, Code::gone) << "a folder is no program";
}

}  // namespace
}  // namespace strait::sys
