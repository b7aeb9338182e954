// SPDX-License-Identifier: Apache-2.0
// Two processes: everything again across a process boundary, and peers that die, freeze, or never answer.
#include "process.hpp"

#include "flow.hpp"

namespace strait::flow {
namespace {

using Clock = std::chrono::steady_clock;

// The owner: publishes "block", says where it listens, and checks what it is told to check.
void own(Process::Wire wire, const std::string& kind) {
  Node node = Node::open(settings()).value();
  Block block(node, kind, 1 << 20, access::all);
  block.fill(pattern(1 << 20, 1));
  Published name = node.publish("block", block.region).value();
  wire.say(node.address());
  Peer peer = node.accept(10s).value();
  Operation receive = peer.receive(block.region.slice(512 << 10, 64 << 10));
  wire.say("ready");
  for (;;) {
    const std::string line = wire.hear();
    if (line == "signal") {
      auto seen = block.region.signal(0).wait_until_at_least(1, 5s);
      wire.say(seen && block.read(0, 300000) == pattern(300000, 2) ? "verified" : "wrong");
    } else if (line == "word") {
      wire.say(std::to_string(block.word(1 << 19)));
    } else if (line == "message") {
      auto done = receive.wait(5s);
      wire.say(done && done->imm == 99u && block.read(512 << 10, done->bytes) == pattern(40000, 3) ? "verified"
                                                                                                   : "wrong");
    } else {
      return;
    }
  }
}

class Processes : public testing::TestWithParam<const char*> {};

TEST_P(Processes, EveryOperationArrives) {
  const int fds = open_fds();
  {
    Process owner([](Process::Wire wire) { own(wire, GetParam()); });
    const std::string address = owner.wire().hear();
    Node node = Node::open(settings()).value();
    Peer peer = node.connect(address).value();
    ASSERT_EQ(owner.wire().hear(), "ready");
    EXPECT_NE(peer.name().find(std::to_string(owner.pid())), std::string::npos) << peer.name();
    EXPECT_NE(peer.path().find("process " + std::to_string(owner.pid())), std::string::npos) << peer.path();
    Target target = peer.lookup("block").value();
    Block local(node, GetParam(), 1 << 20, access::local);

    ASSERT_TRUE(peer.get(local.region.all(), target.at(0)).wait(5s));
    EXPECT_EQ(local.read(0, 1 << 20), pattern(1 << 20, 1));

    local.fill(pattern(300000, 2));
    auto put = peer.put(local.region.slice(0, 300000), target.at(0), {.signal = 0}).wait(5s);
    ASSERT_TRUE(put) << put.error().explain();
    owner.wire().say("signal");
    EXPECT_EQ(owner.wire().hear(), "verified");

    Lane lane = peer.lane().value();
    std::vector<std::uint8_t> zero(8);
    local.fill(zero);
    ASSERT_TRUE(lane.put(local.region.slice(0, 8), target.at(1 << 19)).wait(5s));
    for (std::uint64_t i = 0; i < 100; ++i)
      EXPECT_EQ(lane.fetch_add(target.at(1 << 19), 2).wait(5s).value().value, 2 * i);
    EXPECT_EQ(lane.compare_swap(target.at(1 << 19), 200, 7).wait(5s).value().value, 200u);
    owner.wire().say("word");
    EXPECT_EQ(owner.wire().hear(), "7");

    local.fill(pattern(40000, 3));
    ASSERT_TRUE(peer.send(local.region.slice(0, 40000), {.imm = 99}).wait(5s));
    owner.wire().say("message");
    EXPECT_EQ(owner.wire().hear(), "verified");
    EXPECT_EQ(owner.finish(), 0);
  }
  EXPECT_EQ(open_fds(), fds);
}
INSTANTIATE_TEST_SUITE_P(Memory, Processes, testing::Values("host", "soft:0"),
                         [](const auto& kind) { return std::string(kind.param).substr(0, 4); });

class Trouble : public testing::Test {
 protected:
  void open(const NodeOptions& options = settings()) {
    address = owner.wire().hear();
    node.emplace(Node::open(options).value());
    fds = open_fds();
    registrations = info(*node)["nics"][0]["counters"]["registrations"];
    peer.emplace(node->connect(address).value());
    ASSERT_EQ(owner.wire().hear(), "ready");
    target = peer->lookup("block").value();
    local.emplace(*node, "soft:0", 1 << 20, access::local);
  }
  // Nothing of the peer that is gone stays behind.
  void expect_clean() {
    local.reset();
    peer.reset();
    (void)node->poll();
    for (int i = 0; i < 200 && open_fds() != fds; ++i) {
      ::usleep(5000);
      (void)node->poll();
    }
    EXPECT_EQ(open_fds(), fds);
    EXPECT_EQ(info(*node)["nics"][0]["counters"]["registrations"], registrations);
  }
  Process owner{[](Process::Wire wire) { own(wire, "soft:0"); }};
  std::string address;
  std::optional<Node> node;
  std::optional<Peer> peer;
  std::optional<Block> local;
  Target target;
  int fds = 0;
  int registrations = 0;
};

TEST_F(Trouble, PeerKilledInTheMiddle) {
  open();
  Lane lane = peer->lane(64).value();
  std::vector<Operation> puts;
  bool killed = false;
  Error error;
  const auto start = Clock::now();
  while (Clock::now() - start < 10s && error.text.empty()) {
    Operation put = lane.put(local->region.slice(0, 1 << 18), target.at(0));
    if (!put.posted()) {
      auto refused = put.wait(0s);
      if (refused.error().code != Code::again) error = refused.error();
    } else {
      puts.push_back(std::move(put));
    }
    if (puts.size() < 32) continue;
    if (!killed) owner.kill_now();
    killed = true;
    for (auto& op : puts) {
      auto done = op.wait(3s);
      if (!done && error.text.empty()) error = done.error();
      if (!done) {
        EXPECT_NE(done.error().code, Code::timeout) << done.error().text;
      }
    }
    puts.clear();
  }
  EXPECT_LT(Clock::now() - start, 6s);
  EXPECT_EQ(error.code, Code::gone) << error.explain();
  EXPECT_NE(error.text.find("is gone"), std::string::npos) << error.text;
  auto lookup = peer->lookup("block", 1s);
  ASSERT_FALSE(lookup);
  EXPECT_EQ(lookup.error().code, Code::gone) << lookup.error().text;
  { const Lane closing = std::move(lane); }
  expect_clean();
}

TEST_F(Trouble, PeerFrozenInTheMiddle) {
  open(settings({{"grant", "ring"}}));  // otherwise nobody waits for the peer
  owner.signal(SIGSTOP);
  ::usleep(20'000);
  // A deadline holds, and the operation keeps its memory.
  auto start = Clock::now();
  Operation put = peer->put(local->region.slice(0, 4096), target.at(0));
  auto waited = put.wait(200ms);
  EXPECT_GE(Clock::now() - start, 200ms);
  EXPECT_LT(Clock::now() - start, 1s);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Code::timeout) << waited.error().text;
  EXPECT_NE(waited.error().text.find("still under way and keeps its memory"), std::string::npos);
  start = Clock::now();
  auto revoked = local->region.revoke(50ms);
  EXPECT_LT(Clock::now() - start, 1s);
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, Code::timeout);
  EXPECT_NE(revoked.error().text.find("quarantined"), std::string::npos) << revoked.error().text;
  EXPECT_NE(revoked.error().text.find(address), std::string::npos) << revoked.error().text;
  // Nobody answers on the rendezvous either.
  start = Clock::now();
  auto lookup = peer->lookup("block", 200ms);
  EXPECT_LT(Clock::now() - start, 1s);
  ASSERT_FALSE(lookup);
  EXPECT_EQ(lookup.error().code, Code::timeout) << lookup.error().text;
  start = Clock::now();
  auto another = node->connect(address, {.deadline = 300ms});
  EXPECT_LT(Clock::now() - start, 2s);
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, Code::timeout) << another.error().text;
  // After all retries the NIC gives up by itself, and says so.
  waited = put.wait(6s);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().syndrome, 0x15u) << waited.error().text;
  EXPECT_NE(waited.error().text.find("did not answer"), std::string::npos) << waited.error().text;
  ASSERT_TRUE(local->region.revoke(1s));  // drained now
  owner.signal(SIGCONT);
  owner.kill_now();
  expect_clean();
}

