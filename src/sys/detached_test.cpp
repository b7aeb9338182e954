// SPDX-License-Identifier: Apache-2.0
#include "sys/detached.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "sys/clock.hpp"
#include "sys/scratch.hpp"

namespace strait::sys {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Detached, GoesOnByItself) {
  auto scratch = Scratch::create(temporary_folder(), "strait-detached");
  ASSERT_TRUE(scratch);
  const std::string out = scratch->path() + "/out";
  const std::string script =
      "{ cut -d' ' -f4 /proc/$$/stat; ls /proc/$$/fd; readlink /proc/$$/fd/0; pwd; echo \"$ADDED\"; echo "
      "\"${GONE-none}\"; }"
      " > " +
      out + ".new; mv " + out + ".new " + out;
  ::setenv("GONE", "here", 1);
  const Status started = start_detached("/bin/sh", {"-c", script}, {{"ADDED", "yes"}, {"GONE", ""}});
  ASSERT_TRUE(started) << started.error().explain();
  const Deadline deadline = Deadline::after_ns(10'000'000'000);
  while (!std::filesystem::exists(out) && !deadline.passed()) ::usleep(1000);
  const std::string said = text_of(out);
  EXPECT_NE(said.find("/dev/null\n/\nyes\nnone\n"), std::string::npos) << said;
  EXPECT_NE(said.substr(0, said.find('\n')), std::to_string(::getpid())) << "it is not our child";
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "nobody is left to be waited for";
}

TEST(Detached, SaysWhyNot) {
  const Status started = start_detached("/nowhere/at/all", {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().sys_errno, ENOENT);
}

}  // namespace
}  // namespace strait::sys
