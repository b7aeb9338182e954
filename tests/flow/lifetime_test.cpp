// SPDX-License-Identifier: Apache-2.0
// Who owns what, and for how long: deadlines keep memory, dropping detaches, regions never free, fork ends every
// handle.
#include <sys/wait.h>

#include <thread>

#include "flow.hpp"
#include "process.hpp"

namespace strait::flow {
namespace {

int registrations(Node& node) {
  return info(node)["nics"][0]["counters"]["registrations"];
}

// Until what was dropped has drained: the progress thread sweeps, within milliseconds.
bool settles(const std::function<bool()>& done) {
  for (int i = 0; i < 400; ++i) {
    if (done()) return true;
    ::usleep(5000);
  }
  return false;
}

class Lifetime : public testing::Test {
 protected:
  Pair pair;
  Block source{pair.asker, "host", 65536, access::local};
};

TEST_F(Lifetime, ADeadlineKeepsTheMemory) {
  std::optional<Block> into;
  into.emplace(pair.owner, "soft:0", 4096, access::local);
  Operation receive = pair.near.receive(into->region.all());
  const auto start = std::chrono::steady_clock::now();
  auto early = receive.wait(30ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::timeout);
  auto revoked = into->region.revoke(20ms);
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, Code::timeout);
  EXPECT_NE(revoked.error().text.find("quarantined"), std::string::npos);
  auto freed = into->memory().free();
  ASSERT_FALSE(freed);
  EXPECT_EQ(freed.error().code, Code::again);
  EXPECT_NE(freed.error().text.find("still shared by 1 region"), std::string::npos) << freed.error().text;
  // A revoked region starts nothing new, but what is under way completes into it.
  EXPECT_FALSE(pair.near.send(into->region.slice(0, 8)).wait(1s));
  source.fill(pattern(1000, 4));
  ASSERT_TRUE(pair.far.send(source.region.slice(0, 1000)).wait(5s));
  auto late = receive.wait(5s);
  ASSERT_TRUE(late) << late.error().explain();
  EXPECT_EQ(into->read(0, 1000), pattern(1000, 4));
  ASSERT_TRUE(into->region.revoke(1s));
  EXPECT_TRUE(into->memory().free());
}

TEST_F(Lifetime, DroppingAnOperationDetachesIt) {
  Block into(pair.owner, "host", 4096, access::local);
  { Operation receive = pair.near.receive(into.region.slice(0, 4096)); }
  source.fill(pattern(4096, 5));
  ASSERT_TRUE(pair.far.send(source.region.slice(0, 4096)).wait(5s));  // it was not cancelled
  ASSERT_TRUE(into.region.revoke(5s));                                // waits for it, as for any other
  EXPECT_EQ(into.read(0, 4096), pattern(4096, 5));
}

TEST_F(Lifetime, DroppingARegionKeepsItsRegistrationUntilDrained) {
  Memory memory = pair.owner.allocate(4096, {.near = "soft:0"}).value();
  const int before = registrations(pair.owner);
  std::optional<Region> region = pair.owner.share(memory, access::all).value();
  EXPECT_EQ(registrations(pair.owner), before + 3);  // local, remote, signals
  { Operation receive = pair.near.receive(region->all()); }
  region.reset();
  EXPECT_EQ(info(pair.owner)["counters"]["regions_draining"], 1);
  auto freed = memory.free();
  ASSERT_FALSE(freed);
  EXPECT_EQ(freed.error().code, Code::again);
  source.fill(pattern(4096, 6));
  ASSERT_TRUE(pair.far.send(source.region.slice(0, 4096)).wait(5s));
  EXPECT_TRUE(settles([&] { return info(pair.owner)["counters"]["regions_draining"] == 0; }));
  std::vector<std::uint8_t> bytes(4096);
  ASSERT_TRUE(pair.owner.copy(bytes.data(), memory.data(), 4096));
  EXPECT_EQ(bytes, pattern(4096, 6));
  ASSERT_TRUE(memory.free());
  EXPECT_EQ(registrations(pair.owner), before);
}

TEST_F(Lifetime, DroppedMemoryGoesWithItsLastOperation) {
  const auto used = [&] { return info(pair.owner)["counters"]["memory_soft"]["frees"].get<int>(); };
  std::optional<Block> into;
  into.emplace(pair.owner, "soft:0", 4096, access::local);
  { Operation receive = pair.near.receive(into->region.all()); }
  const int before = used();
  into.reset();  // region and memory, while the receive is under way
  EXPECT_EQ(used(), before);
  ASSERT_TRUE(pair.far.send(source.region.slice(0, 4096)).wait(5s));
  EXPECT_TRUE(settles([&] { return used() == before + 1; }));
}

TEST_F(Lifetime, ARegionNeverFreesTheMemory) {
  std::vector<std::uint8_t> own = pattern(100000, 7);
  { Region region = pair.owner.share(own.data(), own.size(), access::all).value(); }
  EXPECT_EQ(own, pattern(100000, 7));
  Memory memory = pair.owner.allocate(65536, {.near = "soft:0"}).value();
  ASSERT_TRUE(pair.owner.copy(memory.data(), own.data(), 65536));
  { Region region = pair.owner.share(memory, access::all).value(); }
  std::vector<std::uint8_t> back(65536);
  ASSERT_TRUE(pair.owner.copy(back.data(), memory.data(), 65536));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), own.begin()));
}

