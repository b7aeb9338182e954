// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/match_list.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

namespace strait::soft::cassini {
namespace {

TEST(CassiniMatchList, TheFirstThatAgreesIsFound) {
  MatchList<int> list;
  list.append({.bits = 5}, 1);
  list.append({.bits = 7}, 2);
  list.append({.bits = 7}, 3);
  EXPECT_EQ(list.at(list.find({.bits = 7})), 2);
  EXPECT_EQ(list.at(list.find({.bits = 7}, 2)), 3);
  EXPECT_EQ(list.find({.bits = 6}), MatchList<int>::kNone);
  EXPECT_EQ(list.at(list.find({.bits = 4, .care = ~std::uint64_t{1}})), 1) << "bits that nobody cares for";
  EXPECT_EQ(list.find({.bits = 5, .who = 1}), MatchList<int>::kNone);
  list.append({.bits = 5, .who_care = 0}, 4);
  EXPECT_EQ(list.at(list.find({.bits = 5, .who = 1})), 4);
}

// Against a list that is obviously right, with things leaving from everywhere.
TEST(CassiniMatchList, IsAListWhateverLeaves) {
  std::mt19937_64 random(8);
  struct Plain {
    MatchKey key;
    int number;
  };
  std::list<Plain> plain;
  MatchList<int> list;
  for (int step = 0; step < 20000; ++step) {
    const MatchKey key{.bits = random() % 8,
                       .care = random() % 4 == 0 ? 3u : ~std::uint64_t{0},
                       .who = static_cast<std::uint32_t>(random() % 3),
                       .who_care = random() % 2 == 0 ? 0 : ~0u};
    if (random() % 100 < (step % 4000 < 2000 ? 60u : 40u)) {
      plain.push_back({key, step});
      list.append(key, step);
      continue;
    }
    const auto at = list.find({.bits = key.bits, .who = key.who});
    auto want = plain.begin();
    while (want != plain.end() && (((want->key.bits ^ key.bits) & want->key.care) != 0 ||
                                   ((want->key.who ^ key.who) & want->key.who_care) != 0)) {
      ++want;
    }
    ASSERT_EQ(at == MatchList<int>::kNone, want == plain.end()) << step;
    if (want == plain.end()) continue;
    ASSERT_EQ(list.at(at), want->number);
    list.remove(at);
    plain.erase(want);
    ASSERT_EQ(list.size(), plain.size());
  }
  std::vector<int> left;
  list.each([&](int number) { left.push_back(number); });
  std::vector<int> wanted;
  for (const Plain& p : plain) wanted.push_back(p.number);
  EXPECT_EQ(left, wanted);
}

}  // namespace
}  // namespace strait::soft::cassini
