// SPDX-License-Identifier: Apache-2.0
// The command line: help, wrong use, version, info.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

TEST(Help, ReadsLikeAManualPage) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"--help"},
                                                  {"demo", "--help"},
                                                  {"info", "--help"},
                                                  {"perf", "--help"},
                                                  {"explain", "--help"},
                                                  {"faults", "--help"},
                                                  {"run", "--help"},
                                                  {"perf", "-h"}}) {
    const Outcome outcome = strait(command);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
    EXPECT_EQ(outcome.out.find(" \n"), std::string::npos) << "blanks at the end of a line\n" << outcome.out;
    for (const char* section :
         {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"}) {
      EXPECT_NE(("\n" + outcome.out).find(std::string("\n") + section + "\n"), std::string::npos)
          << section << " in " << command[0];
    }
  }
}

TEST(Help, MentionsEveryOption) {
  const auto mentions = [](const std::string& command, const std::vector<const char*>& options) {
    const std::string text = strait({command, "--help"}).out;
    for (const char* option : options)
      EXPECT_NE(text.find(std::string("  ") + option), std::string::npos) << command << option;
  };
  mentions("demo", {"--json", "--size", "--device", "--no-packets", "--require-packets", "--faults", "--capture",
                    "--counters", "--set"});
  mentions("info", {"--json", "--options", "--counters", "--set"});
  mentions("perf",
           {"--test",   "--sizes",    "--iterations", "--duration", "--memory",  "--window", "--warmup", "--progress",
            "--json",   "--deadline", "--spawn",      "--bits",     "--listen",  "--once",   "--cpu",    "--carrier",
            "--faults", "--capture",  "--counters",   "--set",      "--compare", "--pairs",  "--svg",    "--html"});
  mentions("explain", {"--from", "--to", "--require", "--table", "--json", "--set"});
  mentions("faults", {"SPEC", "--flow", "--packets", "--json"});
  const std::string perf = strait({"perf", "--help"}).out;
  for (const char* test :
       {"put_lat", "put_bw", "get_lat", "get_bw", "fetch_add_lat", "compare_swap_lat", "send_lat", "put_rate"}) {
    EXPECT_NE(perf.find(test), std::string::npos) << test;
  }
  const std::string top = strait({"--help"}).out;
  for (const char* command :
       {"strait demo", "strait info", "strait perf", "strait explain", "strait faults", "strait run", "--version"}) {
    EXPECT_NE(top.find(command), std::string::npos) << command;
  }
  for (const char* hidden : {"--peer", "--damage", "--packets-from"})
    EXPECT_EQ(strait({"demo", "--help"}).out.find(hidden), std::string::npos) << "an option nobody should use";
}

TEST(WrongUse, IsExitStatus2WithASentence) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{},
                                                  {"dmo"},
                                                  {"demo", "--jsn"},
                                                  {"demo", "--size", "1"},
                                                  {"demo", "--size", "many"},
                                                  {"demo", "extra"},
                                                  {"info", "--set", "progress"},
                                                  {"perf", "--spawn", "--test", "put_latency"},
                                                  {"perf", "--spawn", "--sizes", "8,0"},
                                                  {"perf", "--spawn", "--iterations", "0"},
                                                  {"perf", "--spawn", "--duration", "fast"},
                                                  {"perf", "--spawn", "--progress", "magic"},
                                                  {"perf", "--spawn", "--carrier", "pigeon"},
                                                  {"perf", "--spawn", "--faults", "drop=x"},
                                                  {"demo", "--faults", "drop=x"},
                                                  {"demo", "--no-packets", "--require-packets"},
                                                  {"faults"},
                                                  {"faults", "drop=1%", "--flow", "1"},
                                                  {"faults", "drop=1%", "--packets", "0"},
                                                  {"perf", "--spawn", "127.0.0.1:1"}}) {
    const Outcome outcome = strait(command, 20);
    std::string shown = "strait";
    for (const std::string& word : command) shown += " " + word;
    EXPECT_EQ(outcome.status, 2) << shown << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << shown << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("--help"), std::string::npos) << outcome.err;
    EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
    EXPECT_EQ(outcome.out, "") << shown;
  }
}

