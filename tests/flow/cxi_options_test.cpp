// SPDX-License-Identifier: Apache-2.0
// Options strict, strict_report and faults of a Node reach the software Cassini that it opens, and no other Node's.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "strait/strait.hpp"

namespace strait {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kRegionBytes = 4096;

Result<Node> open_on_cassini(std::map<std::string, std::string> more) {
  more.emplace("nics", "cxi:local0");
  more.emplace("grant", "ring");  // the NIC is to do it
  NodeOptions options{.settings = {}, .log = nullptr, .log_context = nullptr};
  for (const auto& [name, value] : more) options.settings.push_back({name, value});
  return Node::open(options);
}

// One Node with a plan, one without; memory at both, and the way to put into either.
struct PlannedPair {
  explicit PlannedPair(const std::string& faults)
      : planned(open_on_cassini({{"faults", faults}}).value()),
        plain(open_on_cassini({}).value()),
        to_plain(planned.connect(plain.address(), {.deadline = 20s}).value()),
        to_planned(plain.accept(20s).value()),
        mine(planned.allocate(kRegionBytes).value()),
        theirs(plain.allocate(kRegionBytes).value()),
        at_planned(planned.share(mine, access::all).value()),
        at_plain(plain.share(theirs, access::all).value()) {
    std::memset(mine.data(), 1, kRegionBytes);
    std::memset(theirs.data(), 2, kRegionBytes);
  }
  Node planned, plain;
  Peer to_plain, to_planned;
  Memory mine, theirs;
  Region at_planned, at_plain;
};

TEST(CxiOptions, FaultsOfANodeAreItsOwn) {
  PlannedPair pair("error=100%:36,seed=3");
  // From the Node that has no plan: as ever.
  const Target there = pair.to_planned.redeem(pair.at_planned.ticket(access::all).value()).value();
  const auto good = pair.to_planned.put(pair.at_plain.slice(0, 64), there.at(0)).wait(20s);
  EXPECT_TRUE(good) << good.error().text;
  EXPECT_EQ(static_cast<const unsigned char*>(pair.mine.data())[63], 2);
  // From the other one: every request of its card fails, and nothing moves.
  const auto other = pair.to_plain.redeem(pair.at_plain.ticket(access::all).value());
  ASSERT_TRUE(other) << other.error().text;
  const auto bad = pair.to_plain.put(pair.at_planned.slice(0, 64), other->at(1024)).wait(20s);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().code, Code::timeout) << bad.error().text;
  EXPECT_EQ(static_cast<const unsigned char*>(pair.theirs.data())[1024], 2);
}

TEST(CxiOptions, AFaultThatACassiniDoesNotKnowIsRefused) {
  const auto node = open_on_cassini({{"faults", "gone=5"}});
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, Code::unsupported);
  EXPECT_NE(node.error().text.find("gone"), std::string::npos) << node.error().text;
}

TEST(CxiOptions, StrictOpensTheReport) {
  const std::string nowhere = "/nonexistent/folder/report";
  const auto node = open_on_cassini({{"strict", "1"}, {"strict_report", nowhere}});
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().text.find(nowhere), std::string::npos) << node.error().text;
  EXPECT_TRUE(open_on_cassini({{"strict", "0"}, {"strict_report", nowhere}}));
}

}  // namespace
}  // namespace strait
