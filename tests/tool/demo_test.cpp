// SPDX-License-Identifier: Apache-2.0
// strait demo, from outside: every step verified, nothing left behind, and what a person sees.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
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
  std::set<std::string> over_packets;
  for (const json& step : report.at("steps")) {
    const bool packets = step.at("carrier") == "roce";
    EXPECT_TRUE(packets || step.at("carrier") == "grant") << step.dump();
    (packets ? over_packets : names).insert(step.at("name"));
    EXPECT_EQ(step.at("verified"), true) << step.dump();
    EXPECT_NE(step.at("path").get<std::string>().find(packets ? "RoCEv2" : "ring grant"), std::string::npos) << step;
    EXPECT_EQ(step.at("faults").get<std::string>().find("drop=") != std::string::npos, packets) << step.dump();
  }
  const std::set<std::string> expected{"put",  "get",    "put host", "fetch-add", "compare-swap",
                                       "send", "signal", "bounds",   "revoke"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(over_packets, expected);
  const json& packets = report.at("packets");
  EXPECT_NE(packets.at("faults").get<std::string>().find("seed="), std::string::npos) << packets;
  EXPECT_GT(packets.at("sent"), 1000) << packets;
  EXPECT_GT(packets.at("lost"), 0) << packets;
  EXPECT_GE(packets.at("faults_injected"), packets.at("lost")) << packets;
  EXPECT_GT(packets.at("resent"), 0) << packets;
  EXPECT_LT(packets.at("lost"), packets.at("sent")) << packets;
  EXPECT_EQ(report.at("steps").at(0).at("bytes"), 16 << 20);
  for (const json& row : report.at("speed")) {
    EXPECT_GT(row.at("host").get<double>(), 0) << row.dump();
    EXPECT_GT(row.at("accelerator").get<double>(), 0) << row.dump();
  }
  for (const json& nic : report.at("nics")) EXPECT_EQ(nic.at("software"), true);
  // What it says it took is no less than its parts, and no more than a clock outside of it says.
  double parts = 0;
  for (const json& step : report.at("steps")) parts += step.at("seconds").get<double>();
  EXPECT_GT(parts, 0);
  EXPECT_GE(report.at("seconds").get<double>(), parts);
  EXPECT_LE(report.at("seconds").get<double>(), outcome.seconds);
}

