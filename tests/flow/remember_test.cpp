// SPDX-License-Identifier: Apache-2.0
// Opening and closing devices, exporting, registering once, forgetting in time: each rule with the count that shows it.
// The software accelerator and the software NIC count every call; so does the provider beside this test.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <set>
#include <thread>

#include "counting_provider.h"
#include "flow.hpp"
#include "strait/plugin.h"

namespace strait::flow {
namespace {

counting_control& control() {
  static counting_control* const found = [] {
    void* const library = ::dlopen(STRAIT_COUNTING_PROVIDER, RTLD_NOW);
    const auto entry = reinterpret_cast<counting_control_entry>(::dlsym(library, COUNTING_CONTROL));
    return entry();
  }();
  return *found;
}

const strait_provider_ops* counting_ops() {
  void* const library = ::dlopen(STRAIT_COUNTING_PROVIDER, RTLD_NOW);
  return reinterpret_cast<strait_provider_entry>(::dlsym(library, STRAIT_PROVIDER_ENTRY))();
}

NodeOptions counted(std::vector<std::pair<std::string, std::string>> more = {}) {
  more.emplace_back("plugins", STRAIT_COUNTING_PROVIDER);
  return settings(std::move(more));
}

std::uint64_t cache_count(Node& node, const char* name) {
  return info(node)["cache"][name].get<std::uint64_t>();
}
std::uint64_t nic_registrations(Node& node, std::size_t nic = 0) {
  return info(node)["nics"][nic]["counters"]["registrations"].get<std::uint64_t>();
}

class Remember : public testing::Test {
 protected:
  void SetUp() override { control() = {}; }
  void TearDown() override { control() = {}; }
};

// ---- 1 and 2: opened eagerly, closed symmetrically

TEST_F(Remember, DevicesOpenWithTheNodeAndNotLater) {
  {
    Node node = Node::open(counted()).value();
    EXPECT_EQ(control().opens, 1u);
    const std::uint64_t calls = control().calls;
    EXPECT_EQ(calls, 3u) << "the driver and its two devices";
    Block block(node, "counted:0", 8192, access::all);
    block.fill(pattern(8192, 1));
    EXPECT_EQ(control().calls, calls) << "the first use opens nothing";
    EXPECT_EQ(control().opens, 1u);
  }
  EXPECT_EQ(control().closes, 1u);
}

TEST_F(Remember, AFaultAtEveryStepOfOpeningIsNamedAndLeavesNothing) {
  (void)Node::open(counted()).value();  // libraries are loaded once and stay
  const std::set<std::string> before = open_files();
  bool opened = false;
  std::uint64_t step = 1;
  for (; !opened; ++step) {
    ASSERT_LT(step, 20u);
    control() = {};
    control().fail_call = step;
    const auto node = Node::open(counted());
    opened = node.has_value();
    if (opened) break;
    const std::string& why = node.error().text;
    EXPECT_TRUE(why.find("injected fault") != why.npos || why.find("counted") != why.npos) << step << ": " << why;
    EXPECT_EQ(control().opens, control().closes) << "step " << step;
    EXPECT_EQ(open_files(), before) << "step " << step;
  }
  EXPECT_EQ(step, 4u) << "three steps failed";
  EXPECT_EQ(control().opens, control().closes);
  EXPECT_EQ(open_files(), before);
}

// For the race checker above all: sixteen threads use everything for the first time at once.
TEST_F(Remember, SixteenThreadsDoTheFirstUse) {
  Node node = Node::open(counted()).value();
  Memory memory = node.allocate(1 << 20, {.near = "counted:0"}).value();
  Memory soft = node.allocate(1 << 20, {.near = "soft:0"}).value();
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < 16) std::this_thread::yield();
      for (Memory* each : {&memory, &soft}) {
        auto* const at = static_cast<std::uint8_t*>(each->data()) + t * 4096;
        const auto bytes = pattern(4096, static_cast<std::uint32_t>(t));
        EXPECT_TRUE(node.share(at, 4096, access::local));
        EXPECT_TRUE(node.copy(at, bytes.data(), bytes.size()));
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(cache_count(node, "entries"), 2u);
  EXPECT_EQ(cache_count(node, "leases"), 0u);
  EXPECT_EQ(control().opens, 1u);
  EXPECT_EQ(nic_registrations(node), 2u) << "who came too late gave its registration back";
}

// ---- recognised before

// A thread keeps what it recognised last, for the Node that did: another one has other providers.
TEST_F(Remember, WhatOneNodeRecognisedAnotherDoesNotBelieve) {
  const auto remembered = [](Node& node) {
    return info(node)["counters"].value("claims_remembered", std::uint64_t{0});
  };
  Node other = Node::open(settings()).value();
  Memory theirs = other.allocate(65536, {.near = "soft:0"}).value();
  {
    Node node = Node::open(settings()).value();
    Memory memory = node.allocate(65536, {.near = "soft:0"}).value();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(node.share(memory, access::local));
      EXPECT_FALSE(other.share(memory.data(), 65536, access::local)) << "it is not its memory";
    }
    EXPECT_EQ(remembered(node), 2u);
    EXPECT_EQ(remembered(other), 0u);
    Memory second = node.allocate(65536, {.near = "soft:0"}).value();
    EXPECT_TRUE(node.share(second, access::local));
    for (int i = 0; i < 2; ++i) {  // not the last one: found all the same
      EXPECT_TRUE(node.share(memory, access::local));
      EXPECT_TRUE(node.share(second, access::local));
    }
    EXPECT_EQ(remembered(node), 6u);
    EXPECT_TRUE(node.share(memory, access::local));
  }
  EXPECT_TRUE(other.share(theirs, access::local)) << "the Node that this thread shared with last is gone";
  EXPECT_TRUE(other.share(theirs, access::local));
  EXPECT_EQ(remembered(other), 1u);
}

// ---- 3: exports

TEST_F(Remember, ProactiveExportAtAllocationReactiveAtTheFirstShare) {
  Node node = Node::open(counted()).value();
  Memory later = node.allocate(65536, {.near = "counted:0"}).value();
  EXPECT_EQ(control().exports, 0u);
  { Region first = node.share(later, access::local).value(); }
  EXPECT_EQ(control().exports, 1u);
  Memory early = node.allocate(65536, {.near = "counted:0", .networked = true}).value();
  EXPECT_EQ(control().exports, 2u);
  for (int i = 0; i < 10; ++i) {
    Region again = node.share(early, access::all).value();
    Region local = node.share(later, access::local).value();
  }
  EXPECT_EQ(control().exports, 2u) << "nothing is exported twice";
  EXPECT_EQ(control().fd_closes, 1u) << "memory that is networked keeps its descriptor, other memory does not";
  ASSERT_TRUE(early.free());
  ASSERT_TRUE(later.free());
  EXPECT_EQ(control().fd_closes, 2u);
  EXPECT_EQ(nic_registrations(node), 0u);
}

TEST_F(Remember, NetworkedMemoryKeepsNoMoreDescriptorsThanItMay) {
  std::optional<Memory> survivor;
  {
    Node node = Node::open(counted({{"cache_fds", "2"}})).value();
    std::vector<Memory> all;
    for (int i = 0; i < 5; ++i) all.push_back(node.allocate(65536, {.near = "counted:0", .networked = true}).value());
    EXPECT_EQ(control().exports - control().fd_closes, 2u);
    EXPECT_TRUE(node.share(all[4], access::all)) << "exported again";
    EXPECT_EQ(control().exports, 6u);
    EXPECT_EQ(control().exports - control().fd_closes, 2u);
    ASSERT_TRUE(all[0].free());
    all.push_back(node.allocate(65536, {.near = "counted:0", .networked = true}).value());
    EXPECT_EQ(control().exports - control().fd_closes, 2u) << "in the place of the one that was freed";
    survivor = std::move(all.back());
    all.clear();
    EXPECT_EQ(control().exports - control().fd_closes, 1u);
  }
  EXPECT_EQ(control().exports, control().fd_closes)
      << "a closed Node holds no descriptor of memory that is still there";
}

// A NIC holds what it has registered by itself. The software one has descriptors for its newest 256.
TEST_F(Remember, AThousandRegistrationsHoldNoDescriptor) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_GE(old.rlim_max, 4096u) << "every piece of software device memory is a file or two";
  const rlimit many{std::max<rlim_t>(old.rlim_cur, 4096), old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
  for (const char* near : {"counted:0", "soft:0"}) {
    Node node = Node::open(counted()).value();
    std::vector<Memory> all;
    for (int i = 0; i < 1300; ++i) all.push_back(node.allocate(4096, {.near = near}).value());
    for (std::size_t i = 0; i < 300; ++i) ASSERT_TRUE(node.share(all[i], i % 2 == 0 ? access::all : access::local));
    const int before = open_fds();
    for (std::size_t i = 300; i < 1300; ++i) ASSERT_TRUE(node.share(all[i], i % 2 == 0 ? access::all : access::local));
    EXPECT_EQ(open_fds(), before) << near;
    EXPECT_EQ(cache_count(node, "entries"), 1300u);
    EXPECT_EQ(cache_count(node, "fds"), 0u);
    EXPECT_EQ(control().exports, control().fd_closes);
    EXPECT_EQ(info(node)["counters"]["memory_soft"]["live_fds"], 0);
  }
  EXPECT_EQ(control().exports, 1300u) << "a share exports once, for its own registration and that of peers";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
}

// A ticket for a part is registered when it is redeemed, and by then the descriptor has gone.
TEST_F(Remember, ATicketForAPartExportsAgainButNeverOtherMemory) {
  Pair pair(counted());
  Memory memory = pair.owner.allocate(65536, {.near = "counted:0"}).value();
  Region region = pair.owner.share(memory, access::all).value();
  EXPECT_EQ(control().exports, control().fd_closes);
  const Ticket part = region.ticket(access::remote_write, 60s, 4096, 8192).value();
  const Ticket late = region.ticket(access::remote_write, 60s, 0, 4096).value();
  Block local(pair.asker, "host", 8192, access::local);
  const auto bytes = pattern(8192, 3);
  local.fill(bytes);
  const Target place = pair.far.redeem(part).value();
  ASSERT_TRUE(pair.far.put(local.region.slice(0, 8192), place.at(0)).wait(10s));
  std::vector<std::uint8_t> there(8192);
  ASSERT_TRUE(pair.owner.copy(there.data(), static_cast<std::uint8_t*>(memory.data()) + 4096, there.size()));
  EXPECT_EQ(there, bytes);
  EXPECT_EQ(control().exports, 2u);
  EXPECT_EQ(control().fd_closes, 2u);
  control().bump_identity = 100;  // freed and allocated again behind the Node's back
  const auto refused = pair.far.redeem(late);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("something else is there now"), std::string::npos) << refused.error().explain();
  EXPECT_EQ(control().exports, control().fd_closes);
  control().bump_identity = 0;
}

