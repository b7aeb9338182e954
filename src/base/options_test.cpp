// SPDX-License-Identifier: Apache-2.0
// Options: where a value comes from, what is refused, and in which words.
#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace strait {
namespace {

using Pairs = std::vector<Options::Pair>;
using Environment = std::vector<const char*>;

Result<Options> read(const Pairs& caller, const Environment& environment) {
  return Options::read(caller, environment);
}

TEST(Options, DefaultsOfTheTableAreValid) {
  const Options options = read({}, {}).value();
  EXPECT_EQ(options.text("listen"), "127.0.0.1:0");
  EXPECT_EQ(options.text("progress"), "thread");
  EXPECT_EQ(options.integer("accelerator_memory"), 256 << 20);
  EXPECT_TRUE(options.flag("accelerator_export"));
  EXPECT_FALSE(options.flag("allow_staging"));
  EXPECT_EQ(options.duration_ns("deadline"), 30'000'000'000);
  EXPECT_EQ(options.duration_ns("ticket_lifetime"), 3'600'000'000'000);
  EXPECT_EQ(options.duration_ns("spin"), 20'000);
  EXPECT_EQ(options.integer("rnr_retries"), 7);
  EXPECT_EQ(options.origin("listen"), Origin::fallback);
  EXPECT_TRUE(options.warnings().empty());
}

TEST(Options, TableRowsAreComplete) {
  std::set<std::string> names;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(names.insert(environment_name(row.name)).second) << row.name << " is there twice";
    EXPECT_EQ(row.type == OptionType::choice, row.choices != nullptr) << row.name;
    EXPECT_EQ(std::string(row.help).back(), '.') << row.name << ": the help is a sentence";
  }
}

TEST(Options, CallerBeatsEnvironmentBeatsDefault) {
  const Environment environment = {"PATH=/bin", "STRAIT_RETRIES=5", "STRAIT_LOG=debug"};
  const Options options = read({{"retries", "1"}}, environment).value();
  EXPECT_EQ(options.integer("retries"), 1);
  EXPECT_EQ(options.origin("retries"), Origin::caller);
  EXPECT_EQ(options.text("log"), "debug");
  EXPECT_EQ(options.origin("log"), Origin::environment);
  EXPECT_EQ(options.origin("nics"), Origin::fallback);
}

TEST(Options, FirstVariableAndLastCallerPairCount) {
  const Options options = read({{"retries", "1"}, {"retries", "2"}}, {"STRAIT_SPIN=1us", "STRAIT_SPIN=2us"}).value();
  EXPECT_EQ(options.integer("retries"), 2);
  EXPECT_EQ(options.duration_ns("spin"), 1'000);
}

TEST(Options, ReadsTheEnvironmentOfTheProcess) {
  ASSERT_EQ(::setenv("STRAIT_LANE_DEPTH", "17", 1), 0);
  const Result<Options> options = Options::read();
  ASSERT_EQ(::unsetenv("STRAIT_LANE_DEPTH"), 0);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->integer("lane_depth"), 17);
}

TEST(Options, UnknownVariableIsAWarningWithTheNearestName) {
  const Options options = read({}, {"STRAIT_RETRYS=5", "STRAIT_XYLOPHONES_PLAYED=1", "STRAIT=1"}).value();
  ASSERT_EQ(options.warnings().size(), 2U);
  EXPECT_EQ(options.warnings()[0], "STRAIT_RETRYS is set, but strait has no such option; did you mean STRAIT_RETRIES?");
  EXPECT_EQ(options.warnings()[1],
            "STRAIT_XYLOPHONES_PLAYED is set, but strait has no such option; `strait info --options` lists them");
}

TEST(Options, WhatStraitRunTellsItsProgramsIsNoOption) {
  EXPECT_TRUE(read({}, {"STRAIT_HOST_ROOT=/tmp/x", "STRAIT_HOST_DEVICES=x.so", "STRAIT_SOFT_ACCELERATORS=cuda:1"})
                  .value()
                  .warnings()
                  .empty());
}

TEST(Options, UnknownCallerNameIsRefusedWithTheNearestName) {
  const Result<Options> options = read({{"dead_line", "1s"}}, {});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Code::invalid);
  EXPECT_EQ(options.error().text, "strait has no option \"dead_line\"");
  EXPECT_EQ(options.error().remedy, "Did you mean deadline?");
  const Result<Options> far = read({{"colour", "red"}}, {});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().remedy, "`strait info --options` lists them all.");
}

TEST(Options, AWrongValueNamesOptionValueExpectationAndOrigin) {
  EXPECT_EQ(read({}, {"STRAIT_PROGRESS=magic"}).error().text,
            "option progress cannot be \"magic\": one of thread, caller, eventfd is expected; the value came from the "
            "environment variable STRAIT_PROGRESS");
  EXPECT_EQ(read({{"retries", "8"}}, {}).error().text,
            "option retries cannot be \"8\": a whole number, from 0 to 7 is expected; the value came from the caller");
}

