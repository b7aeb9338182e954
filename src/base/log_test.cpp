// SPDX-License-Identifier: Apache-2.0
// Log: what reaches the sink and what is not even formatted.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strait {
namespace {

TEST(Log, PassesOnUpToItsLevel) {
  std::vector<std::string> seen;
  const Log log(Level::warn, [&](Level level, std::string_view text) {
    seen.push_back(std::string(level_name(level)) + ": " + std::string(text));
  });
  log.write(Level::error, "{} of {}", 1, 2);
  log.write(Level::warn, "careful");
  log.write(Level::info, "hidden");
  log.write(Level::debug, "hidden");
  EXPECT_EQ(seen, (std::vector<std::string>{"error: 1 of 2", "warn: careful"}));
  EXPECT_TRUE(log.wants(Level::warn));
  EXPECT_FALSE(log.wants(Level::info));
}

TEST(Log, WithoutASinkIsSilent) {
  const Log log;
  EXPECT_FALSE(log.wants(Level::error));
  log.write(Level::error, "nobody hears {}", "this");
}

TEST(Log, LevelsHaveNamesBothWays) {
  for (const Level level : {Level::error, Level::warn, Level::info, Level::debug}) {
    EXPECT_EQ(level_by_name(level_name(level)), level);
  }
  EXPECT_EQ(level_by_name("loud"), std::nullopt);
  EXPECT_EQ(level_by_name(""), std::nullopt);
}

}  // namespace
}  // namespace strait
