// SPDX-License-Identifier: Apache-2.0
// strait faults, from outside: the plan in words, its decisions, and wrong plans.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fault_plan.hpp"
#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

json decided(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "faults");
  arguments.emplace_back("--json");
  const Outcome outcome = strait(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(Faults, TheSamePlanDecidesTheSame) {
  const json once = decided({"drop=2%,dup=1%,seed=7", "--packets", "5000"});
  const json again = decided({"drop=2%,dup=1%,seed=7", "--packets", "5000"});
  EXPECT_EQ(once, again);
  EXPECT_EQ(once.at("plan"), "drop=2%,dup=1%,seed=7");
  EXPECT_EQ(once.at("seed"), 7);
  // Near the rates: five standard deviations of a fair coin of that kind.
  EXPECT_NEAR(once.at("counts").at("drop").get<double>(), 100, 50);
  EXPECT_NEAR(once.at("counts").at("dup").get<double>(), 50, 35);
  EXPECT_EQ(once.at("counts").at("corrupt"), 0);
  std::uint64_t last = 0;
  for (const json& decision : once.at("decisions")) {
    EXPECT_TRUE(decision.at("fault") == "drop" || decision.at("fault") == "dup") << decision;
    EXPECT_LT(decision.at("packet"), 5000);
    EXPECT_GE(decision.at("packet").get<std::uint64_t>(), last);
    last = decision.at("packet");
  }
}

TEST(Faults, SeedAndFlowDecideOtherPackets) {
  const json plain = decided({"drop=2%,seed=7"});
  EXPECT_NE(plain.at("decisions"), decided({"drop=2%,seed=8"}).at("decisions"));
  const json other = decided({"drop=2%,seed=7", "--flow", "0x101:2"});
  EXPECT_NE(plain.at("decisions"), other.at("decisions"));
  EXPECT_EQ(other.at("flow"), (json{0x101, 2}));
  // The other direction is another flow.
  EXPECT_NE(other.at("decisions"), decided({"drop=2%,seed=7", "--flow", "2:0x101"}).at("decisions"));
  // More packets only add to what was decided.
  const json more = decided({"drop=2%,seed=7", "--packets", "2000"});
  for (std::size_t i = 0; i < plain.at("decisions").size(); ++i)
    EXPECT_EQ(plain.at("decisions").at(i), more.at("decisions").at(i));
}

TEST(Faults, TellsInWordsWhatAPlanDoes) {
  const Outcome outcome =
      strait({"faults",
              "drop=2%,dup=1%,reorder=1%,delay=1%:2ms,corrupt=0.1%,rnr=5%,error=1%:0x13,down=1s..2s,"
              "stall=3s..4s,overrun=1000,gone=50,seed=7"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  const std::string text = unwrapped(outcome.out);
  for (const char* words :
       {"2 % of packets", "leave twice", "held back", "2.0 ms late", "0.1 % leave with one bit flipped",
        "receiver not ready", "syndrome 0x13", "from 1.0 s to 2.0 s", "from 3.0 s to 4.0 s", "completion 1000 finds",
        "before it begins work request 50", "seed 7", "the first 1000 packets from queue pair 0x1 to 0x1"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  EXPECT_NE(strait({"faults", "seed=3"}).out.find("no part says what to do wrong"), std::string::npos);
}

TEST(Faults, AWrongPlanIsExitStatus2WithCauseAndRemedy) {
  for (const char* spec :
       {"drop=200%", "drop", "dorp=1%", "drop=x", "delay=1%:5", "down=2s..1s", "error=1%:0x100", "drop=60%,dup=60%"}) {
    const Outcome outcome = strait({"faults", spec});
    EXPECT_EQ(outcome.status, 2) << spec;
    EXPECT_EQ(outcome.out, "") << spec;
    EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
    EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
    EXPECT_GT(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << "no remedy: " << outcome.err;
  }
}

// What the command says is what the NIC does: both ask the plan, by the same name of the connection. That the NIC does
// is in src/soft/nic/fault_decisions_test.cpp.
TEST(Faults, ItsDecisionsAreThePlans) {
  const char* const spec = "drop=30%,dup=5%,corrupt=5%,rnr=10%,error=2%,seed=7";
  const json said = decided({spec, "--flow", "0x10203:0x42", "--packets", "500"});
  const FaultPlan plan = FaultPlan::parse(spec).value();
  const std::uint64_t flow = 0x0203'0042;  // 16 bits of each queue pair
  json packets = json::array(), receives = json::array(), work = json::array();
  for (std::uint64_t n = 0; n < 500; ++n) {
    if (const Fault fault = plan.on_message(flow, n); fault != Fault::none)
      packets.push_back({{"packet", n}, {"fault", fault_name(fault)}});
    if (plan.on_receive(flow, n)) receives.push_back(n);
    if (plan.on_work(flow, n)) work.push_back(n);
  }
  EXPECT_GT(packets.size(), 100u);
  EXPECT_EQ(said.at("decisions"), packets);
  EXPECT_EQ(said.at("receives"), receives);
  EXPECT_EQ(said.at("work"), work);
}

// A plan that drops everything from the first packet on leaves nothing to chance, and neither does one that drops
// nothing.
TEST(Faults, ExtremesAreExact) {
  EXPECT_EQ(decided({"drop=100%", "--packets", "64"}).at("counts").at("drop"), 64);
  EXPECT_TRUE(decided({"drop=0%", "--packets", "64"}).at("decisions").empty());
}

}  // namespace
}  // namespace strait::testing
