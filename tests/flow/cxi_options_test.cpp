// SPDX-License-Identifier: Apache-2.0
// Options of a Node reach the software Cassini that it opens, and no other Node's: strict, strict_report, faults,
// cassini, cassini_moves, peer_memory and kernel_faults.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

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

// Memory of the software accelerator at one Node, and a put into it from another, as long as the move that the kernel
// makes in its middle.
Result<Done> put_into_what_moves(Node& owner, Node& asker) {
  constexpr std::size_t kMovedBytes = 256 * 1024;
  Memory theirs = owner.allocate(kMovedBytes, {.near = "soft:0"}).value();
  Region target = owner.share(theirs, access::all).value();
  const std::string path = target.path();
  EXPECT_NE(path.find("dma-buf, registered as such"), std::string::npos) << path;
  Memory mine = asker.allocate(kMovedBytes).value();
  std::memset(mine.data(), 5, kMovedBytes);
  const Region source = asker.share(mine, access::local).value();
  Peer to_owner = asker.connect(owner.address(), {.deadline = 20s}).value();
  const Target there = to_owner.redeem(target.ticket(access::all).value()).value();
  auto done = to_owner.lane().value().put(source.slice(0, kMovedBytes), there.at(0)).wait(20s);
  if (done) {
    std::vector<unsigned char> last(64);
    owner.copy(last.data(), static_cast<unsigned char*>(theirs.data()) + kMovedBytes - 64, 64).value();
    EXPECT_EQ(last, std::vector<unsigned char>(64, 5));
  }
  return done;
}

TEST(CxiOptions, MovesAndFaultsOfTheKernelAreTheNodesOwn) {
  const auto owner_of = [](const char* moves) {
    return open_on_cassini({{"reach", "dmabuf"}, {"kernel_faults", "move@64K"}, {"cassini_moves", moves}}).value();
  };
  Node torn = owner_of("tear_down"), mapped_again = owner_of("remap"), asker = open_on_cassini({}).value();
  const auto fails = put_into_what_moves(torn, asker);
  ASSERT_FALSE(fails);
  EXPECT_EQ(fails.error().syndrome, 0x13u) << fails.error().explain();
  const auto lands = put_into_what_moves(mapped_again, asker);
  EXPECT_TRUE(lands) << lands.error().explain();
}

// By default the machine has both vendors' drivers.
TEST(CxiOptions, PeerMemoryIsTheNodesOwn) {
  Node with = open_on_cassini({{"reach", "peermem"}}).value();
  Node without = open_on_cassini({{"reach", "peermem"}, {"peer_memory", "none"}}).value();
  for (Node* node : {&with, &without}) {
    const Memory memory = node->allocate(kRegionBytes, {.near = "soft:0"}).value();
    const auto region = node->share(memory, access::all);
    EXPECT_EQ(region.has_value(), node == &with) << (region ? "shared" : region.error().explain());
  }
}

// Two servers, two fabrics: nobody in one reaches the other.
TEST(CxiOptions, TwoServersOfCards) {
  const auto in = [](const std::string& server) {
    return open_on_cassini({{"nics", "cxi:soft0"}, {"cassini", "options-" + std::to_string(::getpid()) + "-" + server}})
        .value();
  };
  Node a = in("a"), neighbour = in("a"), apart = in("b");
  Memory memory = neighbour.allocate(kRegionBytes).value();
  Region target = neighbour.share(memory, access::all).value();
  for (Node* from : {&a, &apart}) {
    Memory mine = from->allocate(kRegionBytes).value();
    const Region source = from->share(mine, access::local).value();
    auto peer = from->connect(neighbour.address(), {.deadline = 20s});
    ASSERT_TRUE(peer) << peer.error().explain();
    const Target there = peer->redeem(target.ticket(access::all).value()).value();
    const auto put = peer->put(source.slice(0, 64), there.at(0)).wait(20s);
    EXPECT_EQ(put.has_value(), from == &a) << (put ? "arrived" : put.error().explain());
  }
}

TEST(CxiOptions, ANameWithACommaIsRefused) {
  const auto node = open_on_cassini({{"cassini", "a,b"}});
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, Code::invalid) << node.error().explain();
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
