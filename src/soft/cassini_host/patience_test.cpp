// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/patience.hpp"

#include <gtest/gtest.h>

namespace strait::soft::cassini {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(Patience, PromptAnswersCostNothing) {
  Patience patience(0);
  std::int64_t now = 0;
  for (int i = 0; i < 100'000; ++i, now += Patience::kPromptNs) patience.waited(now, now + Patience::kPromptNs);
  EXPECT_TRUE(patience.whole(now));
}

// However the slow answers are cut, all of them together get what is there and a tenth of the time.
TEST(Patience, SlowAnswersAddUp) {
  for (const std::int64_t each : {5 * kMs, 100 * kMs, 900 * kMs}) {
    Patience patience(0);
    std::int64_t now = 0;
    std::int64_t waited = 0;
    while (now < 60'000 * kMs) {
      const std::int64_t until = now + std::min(each, patience.longest_ns(now));
      patience.waited(now, until);
      waited += until - now;
      now = until + 10 * kMs;  // what else the device does
    }
    // Prompt waits are on top: at most one to every 10 ms of other work.
    const std::int64_t prompt = now / (10 * kMs) * Patience::kPromptNs;
    EXPECT_LE(waited, Patience::kMostNs + now / Patience::kComesBack + prompt) << each;
  }
}

TEST(Patience, ComesBack) {
  Patience patience(0);
  patience.waited(0, patience.longest_ns(0));
  EXPECT_FALSE(patience.whole(Patience::kMostNs));
  EXPECT_TRUE(patience.whole(12 * Patience::kMostNs));
  EXPECT_EQ(patience.left_ns(1000 * Patience::kMostNs), Patience::kMostNs);
}

}  // namespace
}  // namespace strait::soft::cassini
