// SPDX-License-Identifier: Apache-2.0
#include "versus/sweep.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plot/well_formed_test.hpp"
#include "sys/affinity.hpp"
#include "sys/scratch.hpp"

namespace strait::versus {
namespace {

Json spread(double median) {
  return {{"median", median}, {"p10", median * 0.9}, {"p90", median * 1.2}, {"n", 3}};
}

Json entry(const char* name, double ours, double theirs) {
  return {{"name", name},
          {"strait", spread(ours)},
          {"peer", spread(theirs)},
          {"ratio", spread(ours / theirs)},
          {"kept", 3},
          {"discarded", 1},
          {"line_moved", 1},
          {"lost_cpu", 0},
          {"noisy", false},
          {"samples", Json::array({1, 2, 3, 4})}};
}

Json results_of_both(bool software) {
  Json tests = Json::array();
  for (const bool latency : {true, false}) {
    Json results = Json::array();
    for (const std::uint64_t bytes : {8u, 4096u, 16u << 20}) {
      const double size = static_cast<double>(bytes);
      Json peers = {entry("ucx", size, size / 2), entry("libfabric", size, size * 2), entry("memcpy", size, size / 3)};
      results.push_back({{"bytes", bytes}, {"strait", spread(size)}, {"peers", peers}});
    }
    tests.push_back({{"test", latency ? "put_lat" : "put_bw"},
                     {"title", latency ? "latency: put, one way" : "bandwidth: puts, 16 under way"},
                     {"unit", latency ? "us" : "GB/s"},
                     {"lower_is_better", latency},
                     {"results", results}});
  }
  return {{"software", software},
          {"path", "a < b"},
          {"peers", {{{"name", "ucx"}, {"title", "UCX"}}, {{"name", "memcpy"}, {"title", "copy"}}}},
          {"tests", tests}};
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    widest = std::max(widest, end - start);
    start = end + 1;
  }
  return widest;
}

TEST(SweepText, TheTableFitsAndSaysWhatWasDiscarded) {
  const std::string table = sweep_table(results_of_both(true));
  for (const char* words :
       {"latency: put, one way (us)", "GB/s", "16 MiB", "ucx", "libfabric", "memcpy", "3/1", "software NIC"})
    EXPECT_NE(table.find(words), std::string::npos) << words << "\n" << table;
  EXPECT_LE(widest_line(table), 80u) << table;
  EXPECT_EQ(sweep_discarded(results_of_both(true)).rfind("12 of 48 pairs were discarded: ", 0), 0u);
  EXPECT_EQ(sweep_discarded(Json::object()), "");
}

TEST(SweepText, WhatWasNotRunSaysWhy) {
  Json results = results_of_both(false);
  results["tests"][0]["results"][0]["peers"][1] = {{"name", "libfabric"}, {"left_out", "words only"}};
  results["tests"][0]["results"][0]["peers"][0] = {{"name", "ucx"}, {"samples", Json::array()}};
  results["tests"][0]["results"][1]["peers"][0]["noisy"] = true;
  const std::string table = sweep_table(results);
  EXPECT_NE(table.find("not run: words only"), std::string::npos) << table;
  EXPECT_NE(table.find("failed"), std::string::npos) << table;
  EXPECT_NE(table.find(" noisy"), std::string::npos) << table;
  EXPECT_EQ(table.find("software"), std::string::npos) << "it ran on hardware";
  EXPECT_EQ(plot::why_not_well_formed(sweep_svg(results)), "");
}

TEST(SweepText, PicturesAndPageAreWellFormedAndMarkSoftware) {
  const Json results = results_of_both(true);
  const std::string svg = sweep_svg(results);
  EXPECT_EQ(plot::why_not_well_formed(svg), "");
  const std::string page =
      sweep_page(results, {"strait perf --compare a&b", "2026-11-16", "a machine", "versions", "load 0.1"});
  EXPECT_EQ(plot::why_not_well_formed(page), "");
  for (const std::string* text : {&svg, &page}) {
    for (const char* words : {"strait (software NIC)", "libfabric", "ucx", "memcpy (limit)", "Latency", "Bandwidth"})
      EXPECT_NE(text->find(words), std::string::npos) << words;
  }
  for (const char* words : {"a machine", "versions", "a&amp;b", "2026-11-16", "load 0.1", "<table>", "a &lt; b"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(sweep_svg(results_of_both(false)).find("software"), std::string::npos);
}

TEST(SweepText, MarkdownHasALineForEveryPeer) {
  const std::string text = sweep_markdown(results_of_both(true));
  std::size_t lines = 0;
  for (std::size_t at = text.find("\n| "); at != std::string::npos; at = text.find("\n| ", at + 1)) ++lines;
  EXPECT_EQ(lines, 2u * (1 + 9)) << text;
}

// A tool that says what we want to hear.
std::string write_tool(const std::string& folder, const std::string& body) {
  const std::string path = folder + "/tool";
  std::ofstream(path) << "#!/bin/sh\n" << body;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

SweepPlan small_plan(const std::string& tool) {
  return {.strait = tool,
          .strait_options = {},
          .peers = {Peer::memcpy},
          .sizes = {8, 64},
          .pairs = 1,
          .seconds = 0.001,
          .cpus = {sys::nth_usable_cpu(0), sys::nth_usable_cpu(1)}};
}

TEST(Sweep, RunsEverySizeOfBothTests) {
  const auto folder = sys::Scratch::create(sys::temporary_folder(), "strait-sweep").value();
  const std::string tool =
      write_tool(folder.path(),
                 "echo '{\"software\": true, \"tests\": [{\"carrier\": \"grant\", \"path\": \"way\", \"results\": "
                 "[{\"verified\": true, \"seconds\": 2, \"iterations\": 1000, \"bytes_per_second\": 3e9}]}]}'\n");
  SweepPlan plan = small_plan(tool);
  std::vector<std::string> said;
  plan.say = [&](const std::string& text) { said.push_back(text); };
  const auto results = measure_sweep(plan);
  ASSERT_TRUE(results) << results.error().text;
  EXPECT_EQ(results->at("ok"), true) << results->dump(1);
  EXPECT_EQ(results->at("carrier"), "grant");
  ASSERT_EQ(results->at("tests").size(), 2u);
  for (const Json& test : results->at("tests")) {
    ASSERT_EQ(test.at("results").size(), 2u);
    for (const Json& result : test.at("results")) {
      const Json& peer = result.at("peers").at(0);
      EXPECT_EQ(peer.at("name"), "memcpy");
      EXPECT_EQ(peer.at("samples").size(), 1u);
      EXPECT_GT(peer.at("ratio").at("median").get<double>(), 0);
    }
  }
  EXPECT_DOUBLE_EQ(results->at("tests").at(0).at("results").at(0).at("strait").at("median").get<double>(), 1000);
  EXPECT_DOUBLE_EQ(results->at("tests").at(1).at("results").at(0).at("strait").at("median").get<double>(), 3);
  EXPECT_FALSE(said.empty());
}

TEST(Sweep, AToolThatFailsOrSaysNonsenseIsAFailure) {
  const auto folder = sys::Scratch::create(sys::temporary_folder(), "strait-sweep").value();
  for (const char* body : {"echo 'strait: no such NIC' >&2; exit 1\n", "echo nonsense\n", "echo '{\"tests\": 5}'\n",
                           "echo '{\"software\": true, \"tests\": [{\"carrier\": \"grant\", \"path\": \"way\", "
                           "\"results\": [{\"verified\": false}]}]}'\n"}) {
    const auto results = measure_sweep(small_plan(write_tool(folder.path(), body)));
    ASSERT_TRUE(results) << results.error().text;
    EXPECT_EQ(results->at("ok"), false) << body;
    EXPECT_FALSE(results->at("failures").empty()) << body;
    EXPECT_EQ(plot::why_not_well_formed(sweep_svg(*results)), "") << body;
  }
}

TEST(Sweep, EndsWhenItIsTold) {
  SweepPlan plan = small_plan("/bin/false");
  plan.stop = [] { return true; };
  const auto results = measure_sweep(plan);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().text, "interrupted");
}

}  // namespace
}  // namespace strait::versus
