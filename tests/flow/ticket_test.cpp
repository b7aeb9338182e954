// SPDX-License-Identifier: Apache-2.0
// Tickets from end to end: what they grant, and that forged, expired and stale ones grant nothing.
#include <thread>

#include "flow.hpp"

namespace strait::flow {
namespace {

class Tickets : public testing::Test {
 protected:
  NoFilesLeft no_files_left;
  Pair pair;
  NothingHeld nothing_held{pair};
  Block target{pair.owner, "soft:0", 65536, access::all};
  Block local{pair.asker, "host", 65536, access::local};

  void expect_refused(const Ticket& ticket, Code code, const std::string& part) {
    const auto start = std::chrono::steady_clock::now();
    auto redeemed = pair.far.redeem(ticket, 2s);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
    ASSERT_FALSE(redeemed);
    EXPECT_EQ(redeemed.error().code, code) << redeemed.error().text;
    EXPECT_NE(redeemed.error().text.find(part), std::string::npos) << redeemed.error().text;
  }
};

TEST_F(Tickets, GrantTheirRangeAndNoMore) {
  Ticket ticket = target.region.ticket(access::remote_write, 10s, 4096, 8192).value();
  Target part = pair.far.redeem(Ticket::from(ticket.bytes()).value()).value();
  EXPECT_EQ(part.size(), 8192u);
  EXPECT_EQ(part.rights(), access::remote_write);
  const auto bytes = pattern(8192, 3);
  local.fill(bytes);
  auto put = pair.far.put(local.region.slice(0, 8192), part.at(0), {.signal = 5}).wait(5s);
  ASSERT_TRUE(put) << put.error().explain();
  EXPECT_EQ(target.read(4096, 8192), bytes);
  EXPECT_EQ(target.region.signal(5).read().value(), 1u);
  auto get = pair.far.get(local.region.slice(0, 8), part.at(0)).wait(1s);
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, Code::denied);
  // Whoever holds the key cannot reach further with it either: before, behind, or with another right.
  for (const std::int64_t shift : {-8, 8192}) {
    Lane lane = pair.far.lane().value();
    Place beyond = part.at(0);
    beyond.target.address += static_cast<std::uint64_t>(shift);
    auto outside = lane.put(local.region.slice(0, 8), beyond).wait(5s);
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().syndrome, 0x13u) << outside.error().text;
    EXPECT_NE(outside.error().text.find("refused by the owner's NIC: "), std::string::npos) << outside.error().text;
  }
  Lane lane = pair.far.lane().value();
  Place reading = part.at(0);
  reading.target.access = STRAIT_REMOTE_READ;
  auto read = lane.get(local.region.slice(0, 8), reading).wait(5s);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().syndrome, 0x13u) << read.error().text;
  if (lane.path().find("ring grant") != std::string::npos) {
    EXPECT_NE(read.error().text.find("the key does not grant remote read"), std::string::npos) << read.error().text;
  }
}

TEST_F(Tickets, CannotGrantMoreThanTheRegionHas) {
  Block read_only(pair.owner, "host", 4096, access::remote_read);
  auto wider = read_only.region.ticket(access::remote_write);
  ASSERT_FALSE(wider);
  EXPECT_EQ(wider.error().code, Code::denied);
  EXPECT_NE(wider.error().text.find("can only narrow"), std::string::npos);
  EXPECT_FALSE(read_only.region.ticket(access::remote_read, 1s, 4000, 97));
  EXPECT_FALSE(read_only.region.ticket(access::remote_read, 1s, 4097, 0));
}

TEST_F(Tickets, Forged) {
  const Ticket good = target.region.ticket(access::remote_read).value();
  const auto with_bit_changed = [&](std::size_t at) {
    Ticket forged = good;
    forged.raw.bytes[at] ^= 1;
    return forged;
  };
  expect_refused(with_bit_changed(0), Code::invalid, "this is not a ticket: it does not begin like one");
  expect_refused(with_bit_changed(8), Code::denied, "this ticket was issued by another node");
  for (const std::size_t at : std::vector<std::size_t>{40, 64, 100, 127})  // the region, the range, the nonce, the MAC
    expect_refused(with_bit_changed(at), Code::denied, "this ticket is forged or damaged: its MAC does not match");
  expect_refused(Ticket{}, Code::invalid, "this is not a ticket: it does not begin like one");
  auto short_one = Ticket::from(good.bytes().subspan(1));
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error().text, "a ticket has 128 bytes, not 127");
  // A ticket of another Node, with a good MAC of that Node.
  Block elsewhere(pair.asker, "host", 4096, access::all);
  expect_refused(elsewhere.region.ticket(access::remote_read).value(), Code::denied,
                 "this ticket was issued by another node");
  EXPECT_TRUE(pair.far.redeem(good, 2s)) << "and the right one is still good";
}

TEST_F(Tickets, Expired) {
  const Ticket ticket = target.region.ticket(access::remote_read, 1ms).value();
  std::this_thread::sleep_for(5ms);
  expect_refused(ticket, Code::denied, "expired");
}

TEST_F(Tickets, Stale) {
  const Ticket ticket = target.region.ticket(access::remote_read).value();
  ASSERT_TRUE(pair.far.redeem(ticket));
  ASSERT_TRUE(target.region.revoke(1s));
  expect_refused(ticket, Code::gone, "the region of this ticket (region 1) no longer exists");
  EXPECT_FALSE(target.region.ticket(access::remote_read)) << "and there is no other";
}

}  // namespace
}  // namespace strait::flow
