// SPDX-License-Identifier: Apache-2.0
// Garbage: in rings, in doorbell records, in memory that is shared, in calls.
#include <signal.h>

#include "street.hpp"

namespace strait::testing {
namespace {

class Garbage : public OnCarrier {};
INSTANTIATE_TEST_SUITE_P(Carriers, Garbage, ::testing::Values("auto", "roce"), carrier_name);

TEST_P(Garbage, InItsOwnQueues) {
  connect_friend();
  connect_bad();
  friends_talk(1);
  for (int seed = 1; seed <= 3; ++seed) bad_->must("queue 1 " + std::to_string(seed));
  friends_talk(10);
  nothing_stays();
}

TEST_P(Garbage, InCallsToTheDevice) {
  connect_friend();
  connect_bad();
  for (int seed = 1; seed <= 4; ++seed) {
    bad_->must("ioctls " + std::to_string(seed) + " 5000");
    friends_talk(seed);
  }
  bad_->must("qp 5");  // it is as good as before
  nothing_stays();
}

TEST_P(Garbage, InCommandsOfTheConnectionManager) {
  connect_friend();
  connect_bad();
  for (int seed = 1; seed <= 4; ++seed) {
    bad_->must("cm " + std::to_string(seed) + " 5000");
    friends_talk(seed);
  }
  bad_->must("qp 5");
  nothing_stays();
}

class SharedRing : public Street {};

TEST_F(SharedRing, RandomBytes) {
  open("auto");
  connect_friend();
  connect_bad();
  middle_->must(put("write", "2", 100, from_bad_, 3));
  EXPECT_EQ(middle_->wait(2), kGood);
  for (int seed = 1; seed <= 3; ++seed) {
    const Answers said = bad_->ask("grants " + std::to_string(seed) + " RANDOM");
    if (seed == 1) {
      ASSERT_TRUE(said.contains("rings"));
      EXPECT_EQ(said.at("rings"), "1") << "nothing was shared: this tests nothing";
    }
    friends_talk(seed);
  }
  middle_->must(put("write", "2", 5000, from_bad_, 3));
  EXPECT_NE(middle_->wait(2), kNothing) << "it ends, one way or the other";
  friends_talk(20);
  nothing_stays();
}

// Each seed with a connection of its own: the first message that cannot be believed ends the link.
TEST_F(SharedRing, MessagesThatLie) {
  open("auto");
  connect_friend();
  connect_bad();
  for (int seed = 1; seed <= 12; ++seed) {
    if (seed > 1) {
      const pid_t inner = bad_->inner();
      if (inner > 0) ::kill(inner, SIGKILL);
      bad_ = std::make_unique<Resident>(scratch_.path(), "auto");
      from_bad_ = bad_->must("qp 1");
      const std::string id = std::to_string(seed + 1);
      to_bad_ = middle_->must("qp " + id);
      middle_->must(to(from_bad_, id.c_str()));
      bad_->must(to(to_bad_, "1"));
    }
    const std::string id = std::to_string(seed + 1);
    middle_->must(put("write", id.c_str(), 100, from_bad_, 3));
    EXPECT_EQ(middle_->wait(seed + 1), kGood);
    bad_->must(put("write", "1", 100, to_bad_, 3));
    EXPECT_EQ(bad_->wait(1), kGood);
    // While something is on its way: reads, which the answers are forged to.
    middle_->must(put("read", id.c_str(), 100'000, from_bad_, 3));
    const Answers said = bad_->ask("grants " + std::to_string(seed) + " NUMBERED");
    if (said.contains("rings")) {
      EXPECT_EQ(said.at("rings"), "1");
    }
    EXPECT_NE(middle_->wait(seed + 1), kNothing) << "it ends, one way or the other";
    friends_talk(seed);
  }
  nothing_stays();
}

}  // namespace
}  // namespace strait::testing
