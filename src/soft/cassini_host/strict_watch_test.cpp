// SPDX-License-Identifier: Apache-2.0
// What strict finds reaches the process that made the mistake, from the server and from the cards of this process.
#include "soft/cassini_host/strict_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/server.hpp"
#include "sys/clock.hpp"
#include "sys/host.hpp"
#include "sys/scratch.hpp"

namespace strait::soft::cassini {
namespace {

class StrictWatchTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto folder = sys::Scratch::create(sys::temporary_folder(), "strait-strict-test");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    report_ = folder_->path() + "/report.json";
    if (local()) return;
    ServerSettings settings;
    settings.name = server_name(fmt::format("unit-strict-{}", sys::process_id()));
    settings.cards = 1;
    name_ = settings.name;
    auto made = Server::create(settings);
    ASSERT_TRUE(made) << made.error().explain();
    server_ = std::move(*made);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  static bool local() { return GetParam(); }
  Result<std::unique_ptr<OpenDevice>> open(const std::string& faults = "") {
    OpenSettings settings;
    settings.local = local();
    settings.server.name = name_;
    settings.trial.strict = true;
    settings.trial.faults = faults;
    settings.trial.report = report_;
    settings.trial.exit_code = 0;
    settings.trial.quiet = true;
    settings.told = [this](std::uint64_t findings) { told_.store(findings); };
    return OpenDevice::open(std::move(settings));
  }
  template <class Command, class Response>
  static Response call(OpenDevice& device, Command command) {
    Response made{};
    command.op = Command::kOp;
    command.resp = reinterpret_cast<std::uint64_t>(&made);
    EXPECT_EQ(device.write(&command, sizeof command), static_cast<long>(sizeof command));
    return made;
  }
  // A queue on a profile that is then freed: before the queue, or after it.
  static void free_profile(OpenDevice& device, bool queue_first) {
    wire::LniAllocCmd lni{};
    lni.svc_id = 1;
    const auto group = call<wire::LniAllocCmd, wire::LniAllocResp>(device, lni).lni;
    wire::CpAllocCmd profile{};
    profile.lni = group;
    profile.vni = 1;
    profile.tc = wire::TrafficClass::best_effort;
    const auto cp = call<wire::CpAllocCmd, wire::CpAllocResp>(device, profile);
    wire::CqAllocCmd queue{};
    queue.lni = group;
    queue.opts.count = 64;
    queue.opts.flags = wire::kCqIsTx;
    queue.opts.lcid = cp.lcid;
    const auto cq = call<wire::CqAllocCmd, wire::CqAllocResp>(device, queue);
    wire::CqFreeCmd free_cq{};
    free_cq.op = wire::CqFreeCmd::kOp;
    free_cq.cq = cq.cq;
    wire::CpFreeCmd free_cp{};
    free_cp.op = wire::CpFreeCmd::kOp;
    free_cp.cp_hndl = cp.cp_hndl;
    const auto free_queue = [&] { EXPECT_GT(device.write(&free_cq, sizeof free_cq), 0); };
    if (queue_first) free_queue();
    EXPECT_GT(device.write(&free_cp, sizeof free_cp), 0);
    if (!queue_first) free_queue();
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::ifstream file(report_);
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
  std::optional<sys::Scratch> folder_;
  std::string report_, name_;
  std::atomic<std::uint64_t> told_{0};
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_P(StrictWatchTest, AFindingIsToldWhileTheProgramWaits) {
  auto device = open();
  ASSERT_TRUE(device) << device.error().explain();
  free_profile(**device, false);
  const sys::Deadline deadline = sys::Deadline::after_ns(30'000'000'000);
  while (told_.load() == 0 && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(told_.load(), 1u);
  const auto told = lines();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find(fmt::format(R"("process":{},"nic":"cxi0","object":"profile","number":)", sys::process_id())),
            std::string::npos)
      << told[0];
  EXPECT_NE(told[0].find(R"("block":null,"rule":"profile-freed-in-use","text":"a communication profile was freed)"),
            std::string::npos)
      << told[0];
  EXPECT_NE(told[0].find("is the one of transmit queue"), std::string::npos) << told[0];
}

TEST_P(StrictWatchTest, ClosingTellsWhatIsLeft) {
  auto device = open();
  ASSERT_TRUE(device) << device.error().explain();
  free_profile(**device, false);
  device->reset();
  EXPECT_EQ(told_.load(), 1u);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_P(StrictWatchTest, ARightProgramHasNothingToTell) {
  auto device = open("drop=1%,seed=3");
  ASSERT_TRUE(device) << device.error().explain();
  free_profile(**device, true);
  device->reset();
  EXPECT_EQ(told_.load(), 0u);
  EXPECT_EQ(lines().size(), 0u);
}

TEST_P(StrictWatchTest, BadFaultsAndFilesAreSaidWhenItIsOpened) {
  for (const char* faults : {"dup=1%", "nonsense", "error=1%:1"}) EXPECT_FALSE(open(faults)) << faults;
  report_ = "/nowhere/at/all";
  EXPECT_FALSE(open());
}

INSTANTIATE_TEST_SUITE_P(Hosts, StrictWatchTest, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "local" : "server"; });

TEST(FindingsText, ComesBackAsItWas) {
  const std::vector<Finding> sent = {
      {.rule = Rule::queue_overrun, .thing = Thing::transmit_queue, .number = 3, .block = 17, .what = "a, b; c"},
      {.rule = Rule::memory_gone, .thing = Thing::profile, .number = 0, .block = {}, .what = ""}};
  const auto got = parse_findings(findings_text(sent));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].rule, Rule::queue_overrun);
  EXPECT_EQ(got[0].thing, Thing::transmit_queue);
  EXPECT_EQ(got[0].number, 3u);
  EXPECT_EQ(got[0].block, 17u);
  EXPECT_EQ(got[0].what, "a, b; c");
  EXPECT_EQ(got[1].rule, Rule::memory_gone);
  EXPECT_FALSE(got[1].block.has_value());
}

TEST(FindingsText, WhatIsNoneIsLeftOut) {
  EXPECT_TRUE(parse_findings("").empty());
  EXPECT_TRUE(parse_findings("\n\n\t\t").empty());
  EXPECT_TRUE(parse_findings("13\t0\t1\t-\tx\n0\t7\t1\t-\tx\n0\t0\t\t-\tx\n-1\t0\t1\t-\tx").empty());
  EXPECT_EQ(parse_findings("0\t0\t1").size(), 1u);
}

TEST(Trial, RulesHaveDistinctNames) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kRules; ++i) {
    const RuleText& rule = rule_text(static_cast<Rule>(i));
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_NE(std::string(rule.text), "");
    EXPECT_NE(std::string(rule.remedy), "");
  }
}

}  // namespace
}  // namespace strait::soft::cassini
