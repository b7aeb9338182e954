// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/several.hpp"

#include <gtest/gtest.h>

namespace strait::soft::cm {
namespace {

// It remembers what it was asked to send, and hands on what the test says.
struct Plain final : Device {
  Plain(std::uint64_t guid, std::vector<GidInfo> with) : number(guid), addresses(std::move(with)) {}
  [[nodiscard]] std::uint64_t node_guid() const override { return number; }
  [[nodiscard]] const std::vector<GidInfo>& gids() const override { return addresses; }
  [[nodiscard]] Status start(Receiver receiver) override {
    if (refuses) return fail(Code::limit, "no room");
    hear = std::move(receiver);
    return {};
  }
  void stop() override { hear = nullptr; }
  void send(std::uint8_t sgid_index, const IpAddress&, const Mad&) override { sent.push_back(sgid_index); }
  std::uint64_t number;
  std::vector<GidInfo> addresses;
  Receiver hear;
  std::vector<std::uint8_t> sent;
  bool refuses = false;
};

GidInfo at(const char* address) {
  return {IpAddress::parse(address).value(), 5, 0};
}

class SeveralTest : public ::testing::Test {
 protected:
  std::vector<GidInfo> gids = {at("10.0.0.1"), at("10.0.0.2"), at("fd00::1"), at("10.0.0.3"), at("fd00::2")};
  std::shared_ptr<Plain> first = std::make_shared<Plain>(7, gids);
  std::shared_ptr<Plain> second = std::make_shared<Plain>(8, gids);
  SeveralDevices both{{first, second}};
};

TEST_F(SeveralTest, AddressesOfEachKindGoRoundTheNics) {
  EXPECT_EQ(share_out(gids, 2), (std::vector<std::size_t>{0, 1, 0, 0, 1}));
  EXPECT_EQ(share_out(gids, 1), (std::vector<std::size_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(share_out(gids, 9), (std::vector<std::size_t>{0, 1, 0, 2, 1}));
  const std::uint64_t guids[] = {7, 8, 7, 7, 8};
  for (std::size_t i = 0; i < gids.size(); ++i) EXPECT_EQ(both.gids()[i].node_guid, guids[i]);
}

TEST_F(SeveralTest, TheOwnerOfAnAddressSends) {
  for (std::uint8_t i = 0; i < 6; ++i) both.send(i, gids[0].address, Mad{});
  EXPECT_EQ(first->sent, (std::vector<std::uint8_t>{0, 2, 3}));
  EXPECT_EQ(second->sent, (std::vector<std::uint8_t>{1, 4}));
}

TEST_F(SeveralTest, AMessageThatComesToAllIsHeardOnce) {
  int heard = 0;
  ASSERT_TRUE(both.start([&](const IpAddress&, const IpAddress&, std::span<const std::byte>) { ++heard; }));
  const Mad mad{};
  for (const GidInfo& gid : gids) {
    first->hear(gids[0].address, gid.address, mad);
    second->hear(gids[0].address, gid.address, mad);
  }
  EXPECT_EQ(heard, 5);
  both.stop();
  EXPECT_FALSE(first->hear || second->hear);
}

TEST_F(SeveralTest, AllStartOrNone) {
  second->refuses = true;
  EXPECT_FALSE(both.start([](const IpAddress&, const IpAddress&, std::span<const std::byte>) {}));
  EXPECT_FALSE(first->hear);
}

}  // namespace
}  // namespace strait::soft::cm
