// SPDX-License-Identifier: Apache-2.0
// Every operation, for host and accelerator memory on either side, byte for byte.
#include "flow.hpp"

namespace strait::flow {
namespace {

struct Kinds {
  friend std::ostream& operator<<(std::ostream& out, const Kinds& kinds) {
    return out << kinds.asker << " to " << kinds.owner;
  }
  std::string owner;
  std::string asker;
};

bool says(const PathText& path, const std::string& word) {
  return path.find(word) != std::string::npos;
}

class Move : public testing::TestWithParam<Kinds> {
 protected:
  static constexpr std::size_t kLength = 1 << 20;
  Pair pair;
  Block target{pair.owner, GetParam().owner, kLength, access::all};
  Block local{pair.asker, GetParam().asker, kLength, access::local};
  Published published = pair.owner.publish("block", target.region).value();
  Target place = pair.far.lookup("block").value();
};

TEST_P(Move, PutsOfEverySizeArrive) {
  Lane lane = pair.far.lane().value();
  const std::string nic = info(pair.asker)["nics"][0]["name"];
  std::uint32_t seed = 1;
  for (const std::size_t length :
       std::vector<std::size_t>{1, 4, 8, 12, 13, 28, 29, 64, 92, 93, 4096, 8191, 65536, kLength}) {
    const auto bytes = pattern(length, ++seed);
    local.fill(bytes);
    auto done = lane.put(local.region.slice(0, length), place.at(kLength - length)).wait(5s);
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_EQ(done->bytes, length);
    EXPECT_TRUE(says(done->path, nic) || says(done->path, "map grant") || says(done->path, "copy grant")) << done->path;
    EXPECT_EQ(target.read(kLength - length, length), bytes) << length;
  }
}

TEST_P(Move, GetsOfEverySizeArrive) {
  std::uint32_t seed = 100;
  for (const std::size_t length : std::vector<std::size_t>{1, 8, 100, 4097, 65536, kLength}) {
    const auto bytes = pattern(length, ++seed);
    target.fill(bytes, kLength - length);
    auto done = pair.far.get(local.region.slice(0, length), place.at(kLength - length)).wait(5s);
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_EQ(local.read(0, length), bytes) << length;
  }
}

TEST_P(Move, AnEmptyPutCompletes) {
  auto done = pair.far.put(local.region.slice(0, 0), place.at(kLength)).wait(5s);
  ASSERT_TRUE(done) << done.error().explain();
  EXPECT_EQ(done->bytes, 0u);
}

TEST_P(Move, AtomicsReturnWhatWasThere) {
  target.fill(std::vector<std::uint8_t>(64));
  auto first = pair.far.fetch_add(place.at(8), 5).wait(5s);
  ASSERT_TRUE(first) << first.error().explain();
  EXPECT_EQ(first->value, 0u);
  EXPECT_EQ(pair.far.fetch_add(place.at(8), 7).wait(5s).value().value, 5u);
  EXPECT_EQ(target.word(8), 12u);
  EXPECT_EQ(pair.far.compare_swap(place.at(8), 99, 1).wait(5s).value().value, 12u);
  EXPECT_EQ(target.word(8), 12u);
  EXPECT_EQ(pair.far.compare_swap(place.at(8), 12, 0x0102030405060708).wait(5s).value().value, 12u);
  EXPECT_EQ(target.word(8), 0x0102030405060708u);
}

TEST_P(Move, AMessageFindsTheReceive) {
  const auto bytes = pattern(5000, 7);
  local.fill(bytes);
  Operation receive = pair.near.receive(target.region.slice(4096, 8192));
  auto sent = pair.far.send(local.region.slice(0, 5000), {.imm = 0xfeedu}).wait(5s);
  ASSERT_TRUE(sent) << sent.error().explain();
  auto received = receive.wait(5s);
  ASSERT_TRUE(received) << received.error().explain();
  EXPECT_EQ(received->bytes, 5000u);
  EXPECT_EQ(received->imm, 0xfeedu);
  EXPECT_EQ(target.read(4096, 5000), bytes);
}

TEST_P(Move, AnImmediateArrivesAfterThePut) {
  const auto bytes = pattern(3000, 8);
  local.fill(bytes);
  Operation receive = pair.near.receive_imm();
  ASSERT_TRUE(pair.far.put(local.region.slice(0, 3000), place.at(0), {.imm = 77}).wait(5s));
  auto received = receive.wait(5s);
  ASSERT_TRUE(received) << received.error().explain();
  EXPECT_EQ(received->imm, 77u);
  EXPECT_EQ(target.read(0, 3000), bytes);
}

TEST_P(Move, ASignalComesAfterTheData) {
  const auto bytes = pattern(200000, 9);
  local.fill(bytes);
  Operation put = pair.far.put(local.region.slice(0, bytes.size()), place.at(0), {.signal = 3, .signal_add = 40});
  auto seen = target.region.signal(3).wait_until_at_least(40, 5s);
  ASSERT_TRUE(seen) << seen.error().explain();
  EXPECT_EQ(target.read(0, bytes.size()), bytes);
  ASSERT_TRUE(put.wait(5s));
  ASSERT_TRUE(target.region.signal(3).write(0));
  EXPECT_EQ(target.region.signal(3).read().value(), 0u);
}

TEST_P(Move, ABatchIsOneOperation) {
  const auto bytes = pattern(64 * 100, 10);
  local.fill(bytes);
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < 64; ++i)
    items.push_back({Item::put, local.region.slice(i * 100, 100), place.at(i * 1000)});
  auto done = pair.far.batch(items, {.signal = 0}).wait(5s);
  ASSERT_TRUE(done) << done.error().explain();
  EXPECT_EQ(done->bytes, bytes.size());
  EXPECT_EQ(target.region.signal(0).read().value(), 1u);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(target.read(i * 1000, 100), std::vector(bytes.begin() + static_cast<long>(i * 100),
                                                      bytes.begin() + static_cast<long>(i * 100 + 100)));
  }
  const Item back[] = {{Item::get, local.region.slice(500000, 100), place.at(0)},
                       {Item::get, local.region.slice(600000, 100), place.at(1000)}};
  ASSERT_TRUE(pair.far.batch(back).wait(5s));
  EXPECT_EQ(local.read(600000, 100), target.read(1000, 100));
}

