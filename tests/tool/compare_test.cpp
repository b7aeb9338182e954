// SPDX-License-Identifier: Apache-2.0
// strait perf --compare, from outside. How fast anything is says nothing here: whether it was measured, verified and
// drawn does.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;
constexpr double kPatience = 170;

// A folder of this test's own.
class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "compare_XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string text_of(const std::string& file) {
  std::stringstream whole;
  whole << std::ifstream(file).rdbuf();
  return whole.str();
}

// As somebody else's parser sees it.
void expect_xml(const std::string& file) {
  const Outcome parsed =
      run({"/usr/bin/env", "python3", "-c",
           "import sys, xml.etree.ElementTree as t; print(t.parse(sys.argv[1]).getroot().tag)", file});
  EXPECT_EQ(parsed.status, 0) << parsed.err;
}

std::vector<std::string> quick(std::vector<std::string> more) {
  std::vector<std::string> command = {"perf", "--pairs", "1", "--duration", "2ms", "--deadline", "60s"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

void expect_figures(const json& report, const std::vector<std::string>& peers, std::size_t sizes) {
  EXPECT_EQ(report.value("ok", false), true);
  EXPECT_EQ(report.value("software", false), true);
  for (const char* name : {"machine", "date", "command", "load_before", "load_after", "missing", "path"})
    EXPECT_TRUE(report.contains(name)) << name;
  ASSERT_EQ(report.at("tests").size(), 2u);
  for (const json& test : report.at("tests")) {
    ASSERT_EQ(test.at("results").size(), sizes);
    for (const json& result : test.at("results")) {
      std::vector<std::string> found;
      for (const json& peer : result.at("peers")) {
        found.push_back(peer.at("name"));
        EXPECT_EQ(peer.at("samples").size(), 1u);
        EXPECT_EQ(peer.at("kept").get<int>() + peer.at("discarded").get<int>(), 1);
        for (const char* figure : {"strait", "peer", "ratio"})
          EXPECT_GT(peer.at(figure).at("median").get<double>(), 0) << figure;
      }
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, peers);
    }
  }
}

TEST(Compare, MeasuresDrawsAndSaysWhereItComesFrom) {
  const Folder folder;
  const Outcome outcome = strait(quick({"--compare", "memcpy", "--sizes", "8,4K", "--json", "--svg",
                                        folder.file("p.svg"), "--html", folder.file("p.html")}),
                                 kPatience);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  expect_figures(report, {"memcpy"}, 2);
  EXPECT_NE(report.at("command").get<std::string>().find("strait perf --pairs 1"), std::string::npos);
  EXPECT_EQ(report.at("machine").at("strait"), STRAIT_VERSION);

  const std::string svg = text_of(folder.file("p.svg"));
  const std::string page = text_of(folder.file("p.html"));
  expect_xml(folder.file("p.svg"));
  expect_xml(folder.file("p.html"));
  for (const std::string* text : {&svg, &page}) {
    for (const char* words : {"strait (software NIC)", "memcpy", "Latency", "Bandwidth", "4 KiB", "GB/s"})
      EXPECT_NE(text->find(words), std::string::npos) << words;
    // Nothing is fetched: the one address is the name of SVG itself.
    for (const char* words : {"src=", "href=", "@import", "url(", "<script"})
      EXPECT_EQ(text->find(words), std::string::npos) << words;
  }
  for (const std::string& words : {std::string("Linux"), std::string("--compare memcpy"), std::string(STRAIT_VERSION),
                                   report.at("date").get<std::string>(), std::string("discarded")})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST(Compare, TheTableFits80ColumnsAndMarksSoftware) {
  const Outcome outcome = strait(quick({"--compare", "memcpy", "--sizes", "8"}), kPatience);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* words : {"software NIC", "latency", "bandwidth", "memcpy", "ratio", "p10 .. p90", "kept/discarded",
                            "machine: ", "versions: ", "load average: ", "were discarded"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  EXPECT_EQ(outcome.err, "") << "progress is for terminals";
}

#ifdef STRAIT_HAS_FABRIC
TEST(Compare, RunsUcxAndLibfabricAndMemcpyInTheSamePairs) {
  const Outcome outcome =
      strait(quick({"--compare", "ucx,libfabric,memcpy", "--sizes", "64", "--json"}), kPatience,
             // What other people's libraries still hold when a program ends is not what is tested here.
             {{"ASAN_OPTIONS", "detect_leaks=0"}});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  expect_figures(json::parse(outcome.out, nullptr, false), {"libfabric", "memcpy", "ucx"}, 1);
}
#else
TEST(Compare, ABuildWithoutLibfabricSaysSo) {
  const Outcome outcome = strait(quick({"--compare", "libfabric"}));
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_NE(unwrapped(outcome.err).find("libfabric-dev"), std::string::npos) << outcome.err;
}

TEST(Compare, RunsUcxAndMemcpyInTheSamePairs) {
  const Outcome outcome = strait(quick({"--compare", "ucx,memcpy", "--sizes", "64", "--json"}), kPatience);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  expect_figures(json::parse(outcome.out, nullptr, false), {"memcpy", "ucx"}, 1);
}
#endif

TEST(Compare, APeerThatWasAskedForAndIsMissingIsExitStatus3) {
  const Outcome outcome = strait(quick({"--compare", "ucx,memcpy"}), 60, {{"PATH", "/nonexistent"}});
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
  EXPECT_NE(unwrapped(outcome.err).find("Install Debian's package ucx-utils."), std::string::npos) << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const Outcome object = strait(quick({"--compare", "ucx", "--json"}), 60, {{"PATH", "/nonexistent"}});
  EXPECT_EQ(object.status, 3);
  EXPECT_EQ(json::parse(object.out, nullptr, false).value("ok", true), false) << object.out;
}

TEST(Compare, WithoutAListThoseThatAreInstalledRunAndTheOthersAreNamed) {
  // Elsewhere, the tool has no helper beside it; in such a PATH there is no UCX.
  const Folder folder;
  std::filesystem::copy_file(strait_command({})[0], folder.file("strait"));
  const Outcome outcome =
      run({folder.file("strait"), "perf", "--sizes", "8", "--pairs", "1", "--duration", "2ms", "--json", "--compare"},
          kPatience, {{"PATH", "/nonexistent"}});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = json::parse(outcome.out, nullptr, false);
  expect_figures(report, {"memcpy"}, 1);
  ASSERT_EQ(report.at("missing").size(), 2u);
  EXPECT_EQ(report.at("missing").at(0).at("name"), "ucx");
  EXPECT_EQ(report.at("missing").at(1).at("name"), "libfabric");
  EXPECT_NE(report.at("missing").at(1).at("remedy").get<std::string>().find("libfabric-dev"), std::string::npos);
}

TEST(Compare, AFileThatCannotBeWrittenIsSaidBeforeAnythingIsMeasured) {
  const Outcome outcome = strait({"perf", "--compare", "memcpy", "--svg", "/nonexistent/folder/p.svg"});
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("/nonexistent/folder/p.svg"), std::string::npos) << outcome.err;
}

TEST(Compare, OurOwnFailureIsAFailure) {
  const Folder folder;
  const Outcome outcome = strait(
      quick({"--compare", "memcpy", "--sizes", "8", "--memory", "soft:7", "--svg", folder.file("p.svg")}), kPatience);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("soft:7"), std::string::npos) << outcome.err;
  expect_xml(folder.file("p.svg"));
}

TEST(Compare, WrongUseIsExitStatus2) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--compare", "nixl"},
                                               {"--compare", "ucx,ucx"},
                                               {"--compare", "ucx,"},
                                               {"--compare", "memcpy", "--pairs", "0"},
                                               {"--compare", "memcpy", "--spawn"},
                                               {"--compare", "memcpy", "--test", "put_bw"},
                                               {"--compare", "memcpy", "--sizes", "0"},
                                               {"--compare", "memcpy", "--duration", "fast"},
                                               {"--svg", "p.svg"},
                                               {"--html", "p.html"},
                                               {"--pairs", "3"}}) {
    std::vector<std::string> command = {"perf"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = strait(command, 20);
    EXPECT_EQ(outcome.status, 2) << more[1] << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
    EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  }
}

TEST(Compare, CtrlCEndsItAndWhatItStarted) {
  Program compare(strait_command({"perf", "--compare", "memcpy", "--pairs", "1000"}));
  // It has caught signals before it starts anything.
  for (int i = 0; i < 6000 && children_of(compare.pid()).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  compare.signal(SIGINT);
  const Outcome outcome = compare.finish(kPatience);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "strait: interrupted\n");
}

}  // namespace
}  // namespace strait::testing
