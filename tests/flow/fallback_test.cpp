// SPDX-License-Identifier: Apache-2.0
// reach=auto when the NIC is asked: what it refuses one way is reached by the next, and every refusal is told.
#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kLength = 1 << 20;

nlohmann::json export_of(const Region& region) {
  return nlohmann::json::parse(region.path())["export"];
}

std::string reason_of(const Region& region, const std::string& way) {
  const auto exported = export_of(region);
  for (const auto& each : exported["rejected"]) {
    if (each["way"] == way) return each["reason"];
  }
  return {};
}

// The row of the plan that refuses `way`, and the way that was chosen.
std::string refused_row(const nlohmann::json& plan, const std::string& way) {
  for (const auto& each : plan["ways"]) {
    if (each["label"] == way && each["verdict"] == "no") return each["reason"];
  }
  return {};
}
std::string chosen_of(const Region& region) {
  const auto path = nlohmann::json::parse(region.path());
  return path["chosen"].is_null() ? "none" : path["chosen"].get<std::string>();
}
nlohmann::json explained(Node& node, const std::string& from, const std::string& to) {
  return nlohmann::json::parse(node.explain(from, to, {.json = true}).value());
}
std::string chosen_of(const nlohmann::json& plan) {
  return plan["chosen"].is_null() ? "none" : plan["ways"][plan["chosen"].get<std::size_t>()]["name"].get<std::string>();
}

bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What ends a registration by address depends on the flavour of the client, and the region's path says it.
TEST(Lifetimes, PersistentPagesAreCalledThat) {
  for (const auto& [client, says] :
       {std::pair{"nvidia", "an upcall then ends"}, std::pair{"nvidia_persistent", "survive the free"}}) {
    Node node = Node::open(settings({{"reach", "peermem"}, {"peer_memory", client}})).value();
    Memory memory = node.allocate(kLength, {.near = "soft:0"}).value();
    const auto region = node.share(memory, access::all);
    ASSERT_TRUE(region) << region.error().explain();
    EXPECT_EQ(export_of(*region)["way"], "peer-memory client");
    EXPECT_TRUE(names(export_of(*region)["lifetime"], says)) << client << ": " << export_of(*region)["lifetime"];
  }
}

struct Refusal {
  const char* name;
  const char* faults;
  const char* peer_memory;
  const char* way;   // taken instead
  const char* by;    // that way, or what answered in its place
  const char* says;  // the dma-buf's reason
};
class Fallback : public testing::TestWithParam<Refusal> {};