TEST(Demo, TellsItsStoryIn80PlainColumns) {
  const Outcome outcome = strait({"demo"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos) << "colour without a terminal";
  EXPECT_EQ(outcome.err, "");
  for (const char* words : {"found", "(software)", "share", "recognised by", "rkey 0x", "path", "not used", "verified",
                            "software devices on this machine", "memcpy", "over packets", "seed=7", "lost on purpose",
                            "resent", "all 18 checks passed in"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
}

// The only proof that a demo checks anything: one bit of one byte, in the memory of the other process, after the data
// arrived there (get: before it is fetched). Both carriers, every step that compares memory.
class OneWrongByte : public ::testing::TestWithParam<const char*> {};

TEST_P(OneWrongByte, IsFoundNamedAndExitStatus1) {
  const std::string damage = GetParam();
  const Outcome outcome = strait({"demo", "--json", "--size", "1M", "--damage", damage});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("ok"), false);
  std::size_t wrong = 0;
  for (const json& step : report.at("steps")) {
    const std::string name = step.at("carrier").get<std::string>() + " " + step.at("name").get<std::string>();
    EXPECT_EQ(step.at("verified"), name != damage) << step.dump();
    if (step.at("verified")) continue;
    ++wrong;
    EXPECT_EQ(step.at("note").get<std::string>().rfind("byte 349525 is 0x", 0), 0u) << step.dump();
  }
  EXPECT_EQ(wrong, 1u) << damage;
}

INSTANTIATE_TEST_SUITE_P(Demo, OneWrongByte,
                         ::testing::Values("grant put", "grant get", "grant put host", "grant revoke", "roce put",
                                           "roce get", "roce put host", "roce revoke"),
                         [](const auto& row) {
                           std::string name = row.param;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

TEST(Demo, AWrongByteIsSaidInWordsToo) {
  const Outcome outcome = strait({"demo", "--no-packets", "--size", "64K", "--damage", "put"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(unwrapped(outcome.out).find("WRONG byte 21845 is 0x"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 of 9 checks FAILED"), std::string::npos) << outcome.out;
}

TEST(Demo, WithoutPacketsTheSummarySaysSo) {
  const Outcome outcome = strait({"demo", "--no-packets", "--size", "64K"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("all 9 checks passed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("without packets: left out as --no-packets asks"), std::string::npos) << outcome.out;
  const json report = json::parse(strait({"demo", "--no-packets", "--size", "64K", "--json"}).out);
  EXPECT_TRUE(report.at("packets").contains("left_out")) << report.at("packets");
  EXPECT_EQ(report.at("steps").size(), 9u);
}

TEST(Demo, WherePacketsCannotBeUsedItSaysWhy) {
  // No host has this address (RFC 5737): as much a refusal by the system as a port that somebody else owns.
  const std::vector<std::string> command{"demo", "--size", "64K", "--packets-from", "192.0.2.1"};
  const Outcome goes_on = strait(command);
  EXPECT_EQ(goes_on.status, 0) << goes_on.err;
  EXPECT_NE(goes_on.out.find("all 9 checks passed"), std::string::npos) << goes_on.out;
  const std::string text = unwrapped(goes_on.out);
  EXPECT_NE(text.find("without packets: not possible here"), std::string::npos) << text;
  EXPECT_NE(text.find("192.0.2.1 is not an address of this host"), std::string::npos) << text;
  EXPECT_LE(widest(goes_on.out), 80u) << goes_on.out;

  std::vector<std::string> strict = command;
  strict.emplace_back("--require-packets");
  const Outcome stops = strait(strict);
  EXPECT_EQ(stops.status, 3) << stops.err;
  EXPECT_NE(unwrapped(stops.err).find("strait: packets cannot be used here: "), std::string::npos) << stops.err;
}

TEST(Demo, ACarrierThatWasAskedForIsTheOnlyOne) {
  const Outcome outcome = strait({"demo", "--json", "--size", "64K"}, 170,
                                 {{"STRAIT_CARRIER", "roce"}, {"STRAIT_FAULTS", "drop=2%,seed=7"}});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("steps").size(), 9u);
  for (const json& step : report.at("steps")) {
    EXPECT_EQ(step.at("carrier"), "roce") << step;
    EXPECT_EQ(step.at("faults"), "drop=2%,seed=7") << step;
  }
  EXPECT_NE(report.at("packets").at("left_out").get<std::string>().find("carrier=roce"), std::string::npos);
}

TEST(Demo, FaultsOfOnesOwnACaptureAndCounters) {
  const std::string file = ::testing::TempDir() + "demo_" + std::to_string(::getpid()) + ".pcapng";
  const Outcome outcome = strait(
      {"demo", "--json", "--size", "64K", "--faults", "drop=5%,corrupt=1%,seed=11", "--capture", file, "--counters"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("packets").at("faults"), "drop=5%,corrupt=1%,seed=11");
  EXPECT_GT(report.at("packets").at("faults_injected"), report.at("packets").at("lost"));
  EXPECT_EQ(report.at("packets").at("capture"), file);
  ASSERT_EQ(report.at("counters").size(), 2u);
  EXPECT_FALSE(report.at("counters").at(0).at("nics").at(0).at("counters").contains("packets_sent"));
  EXPECT_GT(report.at("counters").at(1).at("nics").at(0).at("counters").at("packets_sent"), 0);

  std::ifstream capture(file, std::ios::binary);
  unsigned char magic[4] = {};
  capture.read(reinterpret_cast<char*>(magic), sizeof magic);
  EXPECT_TRUE(magic[0] == 0x0a && magic[1] == 0x0d && magic[2] == 0x0d && magic[3] == 0x0a) << "not pcapng";
  capture.seekg(0, std::ios::end);
  EXPECT_GT(capture.tellg(), 100'000);
  std::remove(file.c_str());
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