TEST_F(Remember, TenThousandCyclesLeaveTheDescriptorsAsTheyWere) {
  Node node = Node::open(counted()).value();
  for (const char* near : {"counted:0", "soft:0"}) {
    const int without = open_fds();
    Memory memory = node.allocate(65536, {.near = near}).value();
    { Region region = node.share(memory, access::all).value(); }
    const int before = open_fds();
    for (int i = 0; i < 10'000; ++i) {
      Region region = node.share(memory, access::all).value();
      ASSERT_TRUE(region.path().size() > 0);
    }
    EXPECT_EQ(open_fds(), before) << near;
    ASSERT_TRUE(memory.free());
    EXPECT_EQ(open_fds(), without) << near;
  }
}

TEST_F(Remember, FreedDeviceMemoryIsFreeAgain) {
  Node node = Node::open(settings()).value();
  const auto used = [&] { return info(node)["counters"]["memory_soft"]["used_bytes"].get<std::uint64_t>(); };
  const std::uint64_t before = used();
  Memory memory = node.allocate(8 << 20, {.near = "soft:0", .networked = true}).value();
  { Region region = node.share(memory, access::all).value(); }
  EXPECT_GE(used(), before + (8 << 20));
  ASSERT_TRUE(memory.free());
  EXPECT_EQ(used(), before) << "no descriptor and no registration holds it";
  EXPECT_EQ(info(node)["counters"]["memory_soft"]["live_fds"], 0);
}

