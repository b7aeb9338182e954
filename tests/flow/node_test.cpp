// SPDX-License-Identifier: Apache-2.0
// Opening Nodes: options, ports, secrets, limits; progress in its three modes; what a Node says about itself.
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <mutex>
#include <thread>

#include "flow.hpp"
#include "process.hpp"

namespace strait::flow {
namespace {

std::string refusal(const Result<Node>& node) {
  return node ? std::string() : node.error().explain();
}

TEST(Opening, RefusesUnknownOptionsAndBadValues) {
  const int fds = open_fds();
  auto unknown = Node::open(settings({{"lane_dept", "8"}}));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::invalid);
  EXPECT_NE(refusal(unknown).find("lane_dept"), std::string::npos) << refusal(unknown);
  EXPECT_NE(refusal(unknown).find("lane_depth"), std::string::npos) << refusal(unknown);
  EXPECT_FALSE(Node::open(settings({{"progress", "magic"}})));
  EXPECT_FALSE(Node::open(settings({{"deadline", "soon"}})));
  auto nics = Node::open(settings({{"nics", "mlx5_0"}}));
  ASSERT_FALSE(nics);
  EXPECT_NE(refusal(nics).find("mlx5_0"), std::string::npos) << refusal(nics);
  EXPECT_FALSE(Node::open(settings({{"accelerators", "soft:x"}})));
  EXPECT_FALSE(Node::open(settings({{"accelerators", "tpu"}})));
  auto counted = Node::open(settings({{"accelerators", "cuda:2"}}));
  ASSERT_FALSE(counted);
  EXPECT_NE(refusal(counted).find("CUDA_VISIBLE_DEVICES"), std::string::npos) << refusal(counted);
  auto comma = Node::open(settings({{"capture", "a,b.pcapng"}}));
  ASSERT_FALSE(comma);
  EXPECT_NE(refusal(comma).find("a,b.pcapng"), std::string::npos) << refusal(comma);
  auto library = Node::open(settings({{"soft_library", "/nowhere/libstrait-soft.so"}}));
  ASSERT_FALSE(library);
  EXPECT_NE(refusal(library).find("/nowhere/libstrait-soft.so"), std::string::npos) << refusal(library);
  EXPECT_EQ(open_fds(), fds);
}

TEST(Opening, WarnsOfUnknownVariables) {
  ::setenv("STRAIT_LANE_DEPT", "8", 1);
  Node node = Node::open(settings()).value();
  ::unsetenv("STRAIT_LANE_DEPT");
  const auto warnings = info(node)["warnings"];
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].get<std::string>().find("STRAIT_LANE_DEPT"), std::string::npos);
}

TEST(Opening, SaysThatThePortIsTaken) {
  Node first = Node::open(settings()).value();
  EXPECT_EQ(first.address().rfind("127.0.0.1:", 0), 0u) << "the rendezvous listens on loopback unless told otherwise";
  const int fds = open_fds();
  auto second = Node::open(settings({{"listen", first.address()}}));
  ASSERT_FALSE(second);
  EXPECT_NE(refusal(second).find(first.address()), std::string::npos) << refusal(second);
  EXPECT_NE(refusal(second).find("use"), std::string::npos) << refusal(second);
  EXPECT_EQ(open_fds(), fds);
}

TEST(Opening, AnotherSecretIsNotLetIn) {
  Node owner = Node::open(settings()).value();
  Node stranger = Node::open(settings({{"secret", "another secret altogether"}})).value();
  const int fds = open_fds();
  auto peer = stranger.connect(owner.address(), {.deadline = 2s});
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().code, Code::denied) << peer.error().text;
  for (int i = 0; i < 100 && open_fds() != fds; ++i) ::usleep(5000);
  EXPECT_EQ(open_fds(), fds);
}

// Descriptors run out at every possible place of opening and sharing, one after the other.
// The dynamic loader, which comes first where the software devices are not loaded yet, has its own words for it.
bool names_the_limit(const Error& error) {
  if (error.text.starts_with("cannot load ")) return error.text.find("Too many open files") != std::string::npos;
  return error.text.find("EMFILE (Too many open files)") != std::string::npos &&
         error.remedy.find("`ulimit -n`") != std::string::npos;
}

