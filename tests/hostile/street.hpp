// SPDX-License-Identifier: Apache-2.0
// Three processes: one in the middle, its friend, and a neighbour that is up to no good. Whatever the last one does,
// the first two go on, their memory holds what they wrote, and the middle one hears of the end of its connection.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "program.hpp"
#include "sys/scratch.hpp"

namespace strait::testing {

constexpr int kPatienceMs = 60'000;
constexpr int kNoticedMs = 15'000;  // the timeouts of to() are over within two seconds, on a loaded machine later
constexpr int kNothing = -1;
constexpr int kGood = 0;  // of enum ibv_wc_status

using Answers = std::map<std::string, std::string>;

class Resident {
 public:
  // `before`: what the tool itself is started by.
  Resident(const std::string& folder, const std::string& carrier, const std::vector<std::string>& before = {})
      : program_(command(carrier, before), {{"TMPDIR", folder}}, Program::By::talk) {
    const std::string line = program_.read_line(kPatienceMs / 1000.0);
    if (line != "ready") ADD_FAILURE() << "it said \"" << line << "\"";
  }
  static std::vector<std::string> command(const std::string& carrier, const std::vector<std::string>& before) {
    std::vector<std::string> words = before;
    const auto tool = strait_command({"run"});
    words.insert(words.end(), tool.begin(), tool.end());
    std::istringstream settings("carrier=" + carrier);  // and others behind it
    for (std::string setting; settings >> setting;) words.insert(words.end(), {"--set", setting});
    words.insert(words.end(), {"--", HOSTILE_NEIGHBOUR});
    return words;
  }
  // What it says; "lost" when it is not there any more.
  Answers ask(const std::string& command) {
    Answers out;
    const std::string line = program_.write_line(command) ? program_.read_line(2 * kPatienceMs / 1000.0) : "";
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != "ok") out[word == "error" ? "error" : "lost"] = command + ": " + line;
    while (words >> word) {
      if (const std::size_t at = word.find('='); at != std::string::npos) out[word.substr(0, at)] = word.substr(at + 1);
    }
    return out;
  }
  void tell(const std::string& command) { (void)program_.write_line(command); }
  // That went well.
  Answers must(const std::string& command) {
    Answers out = ask(command);
    EXPECT_FALSE(out.contains("error") || out.contains("lost")) << out["error"] << out["lost"];
    return out;
  }
  int wait(int id, int patience_ms = kPatienceMs) {
    const Answers out = must("wait " + std::to_string(id) + " " + std::to_string(patience_ms));
    return out.contains("status") ? std::stoi(out.at("status")) : kNothing;
  }
  // The verbs program itself, not the tool around it.
  [[nodiscard]] pid_t inner() const {
    const auto children = children_of(program_.pid());
    return children.empty() ? -1 : children.front();
  }
  Program& program() { return program_; }
  Outcome quit() {
    tell("quit");
    return program_.finish();
  }

 private:
  Program program_;
};

class Street : public ::testing::Test {
 protected:
  // `before`: of the friend. Each has its ports before the next one starts.
  void open(const std::string& carrier, const std::vector<std::string>& before = {}) {
    const std::string folder = before.empty() ? scratch_.path() : sys::temporary_folder();
    middle_ = std::make_unique<Resident>(scratch_.path(), carrier);
    to_friend_ = middle_->must("qp 1");
    friend_ = std::make_unique<Resident>(folder, carrier, before);
    bad_ = std::make_unique<Resident>(scratch_.path(), carrier);
    from_friend_ = friend_->must("qp 1");
    from_bad_ = bad_->must("qp 1");
    to_bad_ = middle_->must("qp 2");
  }
  static std::string to(const Answers& peer, const char* id) {
    // 4.096 us * 2^16 = 268 ms, four times: long enough for a loaded machine, short enough to wait for.
    return std::string("connect ") + id + " " + peer.at("gid") + " " + peer.at("qpn") + " 16 3";
  }
  void connect_friend() {
    middle_->must(to(from_friend_, "1"));
    friend_->must(to(to_friend_, "1"));
  }
  void connect_bad() {
    middle_->must(to(from_bad_, "2"));
    bad_->must(to(to_bad_, "1"));
  }
  static std::string put(const char* what, const char* id, int bytes, const Answers& peer, int seed) {
    return std::string(what) + " " + id + " " + std::to_string(bytes) + " " + peer.at("va") + " " + peer.at("rkey") +
           " " + std::to_string(seed);
  }
  // Small and large, both ways.
  void friends_talk(int seed) {
    for (const int bytes : {8, 100'000}) {
      middle_->must(put("write", "1", bytes, from_friend_, seed));
      EXPECT_EQ(middle_->wait(1), kGood);
      EXPECT_EQ(friend_->must("holds 1 " + std::to_string(bytes) + " " + std::to_string(seed))["yes"], "1");
      friend_->must(put("write", "1", bytes, to_friend_, seed + 1));
      EXPECT_EQ(friend_->wait(1), kGood);
      EXPECT_EQ(middle_->must("holds 1 " + std::to_string(bytes) + " " + std::to_string(seed + 1))["yes"], "1");
    }
    EXPECT_EQ(middle_->must("strays")["strays"], "0");
    EXPECT_EQ(friend_->must("strays")["strays"], "0");
  }
  // Something that was posted to the bad one ends, and not well.
  void bad_one_is_noticed() {
    middle_->must(put("write", "2", 5000, from_bad_, 3));
    EXPECT_GT(middle_->wait(2, kNoticedMs), kGood) << "an error within its timeouts";
  }
  void nothing_stays() {
    EXPECT_EQ(middle_->quit().status, 0);
    EXPECT_EQ(friend_->quit().status, 0);
    if (bad_) {
      const pid_t inner = bad_->inner();
      if (inner > 0) ::kill(inner, SIGKILL);
      bad_->program().signal(SIGKILL);
      (void)bad_->program().finish();
    }
    // The root of one whose tool was killed is the next one's to remove.
    EXPECT_EQ(strait({"run", "-q", "--", "/bin/true"}, 60, {{"TMPDIR", scratch_.path()}}).status, 0);
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      EXPECT_EQ(entry.path().filename(), "lock") << "only the folder's own";
    }
    EXPECT_EQ(shared_memory(), shared_before_);
  }
  static std::size_t shared_memory() {
    std::size_t ours = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none))
      ours += entry.path().filename().string().find("strait") != std::string::npos ? 1u : 0u;
    return ours;
  }

  sys::Scratch scratch_ = sys::Scratch::create(sys::temporary_folder(), "strait-hostile-test").value();
  std::size_t shared_before_ = shared_memory();
  std::unique_ptr<Resident> middle_, friend_, bad_;
  Answers from_friend_, to_friend_, from_bad_, to_bad_;
};

// How a carrier is called in the names of tests.
inline std::string carrier_name(const ::testing::TestParamInfo<const char*>& info) {
  const std::string carrier = info.param;
  return (carrier.starts_with("auto") ? std::string("SharedMemory") : std::string("Packets")) +
         (carrier.find("background") == std::string::npos ? "" : "InTheBackground");
}

class OnCarrier : public Street, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { open(GetParam()); }
};

}  // namespace strait::testing