TEST_F(Remember, AFaultAfterTheExportStillClosesIt) {
  Node node = Node::open(counted({{"cache_refusals", "0s"}})).value();
  const std::set<std::string> before = open_files();
  {
    Memory memory = node.allocate(65536, {.near = "counted:0"}).value();
    control().useless_fds = 1;
    for (int i = 0; i < 5; ++i) {
      const auto refused = node.share(memory, access::all);
      ASSERT_FALSE(refused);
      EXPECT_FALSE(refused.error().text.empty());
    }
    EXPECT_FALSE(node.allocate(65536, {.near = "counted:0", .networked = true}));
    EXPECT_EQ(control().exports, control().fd_closes);
    EXPECT_EQ(nic_registrations(node), 0u);
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(control().wrong_fds, 0u);
}

TEST_F(Remember, ADescriptorThatTheRuntimeKeepsIsNotClosed) {
  Node node = Node::open(counted()).value();
  control().keep_fds = 1;
  Memory memory = node.allocate(65536, {.near = "counted:0"}).value();
  for (int i = 0; i < 3; ++i) {
    Region region = node.share(memory, access::all).value();
    ASSERT_GE(::fcntl(control().kept_fd, F_GETFD), 0);
  }
  EXPECT_GE(::fcntl(control().kept_fd, F_GETFD), 0) << "nobody but the runtime closes it";
  const int kept = control().kept_fd;
  ASSERT_TRUE(memory.free());
  EXPECT_LT(::fcntl(kept, F_GETFD), 0);
  EXPECT_EQ(control().exports, control().fd_closes);
}

// ---- 4: the registration cache

TEST_F(Remember, ManyUsesAreOneRegistrationOnEveryNic) {
  Node node = Node::open(settings({{"nics", "soft:2"}})).value();
  Memory memory = node.allocate(1 << 20, {.near = "soft:0"}).value();
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(node.share(memory, access::local));
  EXPECT_EQ(cache_count(node, "registered"), 1u) << "one entry for both NICs";
  EXPECT_EQ(cache_count(node, "hits"), 19'999u);
  EXPECT_EQ(nic_registrations(node, 0), 1u);
  EXPECT_EQ(nic_registrations(node, 1), 1u);
}

TEST_F(Remember, ReusedAddressIsNoticedAndThePeerReadsTheNewBytes) {
  Pair pair;
  Block into(pair.asker, "host", 65536, access::local);
  void* place = nullptr;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    Memory memory = pair.owner.allocate(65536, {.near = "soft:0"}).value();
    if (round > 1) {
      EXPECT_EQ(memory.data(), place) << "the accelerator hands the address out again";
    }
    place = memory.data();
    ASSERT_TRUE(pair.owner.copy(memory.data(), pattern(65536, round).data(), 65536));
    {
      Region region = pair.owner.share(memory, access::remote_read).value();
      Published name = pair.owner.publish("block", region).value();
      ASSERT_TRUE(pair.far.get(into.region.all(), pair.far.lookup("block").value().at(0)).wait(10s));
      EXPECT_EQ(into.read(0, 65536), pattern(65536, round));
    }
    EXPECT_EQ(cache_count(pair.owner, "registered"), round);
    ASSERT_TRUE(memory.free());
  }
}

// The same, behind the Node's back: the memory's identity changes while an operation still uses what was there.
TEST_F(Remember, InvalidatedWhileInFlightTheTransferCompletesAndTheKeyGoesAfterwards) {
  Pair pair(settings(), counted({{"cache_dead_bytes", "4K"}}));
  Block source(pair.owner, "host", 65536, access::local);
  source.fill(pattern(65536, 5));
  Memory memory = pair.asker.allocate(65536, {.near = "counted:0"}).value();
  const std::uint64_t without = nic_registrations(pair.asker);  // the peer's own
  std::optional<Region> old = pair.asker.share(memory, access::local).value();
  Operation receive = pair.far.receive(old->all());
  ASSERT_FALSE(receive.wait(10ms));
  control().bump_identity = 100;  // freed and allocated again, as far as anybody can tell
  Memory other = pair.asker.allocate(4096, {.near = "counted:1"}).value();
  std::optional<Region> fresh = pair.asker.share(memory, access::local).value();
  EXPECT_EQ(cache_count(pair.asker, "stale"), 1u);
  EXPECT_EQ(cache_count(pair.asker, "dead_entries"), 1u);
  EXPECT_EQ(cache_count(pair.asker, "dead_bytes"), 65536u);
  EXPECT_EQ(nic_registrations(pair.asker), without + 2) << "the old key stands while it is used";
  const auto beyond = pair.asker.share(other, access::local);
  ASSERT_FALSE(beyond) << "more is dead than may be";
  EXPECT_EQ(beyond.error().code, Code::limit);
  EXPECT_NE(beyond.error().text.find("that no longer exist are still registered"), std::string::npos);
  EXPECT_NE(beyond.error().remedy.find("cache_dead_bytes"), std::string::npos);

  ASSERT_TRUE(pair.near.send(source.region.all()).wait(10s));
  const auto done = receive.wait(10s);
  ASSERT_TRUE(done) << done.error().explain();
  std::vector<std::uint8_t> bytes(65536);
  ASSERT_TRUE(pair.asker.copy(bytes.data(), memory.data(), bytes.size()));
  EXPECT_EQ(bytes, pattern(65536, 5));
  old.reset();
  for (const auto until = std::chrono::steady_clock::now() + 30s;
       cache_count(pair.asker, "dead_entries") != 0 && std::chrono::steady_clock::now() < until;)
    std::this_thread::yield();
  EXPECT_EQ(cache_count(pair.asker, "dead_bytes"), 0u);
  EXPECT_EQ(nic_registrations(pair.asker), without + 1);
  EXPECT_TRUE(pair.asker.share(other, access::local));
}

TEST_F(Remember, LimitsEvictTheLeastRecentlyUsed) {
  Node node = Node::open(counted({{"cache_entries", "3"}})).value();
  std::vector<Memory> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(node.allocate(65536, {.near = "counted:0"}).value());
    ASSERT_TRUE(node.share(all.back(), access::local));
  }
  EXPECT_EQ(cache_count(node, "entries"), 3u);
  EXPECT_EQ(cache_count(node, "evicted"), 5u);
  EXPECT_EQ(nic_registrations(node), 3u);
  const std::uint64_t registered = cache_count(node, "registered");
  for (std::size_t i = 5; i < 8; ++i) ASSERT_TRUE(node.share(all[i], access::local));
  EXPECT_EQ(cache_count(node, "registered"), registered) << "the newest three";
  ASSERT_TRUE(node.share(all[0], access::local));
  EXPECT_EQ(cache_count(node, "registered"), registered + 1);
}