TEST(WrongUse, AnUnknownSettingIsRefusedByName) {
  const Outcome outcome = strait({"info", "--set", "progres=caller"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("progres"), std::string::npos) << outcome.err;
}

TEST(WrongUse, AnUnknownCommandGetsTheListOfThoseThereAre) {
  const Outcome outcome = strait({"dmo"});
  EXPECT_EQ(outcome.err,
            "strait: there is no command 'dmo'\n  Commands: demo, info, explain, perf, faults, run. `strait --help` "
            "says what\n  "
            "they do.\n");
}

TEST(WrongUse, AnAddressThatIsNoneIsNotAFailure) {
  EXPECT_EQ(strait({"perf", "nonsense"}).status, 2);
}

TEST(Version, IsOneLine) {
  const Outcome outcome = strait({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "strait " STRAIT_VERSION "\n");
}

TEST(Info, JsonHasDevicesOptionsAndCounters) {
  const Outcome outcome = strait({"info", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json info = json::parse(outcome.out);
  ASSERT_FALSE(info.at("accelerators").empty());
  EXPECT_EQ(info.at("accelerators").at(0).at("name"), "soft:0");
  ASSERT_FALSE(info.at("nics").empty());
  EXPECT_EQ(info.at("nics").at(0).at("software"), true);
  EXPECT_TRUE(info.at("counters").is_object());
  EXPECT_GT(info.at("options").size(), 5u);
  EXPECT_TRUE(info.at("between_processes").at("process_vm").at("works").is_boolean());
}

TEST(Info, SaysWhatIsThereIn80Columns) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"info"}, {"info", "--options"}, {"info", "--counters"}}) {
    const Outcome outcome = strait(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  }
  const std::string text = strait({"info"}).out;
  for (const char* words : {"accelerators", "soft:0", "(software)", "NICs", "memory kinds", "host", "between processes",
                            "process_vm", "userfaultfd", "UDP port 4791"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(Info, CountersAreGroupedAndNamePacketDropsByReason) {
  const Outcome outcome = strait({"info", "--counters", "--set", "carrier=roce"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* words :
       {"\nnode\n", "\nstrait0: work\n", "  doorbells", "\nstrait0: packets\n", "  packets_sent",
        "\nstrait0: packets dropped, by reason\n", "  drops_bad_icrc", "invariant CRC is wrong", "  drops_injected"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  // The tool's table has words for every counter of the NIC.
  EXPECT_EQ(outcome.out.find("strait0: other"), std::string::npos) << outcome.out;
  EXPECT_EQ(strait({"info", "--counters"}).out.find("packets_sent"), std::string::npos) << "there are no packets";
}

TEST(Info, OptionsShowValueAndOrigin) {
  const Outcome outcome = strait({"info", "--json", "--set", "lane_depth=64"}, 60, {{"STRAIT_PROGRESS", "caller"}});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json info = json::parse(outcome.out);
  std::size_t seen = 0;
  for (const json& option : info.at("options")) {
    if (option.at("name") == "progress") {
      EXPECT_EQ(option.at("value"), "caller");
      EXPECT_EQ(option.at("origin"), "environment");
      ++seen;
    }
    if (option.at("name") == "lane_depth") {
      EXPECT_EQ(option.at("value"), "64");
      EXPECT_EQ(option.at("origin"), "caller");
      ++seen;
    }
    if (option.at("name") == "deadline") {
      EXPECT_EQ(option.at("origin"), "default");
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3u);
}

TEST(Info, WarnsAboutAVariableNobodyReads) {
  const Outcome outcome = strait({"info"}, 60, {{"STRAIT_PROGRES", "caller"}});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE((outcome.out + outcome.err).find("STRAIT_PROGRES"), std::string::npos) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace strait::testing
