// SPDX-License-Identifier: Apache-2.0
// Processes that stop, die, fork, or lose their descriptors, at every point of a connection.
#include <signal.h>

#include "street.hpp"

namespace strait::testing {
namespace {

enum class When { unconnected, half, connected, busy };

struct Case {
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.act; }

  const char* carrier;
  When when;
  const char* act;  // "stop", "kill", or a command of the neighbour's
};

class Process : public Street, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    open(GetParam().carrier);
    connect_friend();
    if (GetParam().when == When::half) middle_->must(to(from_bad_, "2"));
    if (GetParam().when >= When::connected) connect_bad();
    if (GetParam().when == When::busy) {
      middle_->must(put("write", "2", 100'000, from_bad_, 3));
      EXPECT_EQ(middle_->wait(2), kGood);
      bad_->must("flood 1 300000 " + to_bad_.at("va") + " " + to_bad_.at("rkey"));
    }
  }
  void act() {
    const std::string how = GetParam().act;
    if (how == "stop" || how == "kill") {
      ASSERT_EQ(::kill(bad_->inner(), how == "stop" ? SIGSTOP : SIGKILL), 0);
    } else {
      (void)bad_->ask(how);
      const Answers used = bad_->ask("cpu 300");
      if (GetParam().when == When::connected && used.contains("percent")) {
        EXPECT_LT(std::stod(used.at("percent")), 25) << "nor does it run hot";
      }
    }
  }
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  static const char* const kWhen[] = {"Unconnected", "HalfConnected", "Connected", "Busy"};
  return std::string(info.param.act) + kWhen[static_cast<int>(info.param.when)] +
         (std::string(info.param.carrier) == "auto" ? "" : "Packets");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* carrier : {"auto", "roce"}) {
    for (const When when : {When::unconnected, When::half, When::connected, When::busy}) {
      for (const char* act : {"stop", "kill", "close", "rawclose"}) cases.push_back({carrier, when, act});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, Process, ::testing::ValuesIn(all_cases()), name_of);

TEST_P(Process, HurtsOnlyItself) {
  friends_talk(1);
  act();
  friends_talk(5);
  // Connected to what does not answer any more: that it fails is all right, that it takes for ever is not.
  if (GetParam().when == When::unconnected) (void)middle_->ask(to(from_bad_, "2"));
  if (GetParam().when == When::unconnected) return nothing_stays();
  bad_one_is_noticed();
  friends_talk(9);
  nothing_stays();
}

class Forks : public OnCarrier {};
INSTANTIATE_TEST_SUITE_P(Carriers, Forks, ::testing::Values("auto", "roce"), carrier_name);

TEST_P(Forks, AtEveryPhase) {
  connect_friend();
  EXPECT_EQ(bad_->must("fork")["status"], "0") << "before it is connected";
  connect_bad();
  EXPECT_EQ(bad_->must("fork")["status"], "0") << "after";
  middle_->must(put("write", "2", 100'000, from_bad_, 3));
  EXPECT_EQ(middle_->wait(2), kGood) << "the parent is as it was";
  bad_->must(put("write", "1", 100'000, to_bad_, 4));
  EXPECT_EQ(bad_->wait(1), kGood);
  EXPECT_EQ(middle_->must("holds 2 100000 4")["yes"], "1");
  bad_->must("flood 1 300000 " + to_bad_.at("va") + " " + to_bad_.at("rkey"));
  EXPECT_EQ(bad_->must("fork")["status"], "0") << "in the middle of a transfer";
  friends_talk(1);
  nothing_stays();
}

// A child that inherited everything does not keep the connection of its dead parent alive.
TEST_P(Forks, AChildThatStays) {
  connect_friend();
  connect_bad();
  const pid_t child = std::stoi(bad_->must("forkstay")["pid"]);
  ::kill(bad_->inner(), SIGKILL);
  bad_one_is_noticed();
  friends_talk(1);
  ::kill(child, SIGKILL);
  nothing_stays();
}

}  // namespace
}  // namespace strait::testing
