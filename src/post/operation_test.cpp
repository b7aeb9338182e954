// SPDX-License-Identifier: Apache-2.0
// The operation table: places, generations, queue order, and what another thread may ask.
#include "post/operation.hpp"

#include <gtest/gtest.h>

#include <set>

namespace strait::post {
namespace {

TEST(OpTable, HandsOutEveryPlaceOnceThenIsFull) {
  OpTable table(8, 0);
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 8; ++i) {
    Record* record = table.take();
    ASSERT_NE(record, nullptr);
    ids.insert(record->id);
  }
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(table.take(), nullptr);
  EXPECT_EQ(table.room(), 0u);
}

TEST(OpTable, AnIdIsUnknownOnceItsPlaceWasGivenBack) {
  OpTable table(2, kReceiveTag);
  Record* first = table.take();
  const std::uint64_t id = first->id;
  EXPECT_EQ(id & kReceiveTag, kReceiveTag);
  EXPECT_EQ(table.find(id), first);
  table.give_back(*first);
  EXPECT_EQ(table.find(id), nullptr);
  Record* again = table.take();
  EXPECT_EQ(again, first);  // the warm place is used again
  EXPECT_NE(again->id, id);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
}

TEST(OpTable, KeepsQueueOrderWhateverThePlaces) {
  OpTable table(4, 0);
  Record* a = table.take();
  Record* b = table.take();
  table.queue(*b);
  table.queue(*a);
  EXPECT_EQ(table.first(), b);
  table.pop();
  EXPECT_EQ(table.first(), a);
  table.pop();
  EXPECT_EQ(table.first(), nullptr);
  table.queue(*b);
  EXPECT_EQ(table.first(), b);
}

TEST(OpTable, HoldsTheRegionUntilTheRecordLeavesTheQueue) {
  OpTable table(4, 0);
  const int region = 0;
  const int other = 0;
  Record* record = table.take();
  record->holder = &region;
  table.queue(*record);
  EXPECT_TRUE(table.holds(&region));
  EXPECT_FALSE(table.holds(&other));
  record->state = State::detached;  // nobody will ask, and still it holds the region
  EXPECT_TRUE(table.holds(&region));
  table.pop();
  EXPECT_FALSE(table.holds(&region));
}

}  // namespace
}  // namespace strait::post