TEST_F(Trouble, NobodyThere) {
  open();
  owner.kill_now();
  const auto start = Clock::now();
  auto refused = node->connect(address, {.deadline = 2s});
  EXPECT_LT(Clock::now() - start, 2s);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find(address), std::string::npos) << refused.error().text;
  EXPECT_FALSE(node->connect("127.0.0.1", {.deadline = 1s}));
  EXPECT_FALSE(node->connect("no port:here:", {.deadline = 1s}));
  EXPECT_FALSE(node->connect("", {.deadline = 1s}));
  expect_clean();
}

TEST(Accepting, LearnsOfTheEnd) {
  // The other way round: this process accepts, the one that connected is killed.
  Process asker([](Process::Wire wire) {
    Node node = Node::open(settings()).value();
    Peer peer = node.connect(wire.hear()).value();
    wire.say("connected");
    (void)wire.hear();
  });
  Node here = Node::open(settings()).value();
  Block into(here, "host", 4096, access::local);
  const int before = open_fds();
  asker.wire().say(here.address());
  Peer from = here.accept(5s).value();
  ASSERT_EQ(asker.wire().hear(), "connected");
  Operation receive = from.receive(into.region.all());
  asker.kill_now();
  const auto start = Clock::now();
  auto done = receive.wait(5s);
  EXPECT_LT(Clock::now() - start, 3s);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::gone) << done.error().explain();
  EXPECT_NE(done.error().text.find("is gone"), std::string::npos) << done.error().text;
  { const Peer closing = std::move(from); }
  for (int i = 0; i < 200 && open_fds() > before; ++i) {
    ::usleep(5000);
    (void)here.poll();
  }
  EXPECT_LE(open_fds(), before);
}

}  // namespace
}  // namespace strait::flow
