// SPDX-License-Identifier: Apache-2.0
// The tool's commands where the NIC is a software Cassini: nics=cxi:soft.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

json on_cassini(std::vector<std::string> command) {
  command.insert(command.end(), {"--json", "--set", "nics=cxi:soft"});
  const Outcome outcome = strait(command);
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(OnCassini, Info) {
  const json info = on_cassini({"info"});
  ASSERT_EQ(info.at("nics").size(), 1u) << info.at("nics");
  const json& nic = info.at("nics").at(0);
  EXPECT_EQ(nic.at("name"), "cxi0");
  EXPECT_EQ(nic.at("software"), true);
  EXPECT_NE(nic.at("address").get<std::string>().find("nid "), std::string::npos) << nic;
  ASSERT_EQ(info.at("reach").size(), 2u);
  for (const json& row : info.at("reach")) {
    EXPECT_EQ(row.at("nic"), "cxi0");
    const json& ways = row.at("ways");
    EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), [](const json& way) { return way.at("state") == "proved"; }))
        << row;
  }
}

TEST(OnCassini, Perf) {
  for (const char* const test : {"put_lat", "get_bw", "fetch_add_lat"}) {
    const json report = on_cassini({"perf", "--spawn", "--test", test, "--memory", "soft:0", "--sizes", "8,64K",
                                    "--iterations", "20", "--warmup", "2"});
    EXPECT_EQ(report.value("ok", false), true) << test;
    const json& ran = report.at("tests").at(0);
    EXPECT_EQ(ran.at("carrier"), "cxi") << test;
    for (const json& line : ran.at("results")) EXPECT_EQ(line.at("verified"), true) << test << line;
  }
}

TEST(OnCassini, Demo) {
  const json report = on_cassini({"demo", "--no-packets", "--size", "64K"});
  EXPECT_EQ(report.at("ok"), true);
  EXPECT_EQ(report.at("steps").size(), 9u);
  for (const json& step : report.at("steps")) {
    EXPECT_EQ(step.at("carrier"), "cxi") << step;
    EXPECT_EQ(step.at("verified"), true) << step;
  }
}

TEST(OnCassini, Explain) {
  const json plan = on_cassini({"explain", "--from", "host", "--to", "soft:0@peer"});
  const json& chosen = plan.at("ways").at(plan.at("chosen").get<std::size_t>());
  EXPECT_EQ(chosen.at("nic"), "cxi0") << plan;
  EXPECT_NE(chosen.at("name").get<std::string>().find("Slingshot packets"), std::string::npos) << chosen;
}

#ifdef STRAIT_CXI_UNDER_RUN
// The first node under /dev is found and opened, as on hardware: there is no library with software devices to go to.
TEST(OnCassini, TheFirstNodeThereIs) {
  std::vector<std::string> command{"run", "--quiet", "--cassini",         "2", "--nics",
                                   "0",   "--set",   "cassini=test-tool", "--"};
  for (const std::string& word : strait_command(
           {"info", "--json", "--set", "nics=cxi", "--set", "accelerators=none", "--set", "soft_library=/nonexistent"}))
    command.push_back(word);
  const Outcome outcome = strait(command);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json nics = json::parse(outcome.out).at("nics");
  ASSERT_EQ(nics.size(), 1u) << nics;
  EXPECT_EQ(nics.at(0).at("name"), "cxi0");
  // Without `strait run` there is no node, and nothing to go to.
  EXPECT_NE(strait({"info", "--json", "--set", "nics=cxi", "--set", "accelerators=none", "--set",
                    "soft_library=/nonexistent"})
                .status,
            0);
}
#endif

}  // namespace
}  // namespace strait::testing