TEST_P(Fallback, TheNextWayMovesTheData) {
  const NodeOptions options = settings({{"kernel_faults", GetParam().faults}, {"peer_memory", GetParam().peer_memory}});
  Pair pair(options, options);
  Block target(pair.owner, "soft:0", kLength, access::all);
  Block local(pair.asker, "soft:0", kLength, access::local);
  for (const Region* each : {&target.region, &local.region}) {
    EXPECT_EQ(export_of(*each)["way"], GetParam().way);
    EXPECT_TRUE(names(reason_of(*each, "dma-buf"), GetParam().says)) << reason_of(*each, "dma-buf");
    EXPECT_TRUE(names(chosen_of(*each), "zero-copy: " + std::string(GetParam().by) + " -> strait0")) << each->path();
    const auto path = nlohmann::json::parse(each->path());
    EXPECT_TRUE(names(refused_row(path, "dma-buf"), GetParam().says)) << path;
    EXPECT_EQ(names(refused_row(path, "peer-memory client"), "no client answered"),
              std::string(GetParam().by) != GetParam().way);
  }
  // What the Node has learned is in its plans, and in those that others make of it.
  for (const std::string& to : {std::string("host@peer"), "soft:0@" + pair.owner.address()}) {
    const auto plan = explained(pair.asker, "soft:0", to);
    EXPECT_TRUE(names(chosen_of(plan), "zero-copy: " + std::string(GetParam().way) + " -> strait0")) << plan;
    EXPECT_TRUE(names(refused_row(plan, "dma-buf"), GetParam().says)) << plan;
  }
  const auto there = explained(pair.asker, "host", "soft:0@" + pair.owner.address());
  EXPECT_TRUE(names(chosen_of(there), "-> strait0 -> " + std::string(GetParam().way) + " (soft:0)")) << there;
  EXPECT_TRUE(names(refused_row(there, "at the other end, dma-buf"), GetParam().says)) << there;
  EXPECT_GE(info(pair.owner)["counters"]["reach_fallbacks"], 1);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kLength, 7);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kLength), bytes);
  // What worked is remembered with the registration: nothing is refused again.
  const auto fallbacks = info(pair.asker)["counters"]["reach_fallbacks"];
  ASSERT_TRUE(pair.asker.share(local.memory(), access::local));
  EXPECT_EQ(info(pair.asker)["counters"]["reach_fallbacks"], fallbacks);
  EXPECT_EQ(info(pair.asker)["cache"]["hits"], 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, Fallback,
                         testing::Values(Refusal{"topology", "attach=524", "nvidia", "peer-memory client",
                                                 "peer-memory client", "refused this NIC"},
                                         Refusal{"no_registration", "attach=EOPNOTSUPP", "amd", "peer-memory client",
                                                 "peer-memory client", "no dma-buf registration"},
                                         Refusal{"no_path", "map=EPERM", "p2p", "nvidia_p2p pages", "nvidia_p2p pages",
                                                 "no peer-to-peer path"},
                                         Refusal{"client_too", "attach=524,acquire=EFAULT", "nvidia,p2p",
                                                 "peer-memory client", "nvidia_p2p pages", "refused this NIC"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(FallbackEnds, WithEveryRefusalInTheError) {
  Node node = Node::open(settings({{"kernel_faults", "attach=524,acquire=EFAULT,p2p_get=EINVAL"},
                                   {"peer_memory", "nvidia,p2p"}}))
                  .value();
  Memory memory = node.allocate(kLength, {.near = "soft:0"}).value();
  const int before = open_fds();
  for (int i = 0; i < 3; ++i) {  // by the NIC, then from memory
    const auto region = node.share(memory, i == 0 ? access::all : access::local);
    ASSERT_FALSE(region);
    const std::string& text = region.error().text;
    EXPECT_TRUE(names(text, "dma-buf: ") && names(text, "(errno 524)")) << text;
    EXPECT_TRUE(names(text, "peer-memory client: the accelerator")) << text;
    EXPECT_TRUE(names(text, "nvidia_p2p pages: ") && names(text, "gives no pages")) << text;
    EXPECT_TRUE(names(text, "staged through host: never silent")) << text;
    EXPECT_FALSE(region.error().remedy.empty());
  }
  EXPECT_FALSE(node.allocate(kLength, {.near = "soft:0", .networked = true}));
  EXPECT_EQ(open_fds(), before);
}

TEST(FallbackEnds, InHostMemoryOnlyWhereThatIsAllowed) {
  Pair pair(settings(), settings({{"kernel_faults", "attach=524"}, {"allow_staging", "1"}}));
  Block target(pair.owner, "soft:0", kLength, access::all);
  Block local(pair.asker, "soft:0", kLength, access::local);
  EXPECT_EQ(export_of(local.region)["way"], "staged through host");
  EXPECT_TRUE(names(reason_of(local.region, "dma-buf"), "errno 524"));
  EXPECT_EQ(chosen_of(local.region), "staged through host memory");
  EXPECT_TRUE(names(refused_row(nlohmann::json::parse(local.region.path()), "dma-buf"), "errno 524"));
  EXPECT_EQ(chosen_of(explained(pair.asker, "soft:0", "host@peer")), "staged through host memory");
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kLength, 3);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kLength), bytes);
  const auto strictly = pair.far.put(local.region.slice(0, 64), place.at(0), {.require = zero_copy}).wait(30s);
  ASSERT_FALSE(strictly);
  EXPECT_EQ(strictly.error().code, Code::unsupported);
  EXPECT_TRUE(names(strictly.error().text, "errno 524")) << "why it is staged: " << strictly.error().text;
  const auto for_peers = pair.asker.share(local.memory(), access::all);
  ASSERT_FALSE(for_peers) << "a peer is never given what is staged";
  EXPECT_TRUE(names(for_peers.error().text, "errno 524")) << for_peers.error().text;
  // Again after the first has gone, while the refusal is still remembered.
  Memory other = pair.asker.allocate(4096, {.near = "soft:0"}).value();
  for (int i = 0; i < 2; ++i) {
    const auto again = pair.asker.share(other, access::local);
    ASSERT_TRUE(again) << again.error().explain();
    EXPECT_EQ(export_of(*again)["way"], "staged through host");
  }
}

// The registration for this process's own use went well; the one for peers is refused.
TEST(FallbackEnds, PeersGoByTheirOwnWay) {
  Pair pair(settings({{"kernel_faults", "attach=524@2"}, {"peer_memory", "nvidia"}}));
  Block target(pair.owner, "soft:0", kLength, access::all);
  Block local(pair.asker, "host", kLength, access::local);
  EXPECT_EQ(export_of(target.region)["way"], "peer-memory client");
  EXPECT_TRUE(names(reason_of(target.region, "dma-buf"), "errno 524"));
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kLength, 5);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.all(), place.at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kLength), bytes);
}