// Freed by whoever allocated it, not through the Node: the provider tells, and the registration goes.
TEST_F(Remember, MemoryFreedElsewhereIsForgottenWhenItIsFreed) {
  control().can_watch = 1;
  const auto* const ops = counting_ops();
  Node node = Node::open(counted()).value();
  const auto allocate = [&] {
    std::uint64_t at = 0;
    EXPECT_EQ(ops->allocate(nullptr, 0, 65536, &at, nullptr), 0);
    return at;
  };
  const auto share = [&](std::uint64_t at) { return node.share(reinterpret_cast<void*>(at), 65536, access::local); };
  const auto comes_to = [&](std::uint64_t registrations) {  // the progress thread deregisters
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         nic_registrations(node) != registrations && std::chrono::steady_clock::now() < until;)
      std::this_thread::yield();
    return nic_registrations(node) == registrations;
  };
  const std::uint64_t idle = allocate();
  ASSERT_TRUE(share(idle));
  EXPECT_EQ(cache_count(node, "entries"), 1u);
  EXPECT_EQ(control().watches, 1u);
  ASSERT_EQ(ops->free(nullptr, idle, nullptr), 0);
  EXPECT_EQ(cache_count(node, "entries"), 0u) << "forgotten before the free returned";
  EXPECT_EQ(cache_count(node, "invalidated"), 1u);
  EXPECT_TRUE(comes_to(0));
  EXPECT_EQ(control().watches, 0u);
  // In use: it survives until it is released.
  const std::uint64_t used = allocate();
  {
    const auto region = share(used);
    ASSERT_TRUE(region);
    ASSERT_EQ(ops->free(nullptr, used, nullptr), 0);
    EXPECT_EQ(cache_count(node, "entries"), 0u);
    EXPECT_EQ(cache_count(node, "dead_entries"), 1u);
    EXPECT_EQ(nic_registrations(node), 1u);
  }
  EXPECT_TRUE(comes_to(0));
  EXPECT_EQ(cache_count(node, "dead_entries"), 0u);
  // The Node's own way of freeing, and a Node that goes while it watches.
  Memory own = node.allocate(65536, {.near = "counted:0", .networked = true}).value();
  EXPECT_EQ(control().watches, 1u);
  ASSERT_TRUE(own.free());
  EXPECT_EQ(control().watches, 0u);
  const std::uint64_t last = allocate();
  ASSERT_TRUE(share(last));
  node = Node::open(settings()).value();
  EXPECT_EQ(control().watches, 0u);
  ASSERT_EQ(ops->free(nullptr, last, nullptr), 0);
}

