// SPDX-License-Identifier: Apache-2.0
// Counters: same name, same counter; references stay good; adding from many threads loses nothing.
#include "base/counters.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace strait {
namespace {

using Snapshot = std::vector<std::pair<std::string, std::uint64_t>>;

TEST(Counters, OneCounterPerNameInOrderOfFirstUse) {
  Counters counters;
  counters.get("puts").add();
  counters.get("gets").add(5);
  counters.get("puts").add_owner_thread(2);
  EXPECT_EQ(counters.snapshot(), (Snapshot{{"puts", 3}, {"gets", 5}}));
}

TEST(Counters, ReferencesOutliveLaterEntries) {
  Counters counters;
  Counter& first = counters.get("first");
  for (int i = 0; i < 10'000; ++i) counters.get("c" + std::to_string(i % 500)).add();
  first.add(7);
  EXPECT_EQ(&first, &counters.get("first"));
  EXPECT_EQ(counters.snapshot().front(), (std::pair<std::string, std::uint64_t>{"first", 7}));
}

TEST(Counters, ThreadsLoseNothing) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters] {
      Counter& shared = counters.get("shared");
      for (int i = 0; i < 20'000; ++i) shared.add();
      (void)counters.snapshot();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.snapshot(), (Snapshot{{"shared", 80'000}}));
}

}  // namespace
}  // namespace strait
