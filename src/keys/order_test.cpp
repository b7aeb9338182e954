// SPDX-License-Identifier: Apache-2.0
// The list by address against a plain one.
#include "keys/order.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace strait::keys {
namespace {

// Random ranges, overlapping and nested, come and go; what touches a range is what a plain search says.
TEST(Order, AgreesWithAPlainSearch) {
  std::mt19937_64 random(5);
  std::vector<Entry> entries(700);
  std::set<Entry*> in;
  Order order;
  const auto check = [&](std::uint64_t address, std::uint64_t end) {
    std::set<Entry*> expected;
    for (Entry* e : in) {
      if (e->base < end && e->base + e->length_bytes > address) expected.insert(e);
    }
    std::set<Entry*> found;
    Order::Place place = order.start(address);
    while (Entry* const e = order.next(place, address, end)) EXPECT_TRUE(found.insert(e).second);
    ASSERT_EQ(found, expected) << address << " to " << end;
  };
  for (int step = 0; step < 20'000; ++step) {
    Entry& e = entries[random() % entries.size()];
    if (in.contains(&e)) {
      order.erase(e.base, &e);
      in.erase(&e);
    } else {
      e.base = random() % 100 == 0 ? 4096 : random() % 1'000'000;  // many with the same base
      e.length_bytes = 1 + (random() % 50 == 0 ? random() % 500'000 : random() % 3'000);
      order.insert(e.base, e.length_bytes, &e);
      in.insert(&e);
    }
    const std::uint64_t address = random() % 1'000'000;
    if (step % 7 == 0) check(address, address + 1 + random() % 5'000);
  }
  check(0, UINT64_MAX);
  check(4096, 4097);
  while (!in.empty()) {
    order.erase((*in.begin())->base, *in.begin());
    in.erase(in.begin());
  }
  check(0, UINT64_MAX);
}

TEST(Order, RisingBasesFillTheirBlocks) {
  std::vector<Entry> entries(10'000);
  Order order;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].base = i * 4096;
    entries[i].length_bytes = 4096;
    order.insert(i * 4096, 4096, &entries[i]);
  }
  EXPECT_LT(order.memory_bytes(), entries.size() * 20);
  Order::Place place = order.start(5'000 * 4096 + 1);
  EXPECT_EQ(order.next(place, 5'000 * 4096 + 1, 5'000 * 4096 + 2), &entries[5'000]);
  EXPECT_EQ(order.next(place, 5'000 * 4096 + 1, 5'000 * 4096 + 2), nullptr);
}

}  // namespace
}  // namespace strait::keys
