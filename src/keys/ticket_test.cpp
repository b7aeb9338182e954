// SPDX-License-Identifier: Apache-2.0
// Tickets: what verify accepts, and the sentence for everything it refuses.
#include "keys/ticket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/mac.hpp"
#include "strait/c.h"

namespace strait::keys {
namespace {

static_assert(kTicketBytes == STRAIT_TICKET_BYTES && sizeof(strait_ticket) == kTicketBytes);

constexpr std::int64_t kNow = 1'800'000'000'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

struct TicketTest : testing::Test {
  NodeId node = new_node_id().value();
  TicketKey key = new_ticket_key().value();
  TicketFields fields{node, 0x0102030405060708, 4096, 65536, 7, kNow + 10 * kSecond, STRAIT_REMOTE_READ, {}};

  std::string refusal(std::span<const std::byte> bytes, std::int64_t now = kNow) {
    const auto seen = verify(bytes, key, node, now);
    return seen ? "accepted" : seen.error().text;
  }
};

TEST_F(TicketTest, CarriesEveryField) {
  const TicketBytes bytes = issue(fields, key).value();
  const auto seen = verify(bytes, key, node, kNow);
  ASSERT_TRUE(seen) << seen.error().text;
  EXPECT_EQ(seen->node, node);
  EXPECT_EQ(seen->region_id, fields.region_id);
  EXPECT_EQ(seen->offset, fields.offset);
  EXPECT_EQ(seen->length_bytes, fields.length_bytes);
  EXPECT_EQ(seen->epoch, fields.epoch);
  EXPECT_EQ(seen->expires_wall_ns, fields.expires_wall_ns);
  EXPECT_EQ(seen->access, fields.access);
  EXPECT_NE(seen->nonce, fields.nonce) << "issue draws one";
}

// The documented layout, byte by byte, so that two versions of the library cannot disagree about it.
TEST(TicketLayout, MatchesTheTableInTheDocs) {
  TicketKey key{};
  NodeId node{};
  for (std::size_t i = 0; i < node.size(); ++i) node[i] = static_cast<std::byte>(0xa0 + i);
  TicketFields fields{node,
                      0x1112131415161718,
                      0x2122232425262728,
                      0x3132333435363738,
                      0x4142434445464748,
                      0x5152535455565758,
                      0x61626364,
                      {}};
  fields.nonce.fill(std::byte{0x77});
  std::vector<unsigned> expected{'S', 'T', 'R', 'T', 0, 1, 0, 0};
  for (unsigned i = 0; i < 16; ++i) expected.push_back(0xa0 + i);
  for (const unsigned row : {0x10u, 0x20u, 0x30u, 0x40u, 0x50u}) {
    for (unsigned i = 1; i <= 8; ++i) expected.push_back(row + i);
  }
  for (const unsigned each : {0x61u, 0x62u, 0x63u, 0x64u, 0u, 0u, 0u, 0u}) expected.push_back(each);
  expected.insert(expected.end(), 24, 0x77u);
  ASSERT_EQ(expected.size(), 96u);

  const TicketBytes bytes = encode(fields, key);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
  EXPECT_TRUE(same_digest(hmac_sha256(key, std::span(bytes).first(96)), std::span(bytes).subspan(96)));
}

TEST_F(TicketTest, EveryFlippedByteIsRefusedWithItsOwnSentence) {
  const TicketBytes good = issue(fields, key).value();
  std::set<std::string> sentences;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned bit : {0x01u, 0x80u}) {
      TicketBytes bad = good;
      bad[i] ^= static_cast<std::byte>(bit);
      const std::string text = refusal(bad);
      if (i < 4) {
        EXPECT_EQ(text, "this is not a ticket: it does not begin like one") << i;
      } else if (i < 6) {
        EXPECT_TRUE(text.starts_with("this ticket has version ")) << i << text;
      } else if (i >= 8 && i < 24) {
        EXPECT_EQ(text, "this ticket was issued by another node") << i;
      } else {
        EXPECT_EQ(text, "this ticket is forged or damaged: its MAC does not match") << i;
      }
    }
  }
}

TEST_F(TicketTest, WrongLengthSaysBothLengths) {
  const TicketBytes good = issue(fields, key).value();
  EXPECT_EQ(refusal(std::span(good).first(127)), "a ticket is 128 bytes long, this has 127");
  EXPECT_EQ(refusal({}), "a ticket is 128 bytes long, this has 0");
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.push_back(std::byte{0});
  EXPECT_EQ(refusal(longer), "a ticket is 128 bytes long, this has 129");
}

TEST_F(TicketTest, AnotherKeyIsAForgery) {
  const TicketBytes bytes = encode(fields, new_ticket_key().value());
  EXPECT_EQ(refusal(bytes), "this ticket is forged or damaged: its MAC does not match");
  EXPECT_EQ(verify(bytes, key, node, kNow).error().code, Code::denied);
}

TEST_F(TicketTest, ExpiresAtTheInstantAndSaysHowLongAgo) {
  const TicketBytes bytes = issue(fields, key).value();
  EXPECT_EQ(refusal(bytes, fields.expires_wall_ns - 1), "accepted");
  EXPECT_EQ(refusal(bytes, fields.expires_wall_ns), "this ticket expired 0 us ago");
  EXPECT_EQ(refusal(bytes, fields.expires_wall_ns + 1'500'000), "this ticket expired 1 ms ago");
  EXPECT_EQ(refusal(bytes, fields.expires_wall_ns + 2 * kSecond + kSecond / 2), "this ticket expired 2.5 s ago");
  EXPECT_EQ(refusal(bytes, fields.expires_wall_ns + 600 * kSecond), "this ticket expired 10 min ago");
  EXPECT_EQ(verify(bytes, key, node, fields.expires_wall_ns).error().code, Code::denied);

  fields.expires_wall_ns = INT64_MIN;  // the difference to now does not fit 63 bits
  EXPECT_TRUE(refusal(encode(fields, key), INT64_MAX).starts_with("this ticket expired "));
}

TEST_F(TicketTest, StaleAndDroppedRegionsAreGone) {
  EXPECT_TRUE(check_current(fields, 7, true));
  const auto stale = check_current(fields, 8, true);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, Code::gone);
  EXPECT_EQ(stale.error().text,
            "this ticket is stale: region 72623859790382856 was revoked since (epoch 8, the ticket has 7)");
  const auto dropped = check_current(fields, 7, false);
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().code, Code::gone);
  EXPECT_EQ(dropped.error().text, "the region of this ticket (region 72623859790382856) no longer exists");
}

TEST_F(TicketTest, NoTwoTicketsAreAlike) {
  std::set<TicketBytes> seen;
  for (int i = 0; i < 100; ++i) seen.insert(issue(fields, key).value());
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_NE(new_node_id().value(), new_node_id().value());
  EXPECT_NE(new_ticket_key().value(), new_ticket_key().value());
}

}  // namespace
}  // namespace strait::keys
