// SPDX-License-Identifier: Apache-2.0
#include "sys/captured.hpp"

#include <gtest/gtest.h>

#include "sys/usage.hpp"

namespace strait::sys {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Ran shell_captured(const std::string& script, std::int64_t deadline_ns = 60 * kSecond) {
  return run_captured({"sh", "-c", script}, Deadline::after_ns(deadline_ns));
}

TEST(Captured, ReadsBothStreamsAndTheStatus) {
  const Ran good = shell_captured("echo out; echo err >&2");
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(good.out, "out\n");
  EXPECT_EQ(good.problem, "err\n");
  const Ran bad = shell_captured("exit 3");
  EXPECT_FALSE(bad.ok);
  EXPECT_FALSE(bad.timeout);
  EXPECT_EQ(bad.problem, "it ended with status 3");
  EXPECT_EQ(shell_captured("kill -9 $$").problem, "it was ended by signal 9");
}

TEST(Captured, HasNothingToRead) {
  EXPECT_EQ(shell_captured("cat; echo end").out, "end\n");
}

TEST(Captured, ReadsMoreThanAPipeHolds) {
  EXPECT_EQ(shell_captured("i=0; while [ $i -lt 3000 ]; do printf '%0100d' 0; i=$((i + 1)); done").out.size(), 300000u);
}

TEST(Captured, ChangesTheEnvironment) {
  const Ran ran =
      run_captured({"sh", "-c", "echo $STRAIT_TEST_A"}, Deadline::after_ns(60 * kSecond), {{"STRAIT_TEST_A", "b"}});
  EXPECT_EQ(ran.out, "b\n");
}

TEST(Captured, EndsAtTheDeadlineWithWhateverItStarted) {
  // The second process holds the stream open: it must be ended too, or reading would go on.
  const Ran ran = shell_captured("sleep 1000 & echo $!; sleep 1000", kSecond / 2);
  EXPECT_FALSE(ran.ok);
  EXPECT_TRUE(ran.timeout);
  EXPECT_NE(ran.problem.find("did not end in time"), std::string::npos) << ran.problem;
}

TEST(Captured, ClosedStreamsAreNotItsEnd) {
  const Ran ran = shell_captured("exec 1>&- 2>&-; sleep 0.2; exit 4");
  EXPECT_FALSE(ran.ok);
  EXPECT_EQ(ran.problem, "it ended with status 4");
}

TEST(Captured, IsEndedWhenNobodyWantsItAnyMore) {
  auto started = Captured::start({"sleep", "100000"});
  ASSERT_TRUE(started);
  EXPECT_FALSE(started->ended());
  // Going out of scope waits for its end, which comes because it is killed.
}

TEST(Captured, AProgramThatIsNotThereIsNamed) {
  const Ran ran = run_captured({"strait-no-such-program"}, Deadline::after_ns(kSecond));
  EXPECT_FALSE(ran.ok);
  EXPECT_NE(ran.problem.find("strait-no-such-program"), std::string::npos) << ran.problem;
  EXPECT_FALSE(Captured::start({}));
}

TEST(Captured, WhatItUsedIsCounted) {
  const Usage before = usage_of_children();
  ASSERT_TRUE(shell_captured("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done").ok);
  EXPECT_GT(usage_of_children().cpu_s, before.cpu_s);
}

}  // namespace
}  // namespace strait::sys
