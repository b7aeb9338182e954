// SPDX-License-Identifier: Apache-2.0
// Command line pieces of strait perf, and what its verification must find.
#include "tool/perf.hpp"

#include <gtest/gtest.h>

#include "tool/perf_link.hpp"
#include "tool/perf_session.hpp"

namespace strait::tool {
namespace {

using Sizes = std::vector<std::uint64_t>;

TEST(PerfSizes, ListsAndRanges) {
  EXPECT_EQ(parse_sizes("8").value(), (Sizes{8}));
  EXPECT_EQ(parse_sizes("8,64K,1M").value(), (Sizes{8, 64 << 10, 1 << 20}));
  EXPECT_EQ(parse_sizes("8:64").value(), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes("3:13").value(), (Sizes{3, 6, 12}));
}

TEST(PerfSizes, RefusesWhatIsNoSize) {
  for (const char* text : {"", ",", "8,", "0", "-1", "2G", "8:4", "x", "8:", ":8", "1e3", "8:16:32"}) {
    EXPECT_FALSE(parse_sizes(text)) << '"' << text << '"';
  }
}

TEST(PerfTests, EveryTestVerifiesSomethingSomewhere) {
  for (const TestRow& row : test_table()) {
    EXPECT_EQ(find_test(row.name), &row);
    EXPECT_TRUE(parse_sizes(row.sizes)) << row.name;
    for (const bool word : {false, true}) {
      EXPECT_FALSE(expected_at_server(row.test, word) == Expect::nothing &&
                   expected_at_client(row.test, word) == Expect::nothing)
          << row.name;
    }
  }
  EXPECT_EQ(find_test("put"), nullptr);
}

TEST(PerfTests, OnlyWholeWordsInHostMemoryArePolled) {
  EXPECT_TRUE(polls_word(8, "host"));
  EXPECT_TRUE(polls_word(1, "host"));
  EXPECT_FALSE(polls_word(3, "host"));
  EXPECT_FALSE(polls_word(16, "host"));
  EXPECT_FALSE(polls_word(8, "soft:0"));
}

TEST(PerfLink, TicketsSurviveBeingText) {
  Ticket ticket;
  for (std::size_t i = 0; i < STRAIT_TICKET_BYTES; ++i) ticket.raw.bytes[i] = static_cast<std::uint8_t>(i * 7);
  const auto back = ticket_from(ticket_text(ticket));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::memcmp(back->raw.bytes, ticket.raw.bytes, STRAIT_TICKET_BYTES), 0);
  EXPECT_FALSE(ticket_from(ticket_text(ticket).substr(2)));
  EXPECT_FALSE(ticket_from("zz" + ticket_text(ticket).substr(2)));
  EXPECT_FALSE(ticket_from(""));
}

}  // namespace
}  // namespace strait::tool
