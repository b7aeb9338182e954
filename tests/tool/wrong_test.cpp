// SPDX-License-Identifier: Apache-2.0
// examples/wrong: under the strict NIC each wrong program is caught, with process, queue pair, WQE and rule, as text,
// as JSON and as exit status; the right one beside it passes, and so do both without it.
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

struct Mistake {
  const char* name;  // of the program; with - for _ of the rule
  const char* side;  // the NIC that reports
  int wqe;           // -1: on the side of the owner a put has none, and the message is counted instead
  bool rings;        // on raw rings, which know one carrier
};

constexpr Mistake kMistakes[] = {
    {"source_changed", "strait0", 0, false},          {"target_read_early", "strait0", -1, false},
    {"last_byte_polled", "strait0", -1, false},       {"receive_too_late", "strait0", 0, false},
    {"send_queue_overrun", "writer", 0, true},        {"completion_queue_overrun", "writer", 4, true},
    {"used_after_deregistration", "writer", 0, true}, {"unflushed_read", "writer", 1, true},
    {"queue_cannot_drain", "writer", 7, true},
};

class Wrong : public ::testing::TestWithParam<std::tuple<Mistake, const char*>> {
 protected:
  static const Mistake& mistake() { return std::get<0>(GetParam()); }
  static std::string program(const char* kind) {
    return std::string(STRAIT_EXAMPLES_WRONG) + "/" + kind + "_" + mistake().name;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(bool strict) const {
    std::vector<std::pair<std::string, std::string>> all{{"STRAIT_CARRIER", std::get<1>(GetParam())}};
    if (strict)
      all.insert(all.end(), {{"STRAIT_STRICT", "1"}, {"STRAIT_STRICT_REPORT", report}, {"STRAIT_STRICT_SEED", "7"}});
    return all;
  }
  [[nodiscard]] std::vector<json> findings() const {
    std::vector<json> all;
    std::ifstream file(report);
    for (std::string line; std::getline(file, line);) all.push_back(json::parse(line, nullptr, false));
    return all;
  }
  void TearDown() override { std::filesystem::remove(report); }

  std::string report =
      std::filesystem::temp_directory_path() /
      ("strait-wrong-" + std::to_string(::getpid()) + "-" + std::get<0>(GetParam()).name + std::get<1>(GetParam()));
};

TEST_P(Wrong, IsCaught) {
  Program running({program("wrong")}, environment(true));
  const auto pid = running.pid();
  const Outcome outcome = running.finish();
  EXPECT_EQ(outcome.status, 66) << outcome.out << outcome.err;
  std::string rule = mistake().name;
  std::replace(rule.begin(), rule.end(), '_', '-');
  const auto all = findings();
  ASSERT_EQ(all.size(), 1u) << outcome.err;
  const json& found = all.front();
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found.at("rule"), rule);
  EXPECT_EQ(found.at("process"), pid);
  EXPECT_EQ(found.at("nic"), mistake().side);
  EXPECT_TRUE(found.at("queue_pair").is_number_unsigned());
  if (mistake().wqe < 0) {
    EXPECT_TRUE(found.at("wqe").is_null());
    EXPECT_TRUE(found.at("message").is_number_unsigned()) << found;
  } else if (mistake().rings) {
    EXPECT_EQ(found.at("wqe"), mistake().wqe);
  } else {
    EXPECT_TRUE(found.at("wqe").is_number_unsigned()) << found;
  }
  EXPECT_FALSE(found.at("what").get<std::string>().empty());
  EXPECT_FALSE(found.at("remedy").get<std::string>().empty());
  // The same as text.
  const std::string place = "strict: process " + std::to_string(pid) + ", " + mistake().side + ", queue pair 0x";
  EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(found.at("wqe").is_null() ? ", message " : ", WQE " + found.at("wqe").dump() + ":"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("rule " + rule + "; remedy: "), std::string::npos) << outcome.err;
  // What it takes to see it again.
  EXPECT_EQ(found.at("seed"), 7);
  EXPECT_NE(outcome.err.find("  seed 7 (option strict_seed)\n"), std::string::npos) << outcome.err;
}

// Who asks for map grants besides gets none: the NIC sees every operation.
TEST(WrongWithGrants, IsCaughtToo) {
  const Outcome outcome = run({std::string(STRAIT_EXAMPLES_WRONG) + "/wrong_source_changed"}, 60,
                              {{"STRAIT_STRICT", "1"}, {"STRAIT_GRANT", "map"}});
  EXPECT_EQ(outcome.status, 66) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("rule source-changed"), std::string::npos) << outcome.err;
}

TEST_P(Wrong, PutRightItPasses) {
  const Outcome outcome = run({program("fixed")}, 60, environment(true));
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(findings().empty());
}

TEST_P(Wrong, NobodyNoticesOtherwise) {
  for (const char* kind : {"wrong", "fixed"}) {
    const Outcome outcome = run({program(kind)}, 60, environment(false));
    EXPECT_EQ(outcome.status, 0) << kind << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Api, Wrong, ::testing::Combine(::testing::ValuesIn(kMistakes, kMistakes + 4), ::testing::Values("grant", "roce")),
    [](const auto& each) { return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param); });
INSTANTIATE_TEST_SUITE_P(Rings, Wrong,
                         ::testing::Combine(::testing::ValuesIn(kMistakes + 4, std::end(kMistakes)),
                                            ::testing::Values("grant")),
                         [](const auto& each) { return std::string(std::get<0>(each.param).name); });

}  // namespace
}  // namespace strait::testing