// Many threads share while others free.
TEST_F(Remember, SharingAndFreeingAtOnceLeavesNothing) {
  control().can_watch = 1;
  const auto* const ops = counting_ops();
  Node node = Node::open(counted()).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        std::uint64_t at = 0;
        ASSERT_EQ(ops->allocate(nullptr, 0, 8192, &at, nullptr), 0);
        std::thread other([&] { (void)node.share(reinterpret_cast<void*>(at), 8192, access::local); });
        (void)node.share(reinterpret_cast<void*>(at), 4096, access::local);
        ASSERT_EQ(ops->free(nullptr, at, nullptr), 0);
        other.join();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  node = Node::open(settings()).value();
  EXPECT_EQ(control().watches, 0u);
  EXPECT_EQ(control().exports, control().fd_closes);
}

// ---- 6: whole allocations

TEST_F(Remember, AThousandSlicesAreOneRegistrationAndEveryByteArrives) {
  constexpr std::size_t kLength = 4 << 20;
  Pair pair;
  Memory memory = pair.asker.allocate(kLength, {.near = "soft:0"}).value();
  const auto bytes = pattern(kLength, 9);
  ASSERT_TRUE(pair.asker.copy(memory.data(), bytes.data(), kLength));
  Block target(pair.owner, "soft:0", kLength, access::all);
  Published name = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  std::vector<std::uint8_t> expected(kLength, 0);
  const std::uint64_t without = nic_registrations(pair.asker);
  std::uint64_t offset = 1;  // odd ones too
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t length = 1 + (i * 37) % 4001;
    Region slice = pair.asker.share(static_cast<std::uint8_t*>(memory.data()) + offset, length, access::local).value();
    ASSERT_TRUE(pair.far.put(slice.all(), place.at(offset)).wait(10s));
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), length,
                expected.begin() + static_cast<std::ptrdiff_t>(offset));
    offset += length + i % 7;
  }
  EXPECT_EQ(cache_count(pair.asker, "registered"), 1u);
  EXPECT_EQ(nic_registrations(pair.asker), without + 1);
  EXPECT_EQ(target.read(0, kLength), expected);
}

