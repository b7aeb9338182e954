// SPDX-License-Identifier: Apache-2.0
// strait explain: about this process, about a running Node, about another host.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

json plan_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"explain", "--json"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Outcome outcome = strait(command);
  EXPECT_EQ(outcome.err, "");
  return json::parse(outcome.out, nullptr, false);
}

json chosen(const json& plan) {
  return plan.at("ways").at(plan.at("chosen").get<std::size_t>());
}

TEST(Explain, WithinAProcess) {
  EXPECT_EQ(chosen(plan_of({"--from", "host", "--to", "soft:0"})).at("name"), "copy engine of soft:0");
  const json across = plan_of({"--from", "soft:0", "--to", "soft:1", "--set", "accelerators=soft:2"});
  EXPECT_EQ(chosen(across).at("name"), "soft:0 -> soft:1 over PCIe");
  for (const json& way : across.at("ways")) EXPECT_FALSE(way.at("reason").get<std::string>().empty()) << way;
}

void expect_cost(const json& way, const char* origin) {
  const json& cost = way.at("cost");
  ASSERT_TRUE(cost.is_object()) << way;
  EXPECT_EQ(cost.at("origin"), origin) << way;
  EXPECT_GT(cost.at("latency_us"), 0) << way;
  EXPECT_GT(cost.at("gb_per_s"), 0) << way;
  EXPECT_FALSE(cost.at("basis").get<std::string>().empty()) << way;
}
json way_by(const json& plan, const std::string& kind) {
  for (const json& way : plan.at("ways")) {
    if (way.at("kind") == kind) return way;
  }
  ADD_FAILURE() << kind << " is not in " << plan;
  return {};
}

// What this process can time is timed, and everything else says that it is an estimate.
TEST(Explain, EveryWayThatCanBeTakenHasACost) {
  const json inside = plan_of({"--from", "soft:0", "--to", "host"});
  expect_cost(way_by(inside, "engine"), "measured");
  expect_cost(way_by(inside, "copy"), "measured");
  expect_cost(way_by(inside, "ring"), "estimated");
  expect_cost(way_by(inside, "staged"), "estimated");
  expect_cost(way_by(plan_of({"--from", "soft:0", "--to", "soft:1", "--set", "accelerators=soft:2"}), "link"),
              "measured");
  expect_cost(way_by(plan_of({"--from", "host", "--to", "host@peer"}), "roce"), "estimated");
  Program server(strait_command({"perf", "--json"}));
  const std::string address = json::parse(server.read_line()).at("address");
  const json beside = plan_of({"--from", "host", "--to", "host@" + address});
  expect_cost(way_by(beside, "map"), "measured");
  expect_cost(way_by(beside, "call"), "measured");
  expect_cost(way_by(beside, "copy"), "estimated");
  const json packets = plan_of({"--from", "host", "--to", "host", "--set", "carrier=roce"});
  expect_cost(way_by(packets, "roce"), "measured");
  EXPECT_GT(way_by(packets, "roce").at("cost").at("latency_us"), way_by(inside, "engine").at("cost").at("latency_us"));
  const Outcome page = strait({"explain", "--from", "soft:0", "--to", "host"});
  EXPECT_LE(widest(page.out), 80u) << page.out;
  const std::size_t figures = page.out.find(" GB/s\n");
  ASSERT_NE(figures, std::string::npos) << page.out;
  EXPECT_NE(page.out.find(" us + "), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("estimated "), std::string::npos) << page.out;
}

TEST(Explain, AsksARunningNode) {
  Program server(strait_command({"perf", "--json", "--set", "accelerators=soft:3"}));
  const std::string address = json::parse(server.read_line()).at("address");
  const json plan = plan_of({"--from", "host", "--to", "soft:2@" + address});
  EXPECT_EQ(plan.at("to"), "soft:2@" + address);
  EXPECT_EQ(chosen(plan).at("kind"), "map");
  // This side has one; the running one is asked, and has three.
  const Outcome missing = strait({"explain", "--from", "host", "--to", "soft:3@" + address});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(unwrapped(missing.err),
            "strait: " + address + " has no memory called \"soft:3\": it has host, soft:0, soft:1, soft:2 ");
}

TEST(Explain, AnotherHostLikeThisOne) {
  const json plan = plan_of({"--from", "soft:0", "--to", "host@peer"});
  EXPECT_EQ(chosen(plan).at("kind"), "roce");
  const Outcome page = strait({"explain", "--from", "soft:0", "--to", "host@peer"});
  EXPECT_EQ(page.status, 0);
  EXPECT_LE(widest(page.out), 80u) << page.out;
}

TEST(Explain, NoWayIsAnAnswerOfItsOwn) {
  const std::vector<std::string> closed{
      "explain", "--from", "soft:0", "--to", "host@peer", "--set", "accelerator_export=0"};
  const Outcome none = strait(closed);
  EXPECT_EQ(none.status, 3) << none.out;
  EXPECT_NE(unwrapped(none.out).find("soft:0 cannot export its memory"), std::string::npos) << none.out;
  EXPECT_NE(none.out.find("held"), std::string::npos) << "staging would do, if it were allowed";
  std::vector<std::string> allowed = closed;
  allowed.insert(allowed.end(), {"--set", "allow_staging=1"});
  EXPECT_EQ(strait(allowed).status, 0);
  allowed.insert(allowed.end(), {"--require", "zero_copy"});
  EXPECT_EQ(strait(allowed).status, 3);
}

TEST(Explain, EveryPair) {
  const json rows = json::parse(strait({"explain", "--table", "--json"}).out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1], json({{"from", "host"}, {"to", "soft:0"}, {"kind", "engine"}, {"way", "copy engine of soft:0"}}));
  const Outcome far = strait({"explain", "--table", "--to", "@peer"});
  EXPECT_EQ(far.status, 0);
  EXPECT_LE(widest(far.out), 80u) << far.out;
}

TEST(Explain, WrongUse) {
  EXPECT_EQ(strait({"explain"}).status, 2);
  EXPECT_NE(unwrapped(strait({"explain", "--from", "host"}).err).find("explain needs both ends: --from and --to"),
            std::string::npos);
  EXPECT_EQ(strait({"explain", "--from", "cuda:7", "--to", "host"}).status, 2);
  EXPECT_NE(unwrapped(strait({"explain", "--from", "host@peer", "--to", "host"}).err).find("explained where it starts"),
            std::string::npos);
  EXPECT_EQ(strait({"explain", "--from", "host", "--to", "host@nowhere"}).status, 2);
  EXPECT_EQ(strait({"explain", "--table", "--to", "host"}).status, 2);
}

}  // namespace
}  // namespace strait::testing