TEST_F(Lifetime, SharingAgainReusesTheRegistration) {
  Memory memory = pair.owner.allocate(1 << 20, {.near = "soft:0"}).value();
  const auto exports = [&] { return info(pair.owner)["counters"]["memory_soft"]["exports"].get<int>(); };
  const int before = exports();
  Region first = pair.owner.share(memory, access::local).value();
  const int with_one = registrations(pair.owner);
  const int once = exports() - before;  // two where the NIC wants the pages behind a dma-buf as well
  std::vector<Region> more;
  for (int i = 0; i < 10; ++i) more.push_back(pair.owner.share(memory, access::local).value());
  EXPECT_EQ(registrations(pair.owner), with_one);
  more.push_back(pair.owner.share(memory, access::remote_read).value());
  EXPECT_EQ(registrations(pair.owner), with_one + 1);  // the peers' key is the region's own
  EXPECT_EQ(exports(), before + 2 * once) << "and once more for that key";
  EXPECT_EQ(info(pair.owner)["counters"]["memory_soft"]["live_fds"], 0) << "closed once the NIC has registered it";
}

TEST_F(Lifetime, ClosingALaneEndsWhatIsUnderWay) {
  Memory memory = pair.owner.allocate(4096).value();
  std::optional<Peer> near = std::move(pair.near);
  std::optional<Region> region = pair.owner.share(memory, access::local).value();
  Operation receive = near->receive(region->all());
  receive.detach();
  near.reset();
  EXPECT_TRUE(region->revoke(1s));
  EXPECT_TRUE(memory.free());
  region.reset();
}

TEST_F(Lifetime, ClosingANodeLeavesShellsThatSaySo) {
  Node node = Node::open(settings()).value();
  std::optional<Peer> peer = node.connect(pair.owner.address()).value();
  std::optional<Lane> lane = peer->lane().value();
  Memory memory = node.allocate(4096, {.near = "soft:0"}).value();
  Region region = node.share(memory, access::local).value();
  Operation receive = peer->receive(region.all());
  const strait_slice slice = region.all().raw;
  { Node closing = std::move(node); }
  auto done = receive.wait(1s);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::gone);
  auto send = lane->send(Slice{slice}).wait(1s);
  ASSERT_FALSE(send);
  EXPECT_EQ(send.error().code, Code::gone);
  EXPECT_NE(send.error().text.find("was closed"), std::string::npos) << send.error().text;
  EXPECT_FALSE(region.revoke(1s));
  EXPECT_FALSE(peer->lookup("x", 1s));
  EXPECT_TRUE(memory.free());  // the application's to the end
}

TEST_F(Lifetime, NothingIsLeftAfterManyRounds) {
  const int fds = settled_fds();
  const int keys = registrations(pair.owner);
  for (int i = 0; i < 50; ++i) {
    Block block(pair.owner, i % 2 == 0 ? "soft:0" : "host", 4096, access::all);
    Published name = pair.owner.publish("round", block.region).value();
    Target target = pair.far.lookup("round").value();
    ASSERT_TRUE(pair.far.put(source.region.slice(0, 64), target.at(0), {.signal = 0}).wait(5s));
    if (i % 5 != 0) continue;
    ASSERT_TRUE(pair.far.lane().value().put(source.region.slice(0, 64), target.at(0)).wait(5s));
  }
  EXPECT_EQ(registrations(pair.owner), keys);
  EXPECT_TRUE(settles([&] { return open_fds() == fds; })) << open_fds() << ", not " << fds;
}

TEST_F(Lifetime, AfterForkEveryHandleIsDeadInTheChild) {
  Block block(pair.owner, "host", 4096, access::all);
  Published name = pair.owner.publish("block", block.region).value();
  Target target = pair.far.lookup("block").value();
  Lane lane = pair.far.lane().value();
  Operation receive = pair.near.receive(block.region.slice(2048, 1024));
  const std::string address = pair.owner.address();
  const auto check = [&](Process::Wire wire) {
    const auto dead = [](const auto& result) {
      EXPECT_FALSE(result);
      if (result) return;
      EXPECT_EQ(result.error().code, Code::gone) << result.error().text;
      EXPECT_NE(result.error().text.find("belongs to the parent process"), std::string::npos) << result.error().text;
    };
    dead(lane.put(source.region.slice(0, 8), target.at(0)).wait(1s));
    dead(pair.far.fetch_add(target.at(0), 1).wait(1s));
    dead(receive.wait(1s));
    dead(lane.flush(1s));
    dead(pair.far.lookup("block", 1s));
    dead(pair.owner.allocate(4096));
    dead(pair.asker.connect(address));
    dead(block.region.signal(0).read());
    dead(block.region.revoke(1s));
    dead(pair.owner.info());
    // Closing them hangs on nothing and hurts nobody.
    { const Lane closing = std::move(lane); }
    { const Block closing = std::move(block); }
#ifndef STRAIT_UNDER_TSAN  // which cannot start threads in the child of a program with threads
    // A new Node works here, and the parent's still works for it.
    Node own = Node::open(settings()).value();
    Peer peer = own.connect(address).value();
    Block mine(own, "soft:0", 4096, access::local);
    mine.fill(pattern(512, 8));
    Target again = peer.lookup("block").value();
    EXPECT_TRUE(peer.put(mine.region.slice(0, 512), again.at(0)).wait(5s));
#endif
    wire.say("done");
    (void)wire.hear();
  };
  Process child(check);
  EXPECT_EQ(child.wire().hear(), "done");
#ifndef STRAIT_UNDER_TSAN
  EXPECT_EQ(block.read(0, 512), pattern(512, 8));
#endif
  EXPECT_EQ(child.finish(), 0);
  // The parent's handles never noticed.
  EXPECT_TRUE(lane.put(source.region.slice(0, 8), target.at(0)).wait(5s));
}

}  // namespace
}  // namespace strait::flow