// ---- host memory

TEST_F(Remember, HostMemoryIsRegisteredAnewUnlessItIsWatched) {
  std::vector<std::uint8_t> own(65536);
  Node plain = Node::open(settings()).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(plain.share(own.data(), own.size(), access::local));
  EXPECT_EQ(cache_count(plain, "registered"), 3u);
  EXPECT_EQ(cache_count(plain, "uncached"), 3u);
  EXPECT_EQ(nic_registrations(plain), 0u);
  EXPECT_TRUE(info(plain)["monitor"].is_null());
}

// What peers name is registered when they first can: with a name or a ticket, and once.
TEST_F(Remember, HostMemoryIsRegisteredForPeersWhenTheyCanNameIt) {
  std::vector<std::uint8_t> own(65536);
  Pair pair;
  Node& node = pair.owner;
  const auto rkey_of = [](Region& region) {
    const auto key = nlohmann::json::parse(region.path())["keys"][0];
    return key.contains("rkey") ? key["rkey"].get<std::uint32_t>() : 0u;
  };
  Region region = node.share(own.data(), own.size(), access::remote_write).value();
  const std::uint64_t before = nic_registrations(node);
  EXPECT_EQ(rkey_of(region), 0u);
  EXPECT_EQ(region.signal(3).read().value(), 0u) << "its signals are there all the same";
  std::vector<std::thread> threads;
  std::vector<std::optional<Published>> names(8);
  for (std::size_t i = 0; i < names.size(); ++i) {
    threads.emplace_back([&, i] {
      if (i % 2 == 0) {
        EXPECT_TRUE(region.ticket(access::remote_write));
      }
      names[i] = node.publish("own" + std::to_string(i), region).value();
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(nic_registrations(node), before + 2) << "the bytes and the signals";
  const std::uint32_t rkey = rkey_of(region);
  EXPECT_NE(rkey, 0u);
  EXPECT_EQ(pair.far.lookup("own5").value().raw().rkey, rkey);

  Region never = node.share(own.data(), own.size(), access::remote_write).value();
  ASSERT_TRUE(never.revoke());
  EXPECT_EQ(node.publish("never", never).error().code, Code::gone);
  EXPECT_EQ(never.ticket(access::remote_write).error().code, Code::gone);
}

// The address was host memory, which the Node remembers; then it is unmapped and becomes a device's.
TEST_F(Remember, AHostAddressThatBecomesADevicesIsNotTakenForHost) {
  constexpr std::size_t kLength = 65536;
  Node node = Node::open(counted({{"monitor", "userfaultfd"}})).value();
  const bool watching = !info(node)["monitor"].is_null();
  if (!watching) {
    EXPECT_NE(info(node)["warnings"].dump().find("userfaultfd"), std::string::npos) << "it must say why";
  }
  for (int round = 0; round < 20; ++round) {
    void* const at = ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    const std::uint64_t registered = cache_count(node, "registered");
    for (int i = 0; i < 3; ++i) {
      Region region = node.share(at, kLength, access::local).value();
      EXPECT_EQ(nlohmann::json::parse(region.path())["kind"], "host");
    }
    EXPECT_EQ(cache_count(node, "registered"), registered + (watching ? 1 : 3));
    ASSERT_EQ(::munmap(at, kLength), 0);
    control().place_next_at = reinterpret_cast<std::uint64_t>(at);
    Memory device = node.allocate(kLength, {.near = "counted:0"}).value();
    ASSERT_EQ(device.data(), at);
    {
      Region region = node.share(at, kLength, access::local).value();
      const auto path = nlohmann::json::parse(region.path());
      EXPECT_EQ(path["kind"], "counted:0");
      EXPECT_EQ(path["export"]["way"], "dma-buf fd");
    }
    ASSERT_TRUE(device.free());
  }
  if (watching) {
    EXPECT_EQ(info(node)["counters"]["host_remembered"], 40);
  }
}

}  // namespace
}  // namespace strait::flow
