// SPDX-License-Identifier: Apache-2.0
// The software CUDA driver answers as the real one did: record.cpp is run on it, and compared answer by answer with
// what was written down on a GPU.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.hpp"

namespace strait::testing {
namespace {

using Answers = std::map<std::string, std::string>;

Answers parse_answers(const std::string& text) {
  Answers answers;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  EXPECT_TRUE(json.is_object()) << text;
  for (const auto& [name, answer] : json.items()) {
    if (!name.starts_with("_")) answers[name] = answer.get<std::string>();
  }
  return answers;
}

std::string file_text(const char* path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Name and reason.
Answers named_with_reasons(const char* path) {
  Answers known;
  std::istringstream lines(file_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = line.find(' ');
    EXPECT_NE(blank, std::string::npos) << "no reason: " << line;
    known[line.substr(0, blank)] = blank == std::string::npos ? "" : line.substr(blank + 1);
  }
  return known;
}

Outcome run_recorder(const std::string& accelerators) {
  return run({RECORD_PROGRAM}, 170,
             {{"STRAIT_SOFT_ACCELERATORS", accelerators}, {"LD_LIBRARY_PATH", RECORD_STAND_INS}});
}

TEST(RecordedAnswers, AreTheSameOnTheSoftwareDriver) {
  const Outcome outcome = run_recorder("cuda:2x256M");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Answers soft = parse_answers(outcome.out);
  const Answers recorded = parse_answers(file_text(RECORD_FOLDER "/h200.json"));
  Answers known = named_with_reasons(RECORD_FOLDER "/differences.txt");
  EXPECT_GT(recorded.size(), 50u) << "a recording that says nothing proves nothing";
  for (const auto& [name, answer] : recorded) {
    const auto ours = soft.find(name);
    ASSERT_NE(ours, soft.end()) << name << " is no longer asked";
    if (known.erase(name) != 0)
      EXPECT_NE(ours->second, answer) << name << " no longer differs: take it out of differences.txt";
    else
      EXPECT_EQ(ours->second, answer) << name;
  }
  for (const auto& [name, reason] : known) ADD_FAILURE() << name << " of differences.txt is not in the recording";
  // And the other way round: an answer of ours that nothing is compared with looks like one that was.
  Answers unrecorded = named_with_reasons(RECORD_FOLDER "/unrecorded.txt");
  for (const auto& [name, answer] : soft) {
    if (recorded.contains(name)) continue;
    EXPECT_NE(unrecorded.erase(name), 0u)
        << name << " is asked and was never recorded: record it on a GPU, or say why not in unrecorded.txt";
  }
  for (const auto& [name, reason] : unrecorded)
    ADD_FAILURE() << name << " of unrecorded.txt is not asked, or was recorded since";
}

TEST(RecordedAnswers, WithoutDevicesThereIsNoDriver) {
  const Outcome none = run_recorder("rocm:1");
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("cuInit failed with 100"), std::string::npos) << none.err;
}

#ifndef RECORD_SANITIZED
TEST(RunWithAccelerators, FindsThemAndSaysWhatIsLeft) {
  const Outcome outcome = run({STRAIT_TOOL, "run", "--accelerators", "cuda:1x64M", "--", RECORD_PROGRAM}, 170);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(parse_answers(outcome.out).at("plain.export"), "0");
  EXPECT_NE(outcome.err.find("strait run: 1 process"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("not freed"), std::string::npos) << outcome.err;
}

TEST(RunWithAccelerators, NamesWhatWasLeftAndWhatIsNotThere) {
  const Outcome outcome = run({STRAIT_TOOL, "run", "--accelerators", "cuda:1x64M", "--", RECORD_PROGRAM, "leave"}, 170);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::string line = outcome.err;
  std::erase(line, '\n');
  for (const char* part :
       {"1 allocation not freed (3 145 728", "held by open descriptors (5 242 880", "cuLaunchKernel (1)"})
    EXPECT_NE(line.find(part), std::string::npos) << part << " is not in: " << line;
}

TEST(RunWithAccelerators, RefusesWhatItCannotRead) {
  for (const char* spec : {"cuda", "cuda:1000", "tpu:1", "cuda:1x1", "cuda:1,cuda:1"}) {
    const Outcome outcome = run({STRAIT_TOOL, "run", "--accelerators", spec, "--", "true"});
    EXPECT_EQ(outcome.status, 2) << spec;
    EXPECT_NE(outcome.err.find("accelerators"), std::string::npos) << outcome.err;
  }
}
#endif

}  // namespace
}  // namespace strait::testing