TEST_P(Move, FlushWaitsForDetachedPuts) {
  Lane lane = pair.far.lane(64, kDefaultDeadline, 16).value();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t value = i * 3 + 1;
    std::vector<std::uint8_t> bytes(8);
    std::memcpy(bytes.data(), &value, 8);
    local.fill(bytes, i * 8);
    for (;;) {
      Operation put = lane.put(local.region.slice(i * 8, 8), place.at(i * 16));
      if (put.posted()) {
        put.detach();
        break;
      }
      ASSERT_TRUE(lane.flush(5s));
    }
  }
  ASSERT_TRUE(lane.flush(5s));
  for (std::uint64_t i = 0; i < 1000; i += 37) EXPECT_EQ(target.word(i * 16), i * 3 + 1);
}

TEST_P(Move, AFenceOrdersAPutAfterAGet) {
  target.fill(pattern(65536, 1));
  local.fill(pattern(64, 2), 500000);
  Lane lane = pair.far.lane().value();
  Operation get = lane.get(local.region.slice(0, 65536), place.at(0));
  Operation put = lane.put(local.region.slice(500000, 64), place.at(0), {.fence = true});
  ASSERT_TRUE(put.wait(5s));
  ASSERT_TRUE(get.wait(5s));
  EXPECT_EQ(local.read(0, 65536), pattern(65536, 1));
  EXPECT_EQ(target.read(0, 64), pattern(64, 2));
}

TEST_P(Move, BothSidesMayPut) {
  Block back(pair.asker, GetParam().asker, 4096, access::all);
  Published name = pair.asker.publish("back", back.region).value();
  auto there = pair.near.lookup("back", 5s);
  ASSERT_TRUE(there) << there.error().explain();
  target.fill(pattern(4096, 55));
  auto done = pair.near.put(target.region.slice(0, 4096), there->at(0)).wait(5s);
  ASSERT_TRUE(done) << done.error().explain();
  EXPECT_EQ(back.read(0, 4096), pattern(4096, 55));
}

INSTANTIATE_TEST_SUITE_P(Memory, Move,
                         testing::Values(Kinds{"host", "host"}, Kinds{"soft:0", "host"}, Kinds{"host", "soft:0"},
                                         Kinds{"soft:0", "soft:0"}),
                         [](const auto& kinds) {
                           const auto name = [](const std::string& kind) {
                             return kind == "host" ? std::string("Host") : std::string("Soft");
                           };
                           return name(kinds.param.asker) + "To" + name(kinds.param.owner);
                         });

// Two equal NICs: lanes take them in turn, each by keys of its own, and a lane for a device takes the one that the plan
// names for it. What arrives over the second is counted there.
class TwoNics : public testing::Test {
 protected:
  static NodeOptions options() { return settings({{"nics", "soft:2"}, {"grant", "ring"}, {"accelerators", "soft:2"}}); }
  static std::uint64_t posted(Node& node, std::size_t nic) {
    return info(node)["nics"][nic]["counters"]["work_requests"];
  }
};