TEST(Opening, RunsOutOfDescriptorsWithoutLosingAny) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int fds = open_fds();
  int refused = 0;
  bool opened = false;
  for (int room = 0; room < 60 && !opened; ++room) {
    // open_fds counts the descriptor it reads with.
    const rlimit tight{static_cast<rlim_t>(fds - 1 + room), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    auto node = Node::open(settings());
    if (node) {
      auto memory = node->allocate(4096, {.near = "soft:0"});
      auto region = memory ? node->share(*memory, access::all) : Result<Region>(memory.error());
      opened = static_cast<bool>(region);
      if (!region) {
        ++refused;
        EXPECT_TRUE(names_the_limit(region.error())) << room << ": " << region.error().explain();
      }
    } else {
      ++refused;
      EXPECT_TRUE(names_the_limit(node.error())) << room << ": " << node.error().explain();
    }
    { const auto closing = std::move(node); }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(open_fds(), fds) << "room for " << room;
  }
  EXPECT_TRUE(opened);
  EXPECT_GT(refused, 5);
}

TEST(Saying, InfoListsDevicesOptionsAndCounters) {
  Node node = Node::open(settings({{"nics", "soft:2"}, {"accelerators", "soft:3"}, {"lane_depth", "64"}})).value();
  const auto all = info(node);
  EXPECT_EQ(all["version"], strait_version());
  EXPECT_EQ(all["address"], node.address());
  EXPECT_EQ(all["progress"], "thread");
  ASSERT_EQ(all["accelerators"].size(), 3u);
  EXPECT_EQ(all["accelerators"][2]["name"], "soft:2");
  EXPECT_EQ(all["accelerators"][0]["software"], true);
  EXPECT_EQ(all["accelerators"][0]["memory_bytes"], 64 << 20);
  ASSERT_EQ(all["nics"].size(), 2u);
  EXPECT_EQ(all["nics"][1]["name"], "strait1");
  bool secret_masked = false;
  for (const auto& option : all["options"]) {
    if (option["name"] == "secret") secret_masked = option["value"] == "(secret)";
    if (option["name"] == "lane_depth") {
      EXPECT_EQ(option["value"], "64");
      EXPECT_EQ(option["origin"], "caller");
      EXPECT_EQ(option["default"], "256");
    }
  }
  EXPECT_TRUE(secret_masked);
  EXPECT_EQ(all.dump().find("flow tests know"), std::string::npos);
}

// One side wants packets: both sides use them, and each says whose wish it was.
TEST(Saying, WhyTheCarrierIsWhatItIsOnBothSides) {
  const auto with = [](const char* carrier) {
    return settings({{"nics", "soft:1"}, {"grant", "ring"}, {"roce_address", "loopback"}, {"carrier", carrier}});
  };
  Pair pair(with("auto"), with("roce"));
  Block theirs(pair.owner, "host", 4096, access::all), ours(pair.asker, "host", 4096, access::all);
  const auto mine = pair.asker.publish("ours", ours.region);
  const auto yours = pair.owner.publish("theirs", theirs.region);
  ASSERT_TRUE(mine && yours);
  struct Side {
    Peer& peer;
    Block& from;
    const char* name;
    const char* reason;
  };
  for (const auto& [peer, from, name, reason] : {Side{pair.far, ours, "theirs", "(asked for by option carrier)"},
                                                 Side{pair.near, theirs, "ours", "(asked for by the peer)"}}) {
    Lane lane = peer.lane().value();
    EXPECT_NE(lane.path().find("RoCEv2 from 127."), std::string::npos) << lane.path();
    EXPECT_NE(lane.path().find(reason), std::string::npos) << lane.path();
    const auto done = lane.put(from.region.all(), peer.lookup(name).value().at(0)).wait(10s);
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_NE(std::string(done->path.c_str()).find(reason), std::string::npos) << done->path.c_str();
  }
}

struct Listener {
  static void hear(void* context, int level, const char* text) {
    auto& self = *static_cast<Listener*>(context);
    const std::lock_guard lock(self.mutex);
    self.lines.emplace_back(std::to_string(level) + " " + text);
  }
  [[nodiscard]] std::vector<std::string> with(const std::string& part) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> found;
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) found.push_back(line);
    return found;
  }
  NodeOptions options(const char* level) {
    NodeOptions all = settings({{"log", level}, {"grant", "ring"}});
    all.log = hear;
    all.log_context = this;
    return all;
  }
  std::mutex mutex;
  std::vector<std::string> lines;
};