TEST(Options, RefusesEveryWrongValue) {
  const std::vector<Options::Pair> wrong = {{"retries", ""},
                                            {"retries", "three"},
                                            {"retries", "-1"},
                                            {"retries", "3 "},
                                            {"retries", "0x3"},
                                            {"retries", "3.0"},
                                            {"lane_depth", "0"},
                                            {"lane_depth", "8193"},
                                            {"progress", ""},
                                            {"progress", "Thread"},
                                            {"progress", "thread|caller"},
                                            {"allow_staging", "2"},
                                            {"allow_staging", ""},
                                            {"allow_staging", "maybe"},
                                            {"accelerator_memory", "0"},
                                            {"accelerator_memory", "-1M"},
                                            {"accelerator_memory", "1Q"},
                                            {"deadline", "30"},
                                            {"deadline", "-1s"},
                                            {"deadline", "0"},
                                            {"spin", "fast"},
                                            {"log", "warning"},
                                            {"retries", "99999999999999999999"}};
  for (const auto& [name, value] : wrong) {
    const Result<Options> options = read({{name, value}}, {});
    ASSERT_FALSE(options) << name << "=" << value;
    EXPECT_EQ(options.error().code, Code::invalid);
    EXPECT_NE(options.error().text.find("option " + name), std::string::npos) << options.error().text;
  }
}

TEST(Options, FlagsHaveFourSpellingsEach) {
  for (const char* on : {"1", "yes", "true", "on"})
    EXPECT_TRUE(read({{"allow_staging", on}}, {}).value().flag("allow_staging"));
  for (const char* off : {"0", "no", "false", "off"}) {
    EXPECT_FALSE(read({{"accelerator_export", off}}, {}).value().flag("accelerator_export"));
  }
}

TEST(Options, ASecretIsNeverPartOfAnError) {
  const OptionRow rows[] = {{"pin", "0", OptionType::integer, "A number nobody may see.", nullptr, true}};
  const std::vector<Options::Pair> caller = {{"pin", "hunter2"}};
  const Result<Options> options = Options::read(caller, {}, rows);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().explain().find("hunter2"), std::string::npos);
}

TEST(Options, TextMayHoldAnything) {
  const Options options = read({}, {"STRAIT_SECRET=a=b c", "STRAIT_PLUGINS="}).value();
  EXPECT_EQ(options.text("secret"), "a=b c");
  EXPECT_EQ(options.text("plugins"), "");
  EXPECT_EQ(options.origin("plugins"), Origin::environment);
}

TEST(Options, ANameOutsideTheTableGivesTheEmptyValue) {
  const Options options = read({}, {}).value();
  EXPECT_EQ(options.text("no_such"), "");
  EXPECT_EQ(options.integer("no_such"), 0);
}

TEST(Options, NamesOfVariables) {
  EXPECT_EQ(environment_name("ack_timeout"), "STRAIT_ACK_TIMEOUT");
  EXPECT_EQ(environment_name("a.b-c"), "STRAIT_A_B_C");
}

TEST(Parse, Bytes) {
  EXPECT_EQ(parse_bytes("0").value(), 0);
  EXPECT_EQ(parse_bytes("4096").value(), 4096);
  EXPECT_EQ(parse_bytes("64K").value(), 65536);
  EXPECT_EQ(parse_bytes("64k").value(), 65536);
  EXPECT_EQ(parse_bytes("1MiB").value(), 1 << 20);
  EXPECT_EQ(parse_bytes("2G").value(), std::int64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1T").value(), std::int64_t{1} << 40);
  EXPECT_EQ(parse_bytes("9223372036854775807").value(), INT64_MAX);
  for (const char* wrong :
       {"", "K", "-1", "+1", " 1", "1 K", "1.5G", "1KB", "0x10", "9223372036854775808", "8388608T"}) {
    const auto parsed = parse_bytes(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Code::invalid);
  }
}

TEST(Parse, Durations) {
  EXPECT_EQ(parse_duration_ns("0").value(), 0);
  EXPECT_EQ(parse_duration_ns("250us").value(), 250'000);
  EXPECT_EQ(parse_duration_ns("5s").value(), 5'000'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s").value(), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns("0.1h").value(), 360'000'000'000);
  EXPECT_EQ(parse_duration_ns("2m").value(), 120'000'000'000);
  EXPECT_EQ(parse_duration_ns("1.0000000019s").value(), 1'000'000'001) << "below a nanosecond is dropped";
  EXPECT_EQ(parse_duration_ns("9223372036854775807ns").value(), INT64_MAX);
  for (const char* wrong : {"", "s", "1", "5.s", ".5s", "-1s", "+1s", "1e3s", "1 s", "1d", "1.5.5s",
                            "9223372036854775808ns", "2562048h", "9223372036.9s"}) {
    const auto parsed = parse_duration_ns(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Code::invalid);
  }
}

}  // namespace
}  // namespace strait