TEST_F(TwoNics, EachCarriesItsLanes) {
  constexpr std::size_t kSome = 300'000;
  Pair pair(options(), options());
  Block target(pair.owner, "soft:0", kSome, access::all);
  Block local(pair.asker, "soft:1", kSome, access::local);
  const Published published = pair.owner.publish("target", target.region).value();
  const Target place = pair.far.lookup("target").value();
  std::vector<Lane> lanes;
  for (int i = 0; i < 2; ++i) lanes.push_back(pair.far.lane().value());
  if (lanes[0].path().starts_with("strait1")) std::swap(lanes[0], lanes[1]);
  for (std::size_t nic = 0; nic < 2; ++nic) {
    SCOPED_TRACE(lanes[nic].path());
    const std::string name = "strait" + std::to_string(nic);
    ASSERT_TRUE(lanes[nic].path().starts_with(name + " -> "));
    const auto bytes = pattern(kSome, static_cast<std::uint32_t>(nic) + 31);
    local.fill(bytes);
    const std::uint64_t here = posted(pair.asker, nic);
    const std::uint64_t beside = posted(pair.asker, 1 - nic);
    auto done = lanes[nic].put(local.region.all(), place.at(0), {.signal = 5}).wait(30s);
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_TRUE(says(done->path, name)) << done->path.str();
    EXPECT_EQ(target.read(0, kSome), bytes);
    EXPECT_EQ(target.region.signal(5).read().value(), nic + 1) << "signals have a key of each NIC";
    EXPECT_GT(posted(pair.asker, nic), here);
    EXPECT_EQ(posted(pair.asker, 1 - nic), beside) << "the other one had no part in it";
    const auto other = pattern(kSome, static_cast<std::uint32_t>(nic) + 41);
    target.fill(other);
    ASSERT_TRUE(lanes[nic].get(local.region.all(), place.at(0)).wait(30s));
    EXPECT_EQ(local.read(0, kSome), other);
    target.fill(std::vector<std::uint8_t>(8));
    ASSERT_TRUE(lanes[nic].fetch_add(place.at(0), 7).wait(30s));
    EXPECT_EQ(target.word(0), 7u);
    // A ticket for a part has keys of its own, of each NIC.
    const Ticket ticket = target.region.ticket(access::remote_write, 10s, 4096, 4096).value();
    const Target part = pair.far.redeem(ticket).value();
    ASSERT_TRUE(lanes[nic].put(local.region.slice(0, 4096), part.at(0)).wait(30s));
    EXPECT_EQ(target.read(4096, 4096), std::vector<std::uint8_t>(other.begin(), other.begin() + 4096));
  }
  // Both ends may begin, over whichever NIC the peer's lane has.
  Block mine(pair.asker, "host", kSome, access::all);
  Block theirs(pair.owner, "host", kSome, access::local);
  const Published back = pair.asker.publish("back", mine.region).value();
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto bytes = pattern(kSome, i + 51);
    theirs.fill(bytes);
    Lane lane = pair.near.lane().value();
    ASSERT_TRUE(lane.put(theirs.region.all(), pair.near.lookup("back").value().at(0)).wait(30s)) << lane.path();
    EXPECT_EQ(mine.read(0, kSome), bytes);
  }
}

TEST_F(TwoNics, ALaneForADeviceTakesTheNicOfThePlan) {
  Pair pair(options(), options());
  std::set<std::string> taken;
  for (const std::string device : {"soft:0", "soft:1"}) {
    const auto plan =
        nlohmann::json::parse(pair.asker.explain(device, "host@" + pair.owner.address(), {.json = true}).value());
    ASSERT_FALSE(plan["chosen"].is_null()) << plan;
    const std::string nic = plan["ways"][plan["chosen"].get<std::size_t>()]["nic"];
    for (int i = 0; i < 2; ++i) {
      const Lane lane = pair.far.lane(0, 10s, 1, device).value();
      EXPECT_TRUE(lane.path().starts_with(nic + " -> ")) << lane.path() << ", planned " << nic;
    }
    taken.insert(nic);
  }
  EXPECT_EQ(taken.size(), 2u) << "equal NICs are shared out among the devices";
  const auto unknown = pair.far.lane(0, 10s, 1, "soft:7");
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().text.find("there is no memory device \"soft:7\"") != std::string::npos);
}

}  // namespace
}  // namespace strait::flow
