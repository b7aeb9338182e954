// SPDX-License-Identifier: Apache-2.0
// examples/wrong on the software Cassini: with strict each wrong program is caught, with process, object and rule; the
// right one beside it passes, and so do both without it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

struct CxiMistake {
  const char* name;  // of the program; with - for _ of the rule
  const char* object;
};

constexpr CxiMistake kCxiMistakes[] = {
    {"profile_freed_in_use", "profile"},
    {"counter_freed_in_use", "counter"},
    {"entry_beyond_memory", "portal"},
};

class WrongOnCassini : public ::testing::TestWithParam<CxiMistake> {
 protected:
  static std::string program(const char* kind) {
    return std::string(STRAIT_EXAMPLES_WRONG) + "/" + kind + "_" + GetParam().name;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> strictly() const {
    return {{"STRAIT_STRICT", "1"}, {"STRAIT_STRICT_REPORT", report}, {"STRAIT_STRICT_SEED", "7"}};
  }
  [[nodiscard]] std::vector<json> findings() const {
    std::vector<json> all;
    std::ifstream file(report);
    for (std::string line; std::getline(file, line);) all.push_back(json::parse(line, nullptr, false));
    return all;
  }
  void TearDown() override { std::filesystem::remove(report); }

  std::string report = std::filesystem::temp_directory_path() /
                       ("strait-wrong-cxi-" + std::to_string(::getpid()) + "-" + GetParam().name);
};

TEST_P(WrongOnCassini, IsCaught) {
  Program running({program("wrong")}, strictly());
  const auto pid = running.pid();
  const Outcome outcome = running.finish();
  EXPECT_EQ(outcome.status, 66) << outcome.out << outcome.err;
  std::string rule = GetParam().name;
  std::replace(rule.begin(), rule.end(), '_', '-');
  const auto all = findings();
  ASSERT_EQ(all.size(), 1u) << outcome.err;
  const json& found = all.front();
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found.at("rule"), rule);
  EXPECT_EQ(found.at("process"), pid);
  EXPECT_EQ(found.at("nic"), "cxi0");
  EXPECT_EQ(found.at("object"), GetParam().object);
  EXPECT_FALSE(found.at("what").get<std::string>().empty());
  EXPECT_NE(outcome.err.find("strict: process " + std::to_string(pid) + ", cxi0, " + GetParam().object),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("rule " + rule + "; remedy: "), std::string::npos) << outcome.err;
  EXPECT_EQ(found.at("seed"), 7);
}

TEST_P(WrongOnCassini, PutRightItPasses) {
  const Outcome outcome = run({program("fixed")}, 60, strictly());
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(findings().empty());
}

TEST_P(WrongOnCassini, NobodyNoticesOtherwise) {
  for (const char* kind : {"wrong", "fixed"}) {
    const Outcome outcome = run({program(kind)}, 60, {});
    EXPECT_EQ(outcome.status, 0) << kind << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, WrongOnCassini, ::testing::ValuesIn(kCxiMistakes),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace strait::testing
