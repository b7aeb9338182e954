// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/table.hpp"

#include <gtest/gtest.h>

namespace strait::soft::cassini {
namespace {

struct Numbered {
  explicit Numbered(std::uint32_t number) : id(number) {}
  std::uint32_t id;
};

TEST(CassiniTable, ARetiredNumberIsNotHandedOutUntilItIsReturned) {
  Table<Numbered> table(1, 3);
  EXPECT_EQ(table.make()->id, 1u);
  EXPECT_EQ(table.make()->id, 2u);
  table.retire(1);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.make()->id, 3u);
  EXPECT_EQ(table.make(), nullptr) << "1 is retired, not free";
  table.give_back(1);
  EXPECT_EQ(table.make()->id, 1u);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(4), nullptr);
}

}  // namespace
}  // namespace strait::soft::cassini