TEST(FallbackEnds, AWayByNameAndWhatPassesAreNotReplaced) {
  Node named = Node::open(settings({{"kernel_faults", "attach=524"},
                                    {"peer_memory", "nvidia,p2p"},
                                    {"allow_staging", "1"},
                                    {"reach", "dmabuf"}}))
                   .value();
  Memory memory = named.allocate(4096, {.near = "soft:0"}).value();
  const auto refused = named.share(memory, access::local);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(names(refused.error().text, "errno 524")) << refused.error().text;
  Node resetting = Node::open(settings({{"kernel_faults", "map=EBUSY"}, {"allow_staging", "1"}})).value();
  Memory there = resetting.allocate(4096, {.near = "soft:0"}).value();
  const auto later = resetting.share(there, access::local);
  ASSERT_FALSE(later) << "a reset passes: nobody is to be slow for ever because of it";
  EXPECT_EQ(later.error().code, Code::again);
  EXPECT_TRUE(names(later.error().text, "in reset")) << later.error().text;
}

TEST(FallbackEnds, WhatIsAskedForByNameIsPlannedSo) {
  const auto planned = [](const char* reach) {
    Node node = Node::open(settings({{"peer_memory", "nvidia,p2p"}, {"reach", reach}})).value();
    const std::string before = chosen_of(explained(node, "soft:0", "host@peer"));
    Memory memory = node.allocate(4096, {.near = "soft:0"}).value();
    const Region region = node.share(memory, access::local).value();
    EXPECT_EQ(chosen_of(explained(node, "soft:0", "host@peer")), before) << "registering taught nothing else";
    const std::string taken = chosen_of(region);
    const auto way = [](const std::string& name) { return name.substr(0, name.find(" -> ")); };
    EXPECT_EQ(way(taken), way(before));
    return way(taken);
  };
  EXPECT_EQ(planned("dmabuf"), "zero-copy: dma-buf");
  EXPECT_EQ(planned("peermem"), "zero-copy: peer-memory client");
  EXPECT_EQ(planned("p2p"), "zero-copy: nvidia_p2p pages");
  EXPECT_EQ(planned("staged"), "staged through host memory");
}

// A refusal that passed is forgotten as soon as memory is registered the first way.
TEST(FallbackEnds, TheLastRegistrationIsWhatIsPlannedFor) {
  Node node = Node::open(settings({{"kernel_faults", "attach=524@1"}, {"peer_memory", "nvidia"}})).value();
  Memory one = node.allocate(4096, {.near = "soft:0"}).value();
  Memory two = node.allocate(4096, {.near = "soft:0"}).value();
  const Region first = node.share(one, access::local).value();
  EXPECT_TRUE(names(chosen_of(explained(node, "soft:0", "host@peer")), "peer-memory client"));
  const Region second = node.share(two, access::local).value();
  EXPECT_TRUE(names(chosen_of(explained(node, "soft:0", "host@peer")), "dma-buf"));
  EXPECT_TRUE(names(chosen_of(first), "peer-memory client")) << "each region knows its own way";
  EXPECT_TRUE(names(chosen_of(second), "dma-buf"));
}

// Two NICs, of which the kernel refuses one: the other is not spoilt by it.
class OneNicRefuses : public testing::TestWithParam<int> {};