// Once per cause, each at its level.
TEST(Saying, TheLogTellsWhatBecameOfPeersAndLanes) {
  Listener owner;
  Listener asker;
  {
    Pair pair(owner.options("debug"), asker.options("debug"));
    EXPECT_EQ(asker.with("2 connected to " + pair.owner.address()).size(), 1u);
    EXPECT_EQ(owner.with(" has connected: ").size(), 1u);
    Block target(pair.owner, "host", 4096, access::all);
    Block local(pair.asker, "host", 4096, access::local);
    Published published = pair.owner.publish("block", target.region).value();
    Place at = pair.far.lookup("block").value().at(0);
    {
      Lane lane = pair.far.lane().value();
      EXPECT_EQ(asker.with("3 another lane to ").size(), 1u);
      at.target.rkey ^= 0x5500;
      for (int i = 0; i < 3; ++i) EXPECT_FALSE(lane.put(local.region.slice(0, 8), at).wait(5s));
      const auto failed = asker.with("was refused by the owner's NIC");
      ASSERT_EQ(failed.size(), 1u) << "said once, not for every operation that fails";
      EXPECT_EQ(failed[0].substr(0, 9), "1 the put");
    }
    { const Peer closing = std::move(pair.far); }
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (owner.with("has gone").empty() && std::chrono::steady_clock::now() < until) ::usleep(1000);
    EXPECT_EQ(owner.with(" has gone: its connection ended").size(), 1u);
  }
  Listener quiet;
  { const Pair pair(settings(), quiet.options("error")); }
  EXPECT_TRUE(quiet.lines.empty()) << quiet.lines.front();
}

TEST(Saying, ARegionTellsItsPath) {
  Node node = Node::open(settings()).value();
  Block block(node, "soft:0", 65536, access::remote_read | access::remote_write);
  const auto path = nlohmann::json::parse(block.region.path());
  EXPECT_EQ(path["kind"], "soft:0");
  EXPECT_EQ(path["recognised_by"], "soft");
  EXPECT_EQ(path["length"], 65536);
  EXPECT_EQ(path["export"]["way"], "dma-buf fd");
  EXPECT_EQ(path["keys"][0]["nic"], info(node)["nics"][0]["name"]);
  EXPECT_TRUE(path["keys"][0].contains("rkey"));
  EXPECT_FALSE(path["ways"].empty());
  EXPECT_TRUE(path["chosen"].is_string());
  Block host(node, "host", 4096, access::local);
  const auto plain = nlohmann::json::parse(host.region.path());
  EXPECT_EQ(plain["kind"], "host");
  EXPECT_FALSE(plain["keys"][0].contains("rkey"));
}

class Staged : public testing::Test {
 protected:
  Pair pair{settings(), settings({{"accelerator_export", "0"}, {"allow_staging", "1"}})};
  Block target{pair.owner, "host", 65536, access::all};
  Published name = pair.owner.publish("block", target.region).value();
  Target place = pair.far.lookup("block").value();
};

TEST_F(Staged, BytesGoThroughABounceBuffer) {
  Block local(pair.asker, "soft:0", 65536, access::local);
  local.fill(pattern(65536, 1));
  ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(5s));
  EXPECT_EQ(target.read(0, 65536), pattern(65536, 1));
  target.fill(pattern(65536, 2));
  auto get = pair.far.get(local.region.all(), place.at(0)).wait(5s);
  ASSERT_TRUE(get) << get.error().explain();
  EXPECT_EQ(local.read(0, 65536), pattern(65536, 2));
  Operation receive = pair.far.receive(local.region.slice(1000, 5000));
  ASSERT_TRUE(pair.near.send(target.region.slice(0, 3000)).wait(5s));
  ASSERT_TRUE(receive.wait(5s));
  EXPECT_EQ(local.read(1000, 3000), target.read(0, 3000));
}

TEST_F(Staged, ZeroCopyCanBeRequired) {
  Block local(pair.asker, "soft:0", 4096, access::local);
  auto put = pair.far.put(local.region.all(), place.at(0), {.require = zero_copy}).wait(1s);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::unsupported);
  EXPECT_NE(put.error().text.find("zero copy was required"), std::string::npos) << put.error().text;
  Block host(pair.asker, "host", 4096, access::local);
  EXPECT_TRUE(pair.far.put(host.region.all(), place.at(0), {.require = zero_copy}).wait(5s));
}

