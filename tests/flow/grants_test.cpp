// SPDX-License-Identifier: Apache-2.0
// Map and copy grants through the public API: which way an operation goes and says it goes, what happens to the way
// when its owner takes it back, and to who will not let go.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "flow.hpp"
#include "process.hpp"

namespace strait::flow {
namespace {

NodeOptions granting(const std::string& grant) {
  return settings({{"grant", grant}});
}

std::string way_of(Operation operation) {
  auto done = operation.wait(10s);
  if (!done) {
    std::string why = done.error().explain();
    std::replace(why.begin(), why.end(), '\n', ' ');  // one line of a Wire
    return why;
  }
  const std::string path = done->path.str();
  return path.substr(0, path.find(" -> "));
}

struct Host {
  explicit Host(Pair& pair, std::size_t length = 65536, access::Access rights = access::all)
      : target(pair.owner, "host", length, rights),
        local(pair.asker, "host", length, access::local),
        published(pair.owner.publish("block", target.region).value()),
        place(pair.far.lookup("block").value()) {}
  Block target, local;
  Published published;
  Target place;
};

int counted(Node& node, const char* what) {
  return info(node)["counters"].value(what, 0);
}

TEST(Granted, MemoryFromAllocateIsMapped) {
  Pair pair(granting("auto"), granting("auto"));
  Host host(pair);
  host.local.fill(pattern(65536, 1));
  EXPECT_EQ(way_of(pair.far.put(host.local.region.all(), host.place.at(0))), "map grant");
  EXPECT_EQ(host.target.read(0, 65536), pattern(65536, 1));
  EXPECT_EQ(way_of(pair.far.get(host.local.region.slice(0, 8), host.place.at(8))), "map grant");
  Lane lane = pair.far.lane().value();
  EXPECT_EQ(way_of(lane.put(host.local.region.slice(0, 1), host.place.at(65535))), "map grant");
}

TEST(Granted, MemoryFromMallocIsCopied) {
  Pair pair(granting("auto"), granting("auto"));
  std::vector<std::uint8_t> bytes(100000);
  Region region = pair.owner.share(bytes.data(), bytes.size(), access::all).value();
  Published published = pair.owner.publish("bytes", region).value();
  Target place = pair.far.lookup("bytes").value();
  Block local(pair.asker, "host", 100000, access::local);
  local.fill(pattern(100000, 2));
  EXPECT_EQ(way_of(pair.far.put(local.region.all(), place.at(0))), "copy grant");
  {
    [[maybe_unused]] const Unwatched unwatched;
    EXPECT_EQ(bytes, pattern(100000, 2));
  }
  local.fill(std::vector<std::uint8_t>(100000));
  EXPECT_EQ(way_of(pair.far.get(local.region.all(), place.at(0))), "copy grant");
  EXPECT_EQ(local.read(0, 100000), pattern(100000, 2));
  // Not worth a system call, and nothing a system call can do.
  EXPECT_EQ(way_of(pair.far.put(local.region.slice(0, 64), place.at(0))).find("grant"), std::string::npos);
  EXPECT_EQ(way_of(pair.far.fetch_add(place.at(0), 1)).find("grant"), std::string::npos);
}

TEST(Granted, NothingWhereEitherSideSaysRing) {
  for (const bool owner : {false, true}) {
    Pair pair(granting(owner ? "ring" : "auto"), granting(owner ? "auto" : "ring"));
    Host host(pair);
    EXPECT_NE(way_of(pair.far.put(host.local.region.all(), host.place.at(0))), "map grant");
  }
}

// What is between the bytes and the peer on purpose is not passed by; who asked for both is told so.
TEST(Granted, NothingPastAStrictNic) {
  for (const bool owner : {false, true}) {
    SCOPED_TRACE(owner ? "the owner" : "the asker");
    const NodeOptions strict = settings({{"strict", "1"}, {"grant", "map"}});
    Pair pair(owner ? strict : granting("map"), owner ? granting("map") : strict);
    Host host(pair);
    Lane lane = pair.far.lane().value();
    const std::string path = strait_lane_path(lane.raw());
    EXPECT_NE(path.find("; no map or copy grants: "), std::string::npos) << path;
    const std::string why = "option strict: the NIC is to see every operation";
    if (!owner) {
      EXPECT_TRUE(path.ends_with("; no map or copy grants: " + why)) << path;
    }
    EXPECT_EQ(info(owner ? pair.owner : pair.asker)["grants"]["off_because"], why);
    EXPECT_NE(way_of(lane.put(host.local.region.all(), host.place.at(0))), "map grant");
  }
}

TEST(Granted, OnlyWhatWasAskedFor) {
  Pair pair(granting("map"), granting("map"));
  std::vector<std::uint8_t> bytes(65536);
  Region region = pair.owner.share(bytes.data(), bytes.size(), access::all).value();
  Published published = pair.owner.publish("bytes", region).value();
  Target place = pair.far.lookup("bytes").value();
  Block local(pair.asker, "host", 65536, access::local);
  const std::string way = way_of(pair.far.put(local.region.all(), place.at(0)));
  EXPECT_NE(way, "copy grant");
  EXPECT_NE(way, "map grant");
  EXPECT_EQ(counted(pair.asker, "grants_refused"), 1);
}

// Either side's word: nobody reads the memory of the other's process then. What can be mapped still is.
TEST(Granted, NoCopiesWhereEitherSideHasCrossMemoryOff) {
  for (const bool owner : {false, true}) {
    SCOPED_TRACE(owner ? "the owner" : "the asker");
    const NodeOptions off = settings({{"cross_memory", "off"}});
    Pair pair(owner ? off : granting("auto"), owner ? granting("auto") : off);
    std::vector<std::uint8_t> bytes(65536);
    Region region = pair.owner.share(bytes.data(), bytes.size(), access::all).value();
    Published published = pair.owner.publish("bytes", region).value();
    Target place = pair.far.lookup("bytes").value();
    Host host(pair);
    EXPECT_NE(way_of(pair.far.put(host.local.region.all(), place.at(0))), "copy grant");
    EXPECT_EQ(way_of(pair.far.put(host.local.region.all(), host.place.at(0))), "map grant");
    EXPECT_EQ(counted(pair.asker, "copy_grants"), 0);
    Lane lane = pair.far.lane().value();
    const std::string path = strait_lane_path(lane.raw());
    EXPECT_NE(path.find(owner ? "(no copy grants: option cross_memory=off of its Node)"
                              : "(no copy grants: option cross_memory=off)"),
              std::string::npos)
        << path;
  }
}

TEST(Granted, WhatTheAskerWantsCountsToo) {
  Pair pair(granting("auto"), granting("copy"));
  Host host(pair);
  EXPECT_EQ(way_of(pair.far.put(host.local.region.all(), host.place.at(0))), "copy grant");
  Pair other(granting("auto"), granting("map"));
  std::vector<std::uint8_t> bytes(65536);
  Region region = other.owner.share(bytes.data(), bytes.size(), access::all).value();
  Published published = other.owner.publish("bytes", region).value();
  Target place = other.far.lookup("bytes").value();
  Block local(other.asker, "host", 65536, access::local);
  EXPECT_NE(way_of(other.far.put(local.region.all(), place.at(0))), "copy grant");
  EXPECT_EQ(counted(other.asker, "grants_refused"), 1);
}

// The checks are made against what was granted, not against what the caller's value says.
TEST(Granted, AForgedTargetGetsNoFurther) {
  Pair pair(granting("auto"), granting("auto"));
  Host host(pair, 4096, access::remote_read);
  strait_target forged = host.place.raw();
  forged.access = STRAIT_REMOTE_READ | STRAIT_REMOTE_WRITE;
  const strait_slice slice = host.local.region.slice(0, 64).raw;
  Lane lane = pair.far.lane().value();
  strait_op op{};
  ASSERT_EQ(strait_put(lane.raw(), &slice, &forged, 0, nullptr, &op, nullptr), STRAIT_OK);
  strait_error error{};
  error.struct_size = sizeof error;
  EXPECT_EQ(strait_wait(&op, 5'000'000'000, nullptr, &error), STRAIT_DENIED) << error.text;
}

TEST(Granted, ReadingOnlyIsMappedToo) {
  Pair pair(granting("auto"), granting("auto"));
  Host host(pair, 65536, access::remote_read);
  host.target.fill(pattern(65536, 3));
  EXPECT_EQ(way_of(pair.far.get(host.local.region.all(), host.place.at(0))), "map grant");
  EXPECT_EQ(host.local.read(0, 65536), pattern(65536, 3));
}

TEST(Granted, APartOfAnAllocationIsNotMapped) {
  Pair pair(granting("auto"), granting("auto"));
  Memory memory = pair.owner.allocate(65536).value();
  Region part = pair.owner.share(memory.data(), 16384, access::all).value();
  Published published = pair.owner.publish("part", part).value();
  Target place = pair.far.lookup("part").value();
  Block local(pair.asker, "host", 65536, access::local);
  EXPECT_EQ(way_of(pair.far.put(local.region.slice(0, 16384), place.at(0))), "copy grant");
}

// With nothing under way at the NIC there is nothing to be behind.
TEST(Granted, AFenceIsForTheNicOnlyWhereThatHasWork) {
  Pair pair(granting("auto"), granting("auto"));
  Host host(pair);
  Lane lane = pair.far.lane().value();
  const Slice slice = host.local.region.slice(0, 64);
  const OpOptions fenced{.fence = true};
  EXPECT_EQ(way_of(lane.put(slice, host.place.at(0), fenced)), "map grant");
  EXPECT_EQ(way_of(lane.get(slice, host.place.at(0), fenced)), "map grant");
  EXPECT_EQ(way_of(lane.fetch_add(host.place.at(0), 1, fenced)), "map grant");
  Operation waiting = lane.receive_imm();  // nobody sends: the NIC has something under way
  EXPECT_NE(way_of(lane.put(slice, host.place.at(0), fenced)), "map grant");
  EXPECT_NE(way_of(lane.get(slice, host.place.at(0), fenced)), "map grant");
  EXPECT_NE(way_of(lane.fetch_add(host.place.at(0), 1, fenced)), "map grant");
  EXPECT_EQ(way_of(lane.get(slice, host.place.at(0))), "map grant");
}

TEST(Granted, AtomicsAreOverAtOnceAndTheirResultsAreTakenOnce) {
  Pair pair(granting("auto"), granting("auto"));
  Host host(pair);
  host.target.fill(std::vector<std::uint8_t>(64));
  Operation first = pair.far.fetch_add(host.place.at(8), 5);
  EXPECT_EQ(host.target.word(8), 5u);
  auto before = first.test();
  ASSERT_TRUE(before) << before.error().explain();
  EXPECT_EQ(before->value, 0u);
  EXPECT_TRUE(before->path.str().starts_with("map grant")) << before->path.str();
  EXPECT_FALSE(first.wait(1s));
  // More than a lane has places for: those that were let go of are free again.
  for (int i = 0; i < 100000; ++i) pair.far.fetch_add(host.place.at(8), 1).detach();
  EXPECT_EQ(pair.far.compare_swap(host.place.at(8), 100005, 7).wait(5s).value().value, 100005u);
  EXPECT_EQ(host.target.word(8), 7u);
}

// Words on a lane with one owner take a shorter way once their window is known; what it checks is the same.
class Words : public ::testing::Test {
 protected:
  Words() : pair(granting("map"), granting("map")), host(pair, 4096, access::all), lane(pair.far.lane(256).value()) {
    host.target.fill(std::vector<std::uint8_t>(4096));
    know(host.place);
    host.local.fill(pattern(4096, 5));
  }
  void know(const Target& place) { EXPECT_EQ(way_of(lane.get(word(0), place.at(0))), "map grant"); }
  Slice word(std::uint64_t offset) { return host.local.region.slice(offset, 8); }
  std::int32_t put_to(const strait_target& target, std::uint64_t offset) {
    const strait_slice slice = word(8).raw;
    strait_op op{};
    const std::int32_t posted = strait_put(lane.raw(), &slice, &target, offset, nullptr, &op, nullptr);
    return posted != STRAIT_OK ? posted : strait_wait(&op, 5'000'000'000, nullptr, nullptr);
  }
  Pair pair;
  Host host;
  Lane lane;
};

TEST_F(Words, AreMoved) {
  for (std::uint64_t at = 0; at < 4096; at += 8) ASSERT_EQ(way_of(lane.put(word(at), host.place.at(at))), "map grant");
  EXPECT_EQ(host.target.read(0, 4096), pattern(4096, 5));
  host.target.fill(pattern(4096, 6));
  for (std::uint64_t at = 0; at < 4096; at += 8) ASSERT_EQ(way_of(lane.get(word(at), host.place.at(at))), "map grant");
  EXPECT_EQ(host.local.read(0, 4096), pattern(4096, 6));
}

TEST_F(Words, OutsideTheTargetAreRefused) {
  for (const std::uint64_t offset : {std::uint64_t{4089}, std::uint64_t{4096}, ~std::uint64_t{7}}) {
    const auto late = lane.put(word(0), host.place.at(offset)).wait(5s);
    ASSERT_FALSE(late) << offset;
    EXPECT_EQ(late.error().code, Code::invalid) << late.error().explain();
  }
  strait_target longer = host.place.raw();
  longer.length_bytes = 8192;
  EXPECT_EQ(put_to(longer, 4096), STRAIT_DENIED);
  EXPECT_EQ(host.target.read(0, 4096), std::vector<std::uint8_t>(4096));
}

TEST_F(Words, NeedTheRightToBeThere) {
  Block readable(pair.owner, "host", 4096, access::remote_read);
  Published published = pair.owner.publish("readable", readable.region).value();
  const Target place = pair.far.lookup("readable").value();
  know(place);
  EXPECT_EQ(put_to(place.raw(), 0), STRAIT_DENIED);
  strait_target forged = place.raw();
  forged.access = STRAIT_REMOTE_READ | STRAIT_REMOTE_WRITE | STRAIT_REMOTE_ATOMIC;
  EXPECT_EQ(put_to(forged, 0), STRAIT_DENIED);
  EXPECT_EQ(readable.word(0), 0u);
}

TEST_F(Words, OfAnotherEpochGoByTheNic) {
  strait_target old = host.place.raw();
  ++old.epoch;
  const strait_slice slice = word(8).raw;
  strait_op op{};
  ASSERT_EQ(strait_put(lane.raw(), &slice, &old, 0, nullptr, &op, nullptr), STRAIT_OK);
  EXPECT_EQ(op.id & STRAIT_OP_COMPLETE, 0u) << "not by the map: it is the owner's NIC that is asked";
  strait_done done{};
  done.struct_size = sizeof done;
  EXPECT_EQ(strait_wait(&op, 5'000'000'000, &done, nullptr), STRAIT_OK) << "the key is good, and the owner knows it";
  EXPECT_EQ(host.target.word(0), host.local.word(8));
}

TEST_F(Words, AfterTheGrantIsOverAreRefused) {
  ASSERT_TRUE(host.target.region.revoke(10s));
  EXPECT_EQ(put_to(host.place.raw(), 0), STRAIT_DENIED);
  EXPECT_FALSE(lane.fetch_add(host.place.at(0), 1).wait(5s));
  EXPECT_EQ(host.target.word(0), 0u);
}

TEST_F(Words, ThatAreChangedMustBeAligned) {
  const auto crooked = lane.fetch_add(host.place.at(4), 1).wait(5s);
  ASSERT_FALSE(crooked);
  EXPECT_EQ(crooked.error().code, Code::invalid) << crooked.error().explain();
  EXPECT_EQ(lane.compare_swap(host.place.at(8), 1, 2).wait(5s).value().value, 0u);
  EXPECT_EQ(host.target.word(8), 0u);
  EXPECT_EQ(lane.compare_swap(host.place.at(8), 0, 2).wait(5s).value().value, 0u);
  EXPECT_EQ(host.target.word(8), 2u);
}

// More of them than have a place on the short way; taken from the last to the first, each once.
TEST_F(Words, KeepWhatTheyFetchedUntilSomebodyAsks) {
  constexpr std::size_t kMany = 200;
  std::vector<strait_op> ops(kMany);
  for (strait_op& op : ops)
    ASSERT_EQ(strait_fetch_add(lane.raw(), &host.place.raw(), 16, 3, nullptr, &op, nullptr), STRAIT_OK);
  EXPECT_EQ(host.target.word(16), 3 * kMany);
  for (std::size_t i = kMany; i-- > 0;) {
    const strait_op twice = ops[i];
    strait_done done{};
    done.struct_size = sizeof done;
    ASSERT_EQ(strait_wait(&ops[i], 5'000'000'000, &done, nullptr), STRAIT_OK) << i;
    EXPECT_EQ(done.value, 3 * i);
    EXPECT_EQ(done.bytes, 8u);
    strait_op again = twice;
    EXPECT_EQ(strait_wait(&again, 1'000'000, nullptr, nullptr), STRAIT_INVALID) << i;
  }
  for (int i = 0; i < 10000; ++i) lane.fetch_add(host.place.at(16), 1).detach();
  EXPECT_EQ(lane.fetch_add(host.place.at(16), 0).wait(5s).value().value, 3 * kMany + 10000);
}

// More regions than a lane remembers, in turn: on a lane of one owner and on the one that callers share.
TEST(Granted, WordsFindEachOfManyRegions) {
  constexpr std::size_t kRegions = 40;
  Pair pair(granting("map"), granting("map"));
  Lane lane = pair.far.lane(256).value();
  Block local(pair.asker, "host", 4096, access::local);
  local.fill(pattern(4096, 9));
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Published> names;
  std::vector<Target> targets;
  for (std::size_t i = 0; i < kRegions; ++i) {
    blocks.push_back(std::make_unique<Block>(pair.owner, "host", 4096, access::all));
    names.push_back(pair.owner.publish("many" + std::to_string(i), blocks[i]->region).value());
    targets.push_back(pair.far.lookup("many" + std::to_string(i)).value());
  }
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kRegions; ++i) {
      const Slice word = local.region.slice(8 * i, 8);
      EXPECT_EQ(way_of(lane.put(word, targets[i].at(16 * round))), "map grant");
      EXPECT_EQ(way_of(pair.far.put(word, targets[i].at(16 * round + 8))), "map grant");
    }
  }
  const std::vector<std::uint8_t> sent = pattern(4096, 9);
  for (std::size_t i = 0; i < kRegions; ++i) {
    const std::vector<std::uint8_t> got = blocks[i]->read(0, 48);
    for (std::size_t at = 0; at < 48; ++at) ASSERT_EQ(got[at], sent[8 * i + at % 8]) << "region " << i;
  }
  ASSERT_TRUE(blocks[7]->region.revoke());
  EXPECT_FALSE(lane.put(local.region.slice(0, 8), targets[7].at(0)).wait(5s));
  EXPECT_FALSE(pair.far.put(local.region.slice(0, 8), targets[7].at(0)).wait(5s));
}

TEST(Granted, ALaneTooManySaysWhyItHasNone) {
  Pair pair(granting("auto"), granting("auto"));
  std::vector<Lane> lanes;
  for (int i = 0; i < 64; ++i) lanes.push_back(pair.far.lane(16).value());
  const std::string has = strait_lane_path(lanes.front().raw());
  EXPECT_TRUE(has.ends_with("; memory it grants by map or copy: without the NIC")) << has;
  const std::string has_none = strait_lane_path(lanes.back().raw());
  EXPECT_TRUE(
      has_none.ends_with("; no map or copy grants: 64 lanes to this peer have them already, the most there can be"))
      << has_none;
}

TEST(Revoked, AGrantIsOverAtOnce) {
  for (const char* grant : {"map", "copy"}) {
    SCOPED_TRACE(grant);
    Pair pair(granting(grant), granting(grant));
    std::optional<Host> host;
    host.emplace(pair);
    ASSERT_EQ(way_of(pair.far.put(host->local.region.all(), host->place.at(0))), std::string(grant) + " grant");
    host->target.fill(pattern(65536, 4));
    ASSERT_TRUE(host->target.region.revoke(10s));
    auto late = pair.far.put(host->local.region.all(), host->place.at(0)).wait(5s);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::denied) << late.error().explain();
    EXPECT_EQ(host->target.read(0, 65536), pattern(65536, 4));
    EXPECT_EQ(counted(pair.owner, "grant_holdouts"), 0);
  }
}

// Windows come and go, and the table they are found in is replaced, while a lane looks into it.
TEST(Revoked, NothingThatALaneStillLooksInto) {
  Pair pair(granting("map"), granting("map"));
  Host host(pair, 4096);
  std::atomic<bool> over{false};
  std::atomic<int> other_ways{0};
  std::thread putting([&] {
    Lane lane = pair.far.lane().value();
    while (!over) {
      if (way_of(lane.put(host.local.region.slice(0, 8), host.place.at(0))) != "map grant") ++other_ways;
    }
  });
  for (int i = 0; i < 400; ++i) {
    Block block(pair.owner, "host", 4096, access::all);
    Published published = pair.owner.publish("passing", block.region).value();
    const Target place = pair.far.lookup("passing").value();
    ASSERT_EQ(way_of(pair.far.put(host.local.region.slice(8, 8), place.at(0))), "map grant");
    ASSERT_TRUE(block.region.revoke(10s));
  }
  over = true;
  putting.join();
  EXPECT_EQ(other_ways, 0);
}

TEST(Revoked, AndSharedAgainIsGrantedAgain) {
  Pair pair(granting("auto"), granting("auto"));
  Memory memory = pair.owner.allocate(65536).value();
  Block local(pair.asker, "host", 65536, access::local);
  for (int i = 0; i < 20; ++i) {
    Region region = pair.owner.share(memory, access::all).value();
    Published published = pair.owner.publish("again", region).value();
    Target place = pair.far.lookup("again").value();
    ASSERT_EQ(way_of(pair.far.put(local.region.all(), place.at(0), {.signal = 1})), "map grant") << i;
    EXPECT_EQ(region.signal(1).read().value(), 1u);
    ASSERT_TRUE(region.revoke(10s));
  }
  EXPECT_TRUE(memory.free());
}

// A peer that uses a region of this process, says so, and then does what it is told.
void use(Process::Wire wire) {
  Node node = Node::open(granting("auto")).value();
  Peer peer = node.connect(wire.hear()).value();
  Target place = peer.lookup("block").value();
  Block local(node, "host", 65536, access::local);
  wire.say(way_of(peer.put(local.region.all(), place.at(0))));
  (void)wire.hear();
  wire.say(way_of(peer.put(local.region.all(), place.at(0))));
}

// One that the kernel lets read nobody's memory who does not want that: root may, by a capability.
void use_without_capabilities(Process::Wire wire) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return wire.say("capset failed");
  const std::string address = wire.hear();
  Node node = Node::open(granting("auto")).value();
  Peer peer = node.connect(address).value();
  Lane lane = peer.lane().value();
  wire.say(strait_lane_path(lane.raw()));
  const Target place = peer.lookup("bytes").value();
  Block local(node, "host", 100000, access::local);
  local.fill(pattern(100000, 8));
  wire.say(way_of(lane.put(local.region.all(), place.at(0))));
  local.fill(std::vector<std::uint8_t>(100000));
  wire.say(way_of(lane.get(local.region.all(), place.at(0))));
  wire.say(local.read(0, 100000) == pattern(100000, 8) ? "right" : "wrong");
  const Target mapped = peer.lookup("block").value();
  wire.say(way_of(lane.put(local.region.slice(0, 64), mapped.at(0))));
  wire.say(std::to_string(counted(node, "copy_grants")));
  (void)wire.hear();
}

// As Yama and containers do it. The bytes arrive all the same, and the path says why not sooner.
TEST(Granted, NoCopiesWhereTheKernelRefusesThem) {
  Process user{use_without_capabilities};
  Node node = Node::open(granting("auto")).value();
  std::vector<std::uint8_t> bytes(100000);
  Region region = node.share(bytes.data(), bytes.size(), access::all).value();
  const Published published = node.publish("bytes", region).value();
  Block block(node, "host", 65536, access::all);
  const Published other = node.publish("block", block.region).value();
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0), 0);  // of the same user, and none may look into it
  user.wire().say(node.address());
  const std::string path = user.wire().hear();
  EXPECT_NE(path.find("; memory it grants by map: without the NIC (no copy grants: "), std::string::npos) << path;
  EXPECT_NE(path.find(std::strerror(EPERM)), std::string::npos) << path;
  const std::string put = user.wire().hear(), get = user.wire().hear();
  EXPECT_EQ(put.find("grant "), std::string::npos) << put;
  EXPECT_EQ(get.find("copy grant"), std::string::npos) << get;
  EXPECT_EQ(user.wire().hear(), "right");
  EXPECT_EQ(user.wire().hear(), "map grant") << "that needs no such call";
  EXPECT_EQ(user.wire().hear(), "0");
  {
    [[maybe_unused]] const Unwatched unwatched;
    EXPECT_EQ(bytes, pattern(100000, 8));
  }
  EXPECT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
  user.wire().say("done");
}

// Puts for as long as it lives.
constexpr std::size_t kLong = 64u << 20;
void keep_putting(Process::Wire wire) {
  const std::string address = wire.hear();
  Node node = Node::open(granting("auto")).value();
  Peer peer = node.connect(address).value();
  Target place = peer.lookup("block").value();
  Block local(node, "host", kLong, access::local);
  wire.say(way_of(peer.put(local.region.all(), place.at(0))));
  for (;;) (void)way_of(peer.put(local.region.all(), place.at(0)));
}

// Nearly all its time is inside the memory: its mark is odd when it is killed, and nobody makes it even again.
void killed_while_it_puts(std::chrono::milliseconds after) {
  Process user{keep_putting};
  Node node = Node::open(granting("auto")).value();
  Block block(node, "host", kLong, access::all);
  const Published published = node.publish("block", block.region).value();
  user.wire().say(node.address());
  ASSERT_EQ(user.wire().hear(), "map grant");
  std::this_thread::sleep_for(after);
  user.kill_now();
  const auto revoked = block.region.revoke(20s);
  EXPECT_TRUE(revoked) << revoked.error().explain();
  EXPECT_EQ(counted(node, "grant_holdouts"), 0);
  EXPECT_EQ(counted(node, "pages_left"), 0);
  EXPECT_TRUE(block.memory().free());
}
TEST(Killed, InTheMiddleOfAPutHoldsNothingUp) {
  killed_while_it_puts(7ms);
}
TEST(Killed, InTheMiddleOfALaterPutHoldsNothingUp) {
  killed_while_it_puts(31ms);
}

// Uses two regions of this process, and after a while a third.
void use_two(Process::Wire wire) {
  Node node = Node::open(granting("auto")).value();
  Peer peer = node.connect(wire.hear()).value();
  const Target places[] = {peer.lookup("block").value(), peer.lookup("other").value()};
  Block local(node, "host", 65536, access::local);
  local.fill(pattern(65536, 6));
  for (const Target& place : places) wire.say(way_of(peer.put(local.region.all(), place.at(0))));
  (void)wire.hear();
  local.fill(pattern(65536, 7));
  for (const Target& place : places) wire.say(way_of(peer.put(local.region.all(), place.at(0))));
  // Those were refused, and their lane is in error with that.
  wire.say(way_of(peer.lane().value().put(local.region.all(), peer.lookup("third").value().at(0))));
  (void)wire.hear();
}

void stop(Process& process) {
  process.signal(SIGSTOP);
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &stopped, WSTOPPED | WNOWAIT), 0);
}

class Holdout : public testing::Test {
 protected:
  void open(const char* kind) {
    node.emplace(Node::open(granting("auto")).value());
    block.emplace(*node, kind, 65536, access::all);
    published.emplace(node->publish("block", block->region).value());
    user.wire().say(node->address());
    ASSERT_EQ(user.wire().hear(), "map grant");
    stop(user);
  }
  Process user{use};
  std::optional<Node> node;
  std::optional<Block> block;
  std::optional<Published> published;
};

// It keeps its mapping: the memory gets other pages, with the same bytes.
TEST_F(Holdout, IsLeftThePages) {
  open("host");
  block->fill(pattern(65536, 5));
  ASSERT_TRUE(block->region.revoke(200ms));
  EXPECT_EQ(counted(*node, "grant_holdouts"), 1);
  EXPECT_EQ(counted(*node, "pages_left"), 1);
  EXPECT_EQ(block->read(0, 65536), pattern(65536, 5));
  // The memory is as good as before, and reached in another way.
  Region again = node->share(block->memory(), access::all).value();
  user.signal(SIGCONT);
  user.wire().say("go on");
  EXPECT_NE(user.wire().hear(), "map grant");
  EXPECT_EQ(block->read(0, 65536), pattern(65536, 5));
  EXPECT_TRUE(again.revoke(5s));
  EXPECT_TRUE(block->memory().free());
}

// What the one who stays maps is the other region's too, so nothing can be done about it before that is over as well.
TEST(HoldoutOfTwoRegions, IsLeftThePagesOnceBothAreRevoked) {
  for (const bool dropped : {false, true}) {
    SCOPED_TRACE(dropped ? "the first is dropped" : "the first is revoked again");
    Process user{use_two};
    Node node = Node::open(granting("auto")).value();
    Memory memory = node.allocate(65536).value();
    std::optional<Region> first = node.share(memory, access::all).value();
    Region second = node.share(memory, access::all).value();
    std::optional<Published> names[] = {node.publish("block", *first).value(), node.publish("other", second).value()};
    user.wire().say(node.address());
    ASSERT_EQ(user.wire().hear(), "map grant");
    ASSERT_EQ(user.wire().hear(), "map grant");
    stop(user);

    auto revoked = first->revoke(200ms);
    ASSERT_FALSE(revoked);
    EXPECT_EQ(revoked.error().code, Code::timeout);
    EXPECT_NE(revoked.error().text.find("process " + std::to_string(user.pid())), std::string::npos);
    EXPECT_NE(revoked.error().text.find("other regions of this memory are in use"), std::string::npos)
        << revoked.error().text;
    EXPECT_EQ(counted(node, "pages_left"), 0);
    if (dropped) first.reset();
    revoked = second.revoke(200ms);
    EXPECT_TRUE(revoked) << revoked.error().explain();
    EXPECT_EQ(counted(node, "pages_left"), 1);
    if (first) {
      EXPECT_TRUE(first->revoke(200ms));
    }

    // The same bytes; and from here on it is other memory, for this process, for its NIC and for who it is shared with.
    const auto holds = [&](std::uint32_t seed) {
      [[maybe_unused]] const Unwatched unwatched;
      return std::memcmp(memory.data(), pattern(65536, seed).data(), 65536) == 0;
    };
    EXPECT_TRUE(holds(6));
    Region third = node.share(memory, access::all).value();
    const Published published = node.publish("third", third).value();
    user.signal(SIGCONT);
    user.wire().say("go on");
    EXPECT_NE(user.wire().hear(), "map grant");
    EXPECT_NE(user.wire().hear(), "map grant");
    EXPECT_EQ(user.wire().hear(), "copy grant");
    EXPECT_TRUE(holds(7));
    user.wire().say("go");
    EXPECT_TRUE(third.revoke(5s));
    for (auto& name : names) name.reset();
    EXPECT_TRUE(memory.free());
  }
}

TEST_F(Holdout, OfAnAcceleratorsMemoryIsWaitedFor) {
  open("soft:0");
  auto revoked = block->region.revoke(200ms);
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, Code::timeout);
  EXPECT_NE(revoked.error().text.find("process " + std::to_string(user.pid())), std::string::npos)
      << revoked.error().text;
  auto freed = block->memory().free();
  ASSERT_FALSE(freed);
  EXPECT_EQ(freed.error().code, Code::again);
  user.kill_now();
  EXPECT_TRUE(block->region.revoke(10s));
  EXPECT_TRUE(block->memory().free());
}

// What waits for it goes with the Node, which would otherwise stay for ever: each would hold the other.
TEST_F(Holdout, DoesNotKeepAClosedNode) {
  const int fds = open_fds();
  open("soft:0");
  block.reset();
  ASSERT_EQ(counted(*node, "regions_draining"), 1);
  published.reset();
  node.reset();
  EXPECT_EQ(open_fds(), fds);
  user.kill_now();
}

}  // namespace
}  // namespace strait::flow
