// SPDX-License-Identifier: Apache-2.0
// strait demo, from outside: every step verified, nothing left behind, and what a person sees.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

TEST(Demo, JsonHasEveryStepVerified) {
  const Outcome outcome = strait({"demo", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("ok"), true);
  std::set<std::string> names;
  for (const json& step : report.at("steps")) {
    names.insert(step.at("name"));
    EXPECT_EQ(step.at("verified"), true) << step.dump();
  }
  const std::set<std::string> expected{"put",  "get",    "put host", "fetch-add", "compare-swap",
                                       "send", "signal", "bounds",   "revoke"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(report.at("steps").at(0).at("bytes"), 16 << 20);
  for (const json& row : report.at("speed")) {
    EXPECT_GT(row.at("host").get<double>(), 0) << row.dump();
    EXPECT_GT(row.at("accelerator").get<double>(), 0) << row.dump();
  }
  for (const json& nic : report.at("nics")) EXPECT_EQ(nic.at("software"), true);
}

TEST(Demo, TellsItsStoryIn80PlainColumns) {
  const Outcome outcome = strait({"demo"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos) << "colour without a terminal";
  EXPECT_EQ(outcome.err, "");
  for (const char* words : {"found", "(software)", "share", "recognised by", "rkey 0x", "path", "not used", "verified",
                            "software devices on this machine", "memcpy", "checks passed in"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  EXPECT_LT(outcome.seconds, 20.0);
}

TEST(Demo, OtherSizesWork) {
  const Outcome outcome = strait({"demo", "--json", "--size", "64K"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("steps").at(0).at("bytes"), 64 << 10);
}

TEST(Demo, AnUnknownDeviceIsAnErrorWithASentence) {
  const Outcome outcome = strait({"demo", "--device", "soft:99"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("soft:99"), std::string::npos) << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
}

TEST(Demo, AKilledSecondProcessIsSaidAndNothingHangs) {
  Program program(strait_command({"demo", "--size", "256M", "--set", "accelerator_memory=1G"}));
  pid_t child = -1;
  for (int i = 0; i < 2000 && child < 0; ++i) {
    if (const auto children = children_of(program.pid()); !children.empty()) child = children.front();
    ::usleep(1000);
  }
  ASSERT_GT(child, 0);
  // Once the checks have begun: a line with "put" in it.
  while (true) {
    const std::string line = program.read_line();
    ASSERT_FALSE(line.empty() && !runs(program.pid())) << "it ended by itself";
    if (line.find("path") != std::string::npos) break;
  }
  ::kill(child, SIGKILL);
  const Outcome outcome = program.finish(40);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_NE(unwrapped(outcome.err).find("killed by signal 9"), std::string::npos) << outcome.err;
  EXPECT_NE(unwrapped(outcome.err).find("second process"), std::string::npos) << outcome.err;
  EXPECT_FALSE(runs(child));
}

TEST(Demo, TheSecondProcessDiesWithTheFirst) {
  pid_t child = -1;
  {
    Program program(strait_command({"demo", "--size", "64M"}));
    for (int i = 0; i < 2000 && child < 0; ++i) {
      if (const auto children = children_of(program.pid()); !children.empty()) child = children.front();
      ::usleep(1000);
    }
    ASSERT_GT(child, 0);
    program.signal(SIGKILL);
    (void)program.finish(5);
  }
  for (int i = 0; i < 2000 && runs(child); ++i) ::usleep(1000);
  EXPECT_FALSE(runs(child));
}

}  // namespace
}  // namespace strait::testing