TEST_F(Staged, CannotBeATarget) {
  Memory memory = pair.asker.allocate(4096, {.near = "soft:0"}).value();
  auto region = pair.asker.share(memory, access::remote_write);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, Code::unsupported);
  EXPECT_NE(region.error().text.find("peers cannot be given access"), std::string::npos) << region.error().text;
}

TEST(Staging, IsRefusedUnlessAllowed) {
  Node node = Node::open(settings({{"accelerator_export", "0"}})).value();
  Memory memory = node.allocate(4096, {.near = "soft:0"}).value();
  auto region = node.share(memory, access::local);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, Code::unsupported);
  EXPECT_FALSE(region.error().text.empty());
}

TEST(Progress, AnIdleNodeSleeps) {
  Pair pair;
  Block target(pair.owner, "host", 4096, access::all);
  Published name = pair.owner.publish("block", target.region).value();
  Block local(pair.asker, "host", 4096, access::local);
  ASSERT_TRUE(pair.far.put(local.region.all(), pair.far.lookup("block").value().at(0)).wait(5s));
  std::this_thread::sleep_for(50ms);  // until both have settled
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(1000ms);
  ::getrusage(RUSAGE_SELF, &after);
  const auto micros = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  const long used = micros(after.ru_utime) + micros(after.ru_stime) - micros(before.ru_utime) - micros(before.ru_stime);
  EXPECT_LT(used, 20'000) << "two idle Nodes used this many microseconds of a second: each may use 1 % of a core";
  // And still wakes up when something comes.
  EXPECT_TRUE(pair.far.put(local.region.all(), pair.far.lookup("block").value().at(0)).wait(5s));
}

TEST(Progress, ByTheCaller) {
  Process owner([](Process::Wire wire) {
    Node node = Node::open(settings({{"progress", "caller"}})).value();
    Block block(node, "soft:0", 65536, access::all);
    Published name = node.publish("block", block.region).value();
    wire.say(node.address());
    Peer peer = node.accept(10s).value();
    auto seen = block.region.signal(0).wait_until_at_least(1, 10s);  // drives the node itself
    wire.say(seen && block.read(0, 65536) == pattern(65536, 3) ? "verified" : "wrong");
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (block.region.signal(0).read().value() < 2 && std::chrono::steady_clock::now() < until) (void)node.poll();
    wire.say(block.region.signal(0).read().value() == 2 ? "verified" : "wrong");
    (void)wire.hear();
  });
  Node node = Node::open(settings({{"progress", "caller"}})).value();
  Peer peer = node.connect(owner.wire().hear()).value();
  Block local(node, "host", 65536, access::local);
  local.fill(pattern(65536, 3));
  Target target = peer.lookup("block").value();
  ASSERT_TRUE(peer.put(local.region.all(), target.at(0), {.signal = 0}).wait(5s));
  EXPECT_EQ(owner.wire().hear(), "verified");
  ASSERT_TRUE(peer.put(local.region.all(), target.at(0), {.signal = 0}).wait(5s));
  EXPECT_EQ(owner.wire().hear(), "verified");
  EXPECT_EQ(owner.finish(), 0);
}

TEST(Progress, ByADescriptor) {
  Process asker([](Process::Wire wire) {
    Node node = Node::open(settings()).value();
    Peer peer = node.connect(wire.hear()).value();
    Block local(node, "host", 65536, access::local);
    local.fill(pattern(65536, 4));
    Target target = peer.lookup("block").value();
    for (int i = 0; i < 20; ++i) {
      ::usleep(2000);
      EXPECT_TRUE(peer.put(local.region.all(), target.at(0), {.signal = 0}).wait(5s));
    }
    (void)wire.hear();
  });
  Node node = Node::open(settings({{"progress", "eventfd"}})).value();
  Block block(node, "soft:0", 65536, access::all);
  Published name = node.publish("block", block.region).value();
  std::int32_t fd = -1;
  ASSERT_EQ(strait_node_event_fd(node.raw(), &fd, nullptr), STRAIT_OK);
  asker.wire().say(node.address());
  const auto until = std::chrono::steady_clock::now() + 10s;
  int sleeps = 0;
  while (block.region.signal(0).read().value() < 20 && std::chrono::steady_clock::now() < until) {
    if (node.poll() > 0) continue;
    if (strait_node_arm(node.raw()) == 0) continue;
    pollfd ready{fd, POLLIN, 0};
    ++sleeps;
    ASSERT_GT(::poll(&ready, 1, 5000), 0) << "slept through a put";
  }
  EXPECT_EQ(block.region.signal(0).read().value(), 20u);
  EXPECT_GT(sleeps, 5);
  EXPECT_EQ(asker.finish(), 0);
  Node threaded = Node::open(settings()).value();
  EXPECT_EQ(strait_node_event_fd(threaded.raw(), &fd, nullptr), STRAIT_INVALID);
}

TEST(Threads, ShareThePeersLaneAndOwnTheirOwn) {
  Pair pair;
  Block target(pair.owner, "host", 1 << 16, access::all);
  Published name = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  target.fill(std::vector<std::uint8_t>(64));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Lane own = pair.far.lane(16).value();
      for (int i = 0; i < 200; ++i) {
        auto shared = pair.far.fetch_add(place.at(0), 1).wait(20s);
        ASSERT_TRUE(shared) << shared.error().explain();
        auto mine = own.fetch_add(place.at(8 + 8 * static_cast<std::uint64_t>(t)), 1).wait(20s);
        ASSERT_TRUE(mine) << mine.error().explain();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(target.word(0), 800u);
  for (std::size_t t = 0; t < 4; ++t) EXPECT_EQ(target.word(8 + 8 * t), 200u);
}

#ifndef STRAIT_UNDER_TSAN  // two gibibytes of watched accesses take minutes
// More than 2^31 bytes in one put and one get, cut into several work requests. One small file is mapped over and over,
// so that the test needs addresses and not memory.
TEST(Long, MoreThanTwoGibibytesAtOnce) {
  constexpr std::size_t kTile = std::size_t{64} << 20;
  constexpr std::size_t kTiles = 33;  // 2.06 GiB
  const auto tiled = [](int fd) {
    auto* base = static_cast<std::uint8_t*>(
        ::mmap(nullptr, kTile * kTiles, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t i = 0; i < kTiles; ++i) {
      EXPECT_NE(::mmap(base + i * kTile, kTile, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
    }
    return base;
  };
  const int from_fd = ::memfd_create("from", MFD_CLOEXEC);
  const int to_fd = ::memfd_create("to", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(from_fd, kTile), 0);
  ASSERT_EQ(::ftruncate(to_fd, kTile), 0);
  std::uint8_t* from = tiled(from_fd);
  std::uint8_t* to = tiled(to_fd);
  const auto bytes = pattern(kTile, 11);
  std::memcpy(from, bytes.data(), kTile);
  {
    // The owner's engine may be busy for seconds before it gets to acknowledge anything.
    Pair pair(settings({{"ack_timeout", "10s"}}), settings({{"ack_timeout", "10s"}}));
    Region target = pair.owner.share(to, kTile * kTiles, access::all).value();
    Region local = pair.asker.share(from, kTile * kTiles, access::local).value();
    Published name = pair.owner.publish("long", target).value();
    Target place = pair.far.lookup("long").value();
    auto put = pair.far.put(local.all(), place.at(0), {.signal = 0}).wait(60s);
    ASSERT_TRUE(put) << put.error().explain();
    EXPECT_EQ(put->bytes, kTile * kTiles);
    EXPECT_EQ(target.signal(0).read().value(), 1u);
    EXPECT_EQ(std::memcmp(to, bytes.data(), kTile), 0);
    std::memset(from, 0, kTile);
    auto get = pair.far.get(local.all(), place.at(0)).wait(60s);
    ASSERT_TRUE(get) << get.error().explain();
    EXPECT_EQ(std::memcmp(from, bytes.data(), kTile), 0);
    EXPECT_FALSE(pair.far.send(local.all()).wait(1s));  // a message has one receive and cannot be cut
  }
  ::munmap(from, kTile * kTiles);
  ::munmap(to, kTile * kTiles);
  ::close(from_fd);
  ::close(to_fd);
}
#endif

}  // namespace
}  // namespace strait::flow
