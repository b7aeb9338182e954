// SPDX-License-Identifier: Apache-2.0
// A NIC that is removed in the middle of transfers, under host memory and under whichever device STRAIT_TEST_DEVICE
// names: every operation ends with a sentence before its deadline, and nothing is left.
#include <tuple>

#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kPieces = 8;
constexpr auto kLong = 60s;  // only somebody who forgot an operation waits that long

class NicGone : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static std::string memory() { return std::get<0>(GetParam()) == "host" ? "host" : test_device(); }
  static NodeOptions options(const char* faults) {
    return settings({{"accelerators", test_kind() == "soft" ? "soft:1" : test_kind()},
                     {"carrier", std::get<1>(GetParam())},
                     {"ack_timeout", "20ms"},
                     {"faults", faults}});
  }
  static std::uint64_t free_bytes(Node& node) { return info(node)["accelerators"][0]["free_bytes"]; }
  static void expect_gone(const Error& error) {
    EXPECT_EQ(error.code, Code::gone) << error.explain();
    EXPECT_NE(error.text.find("NIC"), std::string::npos) << error.explain();
    EXPECT_NE(error.text.find("is no longer there"), std::string::npos) << error.explain();
    EXPECT_NE(error.remedy.find("Was it removed, or its driver unloaded?"), std::string::npos) << error.explain();
  }
};
INSTANTIATE_TEST_SUITE_P(Transfers, NicGone,
                         testing::Combine(testing::Values("host", "device"), testing::Values("auto", "roce")),
                         [](const auto& each) { return std::get<0>(each.param) + "_" + std::get<1>(each.param); });

TEST_P(NicGone, InTheMiddleOfPuts) {
  const auto once = [] {
    Pair pair(options(""), options("gone=5"));
    const Memory first = pair.asker.allocate(4096, {.near = test_device()}).value();  // before it nobody has asked
    const std::uint64_t room = free_bytes(pair.asker);
    {
      Block target(pair.owner, memory(), kPieces * kPiece, access::all);
      Block local(pair.asker, memory(), kPieces * kPiece, access::local);
      const Published published = pair.owner.publish("block", target.region).value();
      const Target place = pair.far.lookup("block").value();
      const auto bytes = pattern(kPieces * kPiece, 9);
      local.fill(bytes);
      Block into(pair.asker, memory(), 4096, access::local);
      Operation message = pair.far.receive(into.region.all());
      std::vector<Operation> puts;
      for (std::size_t i = 0; i < kPieces; ++i)
        puts.push_back(pair.far.put(local.region.slice(i * kPiece, kPiece), place.at(i * kPiece)));
      std::size_t arrived = 0;
      for (std::size_t i = 0; i < kPieces; ++i) {
        const auto put = puts[i].wait(kLong);
        if (put) {
          EXPECT_EQ(arrived++, i) << "in order";
        } else {
          expect_gone(put.error());
        }
      }
      EXPECT_LT(arrived, 5u) << "the fifth is never begun";
      const auto there = target.read(0, arrived * kPiece);
      EXPECT_TRUE(std::equal(there.begin(), there.end(), bytes.begin()));
      const auto received = message.wait(kLong);
      ASSERT_FALSE(received);
      expect_gone(received.error());
      // Nothing new is to be had of it, and what is there can be given back.
      const auto put = pair.far.put(local.region.slice(0, 64), place.at(0)).wait(kLong);
      ASSERT_FALSE(put);
      expect_gone(put.error());
      const auto shared = pair.asker.share(into.memory(), access::all);
      ASSERT_FALSE(shared);
      expect_gone(shared.error());
      const auto lane = pair.far.lane();
      ASSERT_FALSE(lane);
      expect_gone(lane.error());
      EXPECT_TRUE(local.region.revoke(kLong)) << "nothing of it is under way";
    }
    EXPECT_EQ(free_bytes(pair.asker), room);
  };
  once();  // what is opened once for the whole process
  const auto before = open_files();
  once();
  EXPECT_EQ(open_files(), before);
}

// To a peer it is as if the cable had been cut: its own operations end when its NIC has asked often enough.
TEST_P(NicGone, AtTheOtherEnd) {
  Pair pair(options("gone=1"), options(""));
  Block target(pair.owner, memory(), kPiece, access::all);
  Block local(pair.asker, memory(), kPiece, access::all);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const Published back = pair.asker.publish("back", local.region).value();
  const auto put = pair.near.put(target.region.all(), pair.near.lookup("back").value().at(0)).wait(kLong);
  ASSERT_FALSE(put);
  expect_gone(put.error());
  const auto across = pair.far.put(local.region.all(), place.at(0)).wait(kLong);
  ASSERT_FALSE(across);
  EXPECT_EQ(across.error().code, Code::gone) << across.error().explain();
  EXPECT_NE(across.error().text.find("the peer did not answer"), std::string::npos) << across.error().explain();
  EXPECT_TRUE(pair.asker.share(local.memory(), access::local)) << "this NIC is there";
}

}  // namespace
}  // namespace strait::flow