TEST_P(OneNicRefuses, TheOtherServes) {
  const std::string bad = "strait" + std::to_string(GetParam());
  const std::string good = "strait" + std::to_string(1 - GetParam());
  const NodeOptions options =
      settings({{"nics", "soft:2"}, {"grant", "ring"}, {"kernel_faults", std::to_string(GetParam()) + ":attach=524"}});
  Pair pair(options, options);
  Block target(pair.owner, "soft:0", kLength, access::all);
  Block local(pair.asker, "soft:0", kLength, access::local);
  for (const Region* each : {&target.region, &local.region}) {
    const auto path = nlohmann::json::parse(each->path());
    EXPECT_EQ(path["export"]["way"], "dma-buf fd") << "the way that works, not the next one";
    for (const auto& key : path["keys"]) {
      EXPECT_EQ(key.contains("lkey"), key["nic"] == good) << key;
      EXPECT_EQ(key.contains("refused"), key["nic"] == bad) << key;
      if (key["nic"] == bad) {
        EXPECT_TRUE(names(key["refused"], "refused this NIC")) << key;
      }
    }
    EXPECT_TRUE(names(chosen_of(*each), "-> " + good)) << each->path();
    bool said = false;
    for (const auto& way : path["ways"]) said = said || names(way["reason"], bad + " did not take the memory: ");
    EXPECT_TRUE(said) << path;
  }
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kLength, 21);
  local.fill(bytes);
  Lane one = pair.far.lane().value();
  Lane other = pair.far.lane().value();
  Lane& works = one.path().starts_with(good) ? one : other;
  Lane& refuses = one.path().starts_with(good) ? other : one;
  ASSERT_TRUE(works.path().starts_with(good) && refuses.path().starts_with(bad)) << one.path() << other.path();
  ASSERT_TRUE(works.put(local.region.all(), place.at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kLength), bytes);
  // Over the other one each end has its sentence, and the lane is still good for other memory.
  const auto from_here = refuses.put(local.region.all(), place.at(0)).wait(30s);
  ASSERT_FALSE(from_here);
  EXPECT_EQ(from_here.error().code, Code::unsupported);
  EXPECT_TRUE(names(from_here.error().text, bad + " did not take this memory of soft:0")) << from_here.error().text;
  EXPECT_TRUE(names(from_here.error().text, "refused this NIC")) << from_here.error().text;
  Block host(pair.asker, "host", kLength, access::local);
  const auto to_there = refuses.put(host.region.all(), place.at(0)).wait(30s);
  ASSERT_FALSE(to_there);
  EXPECT_TRUE(names(to_there.error().text, "that this lane ends at did not take the target's memory"))
      << to_there.error().text;
  EXPECT_FALSE(refuses.fetch_add(place.at(0), 1).wait(30s));
  Block elsewhere(pair.owner, "host", kLength, access::all);
  const Published there = pair.owner.publish("elsewhere", elsewhere.region).value();
  host.fill(bytes);
  ASSERT_TRUE(refuses.put(host.region.all(), pair.far.lookup("elsewhere").value().at(0)).wait(30s));
  EXPECT_EQ(elsewhere.read(0, kLength), bytes);
  // From memory, too.
  const auto registered = info(pair.asker)["cache"]["registered"];
  const Region again = pair.asker.share(local.memory(), access::local).value();
  EXPECT_TRUE(names(chosen_of(again), "-> " + good)) << again.path();
  EXPECT_EQ(info(pair.asker)["cache"]["registered"], registered);
}
INSTANTIATE_TEST_SUITE_P(Nics, OneNicRefuses, testing::Values(0, 1),
                         [](const auto& each) { return "number_" + std::to_string(each.param); });

TEST(BothNicsRefuse, AndThatIsAnError) {
  Node node = Node::open(settings({{"nics", "soft:2"}, {"kernel_faults", "0:attach=524,1:map=EPERM"}})).value();
  Memory memory = node.allocate(kLength, {.near = "soft:0"}).value();
  const auto region = node.share(memory, access::all);
  ASSERT_FALSE(region);
  EXPECT_TRUE(names(region.error().text, "errno 524")) << region.error().text;
}

// A window of 1 MiB for 4 MiB of memory.
TEST(BarBudget, WhatFitsIsRegisteredInSlicesAndTheRestIsRefused) {
  Pair pair(settings({{"kernel_faults", "bar=1M"}}));
  Memory memory = pair.owner.allocate(4 << 20, {.near = "soft:0"}).value();
  const auto part = [&](std::size_t i) {
    return pair.owner.share(static_cast<std::uint8_t*>(memory.data()) + i * (256 << 10), 256 << 10, access::all);
  };
  const auto whole = pair.owner.share(memory, access::local);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Code::limit);
  EXPECT_TRUE(names(whole.error().text, "the accelerator's BAR")) << whole.error().text;
  std::vector<Region> slices;
  for (std::size_t i = 0; i < 2; ++i) {  // twice each: for this process and for peers
    auto slice = part(i);
    ASSERT_TRUE(slice) << slice.error().explain();
    EXPECT_TRUE(names(export_of(*slice)["text"], "these 262144 bytes only: ")) << export_of(*slice);
    slices.push_back(std::move(*slice));
  }
  const auto third = part(2);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::limit);
  EXPECT_TRUE(names(third.error().remedy, "deregister something")) << third.error().explain();
  Block local(pair.asker, "host", 256 << 10, access::local);
  const auto bytes = pattern(256 << 10, 4);
  local.fill(bytes);
  const Published published = pair.owner.publish("part", slices[1]).value();
  ASSERT_TRUE(pair.far.put(local.region.all(), pair.far.lookup("part").value().at(0)).wait(30s));
  std::vector<std::uint8_t> there(bytes.size());
  ASSERT_TRUE(pair.owner.copy(there.data(), static_cast<std::uint8_t*>(memory.data()) + (256 << 10), there.size()));
  EXPECT_EQ(there, bytes);
  slices.erase(slices.begin());
  EXPECT_TRUE(part(2)) << "room again";
  EXPECT_EQ(info(pair.owner)["cache"]["entries"], 0) << "slices are not remembered";
}

}  // namespace
}  // namespace strait::flow
