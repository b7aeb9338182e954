// SPDX-License-Identifier: Apache-2.0
// Runs in the lab's guest: two Nodes that talk over rxe through the public API, and what the verbs rail says about how
// it reached the memory.
#include <sys/mman.h>

#include <cstring>

#include "device_proxy.hpp"
#include "flow.hpp"
#include "strait/plugin.h"
#include "sys/library.hpp"
#include "sys/mapping.hpp"
#include "sys/udmabuf.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kLength = 3 << 20;
constexpr const char* kByMapping = "dma-buf refused by rxe0 (EOPNOTSUPP), the mapping of its memfd was registered";

NodeOptions over_rxe(std::vector<std::pair<std::string, std::string>> more = {}) {
  more.emplace_back("nics", "verbs:rxe0");
  return settings(std::move(more));
}

nlohmann::json path_of(Block& block) {
  return nlohmann::json::parse(block.region.path());
}

struct Kinds {
  const char* owner;
  const char* asker;
};

class OverRxe : public testing::TestWithParam<Kinds> {
 protected:
  Pair pair{over_rxe(), over_rxe()};
  Block target{pair.owner, GetParam().owner, kLength, access::all};
  Block local{pair.asker, GetParam().asker, kLength, access::local};
  Published published = pair.owner.publish("block", target.region).value();
  Target place = pair.far.lookup("block").value();
};

TEST_P(OverRxe, MovesAndSaysHow) {
  std::uint32_t seed = 1;
  for (const std::size_t length : std::vector<std::size_t>{1, 100, 4097, 65536, kLength}) {
    SCOPED_TRACE(length);
    const auto bytes = pattern(length, ++seed);
    local.fill(bytes);
    auto put = pair.far.put(local.region.slice(0, length), place.at(kLength - length)).wait(60s);
    ASSERT_TRUE(put) << put.error().explain();
    EXPECT_NE(put->path.find("verbs rxe0"), std::string::npos) << put->path;
    EXPECT_EQ(target.read(kLength - length, length), bytes);
    local.fill(std::vector<std::uint8_t>(length));
    auto got = pair.far.get(local.region.slice(0, length), place.at(kLength - length)).wait(60s);
    ASSERT_TRUE(got) << got.error().explain();
    EXPECT_EQ(local.read(0, length), bytes);
  }
  for (auto [kind, block] : {std::pair{GetParam().owner, &target}, {GetParam().asker, &local}}) {
    const nlohmann::json path = path_of(*block);
    EXPECT_EQ(path["keys"][0]["nic"], "rxe0");
    const std::string registered = path["keys"][0]["registered"];
    const std::string chosen = path["chosen"];
    if (std::string(kind) == "host") {
      EXPECT_EQ(registered, "host pages, registered by address");
      EXPECT_EQ(chosen, "zero-copy: host pages -> rxe0 -> RoCEv2 packets");
    } else {
      EXPECT_EQ(registered, kByMapping);
      EXPECT_EQ(chosen, "zero-copy: mapped memfd -> rxe0 -> RoCEv2 packets");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lab, OverRxe,
                         testing::Values(Kinds{"host", "host"}, Kinds{"soft:0", "host"}, Kinds{"host", "soft:0"},
                                         Kinds{"soft:0", "soft:0"}));

TEST(VerbsRail, CountsHowItReachedMemory) {
  Pair pair(over_rxe(), over_rxe());
  Block block(pair.owner, "soft:0", 65536, access::all);
  const nlohmann::json nic = info(pair.owner)["nics"][0];
  EXPECT_EQ(nic["name"], "rxe0");
  EXPECT_TRUE(nic["software"]);
  EXPECT_EQ(nic["counters"]["by_dmabuf"], 0);
  EXPECT_EQ(nic["counters"]["dmabuf_refused"], 2) << "once for this side, once for peers";
  EXPECT_EQ(nic["counters"]["by_mapping"], 2);
  // It was a real dma-buf that was refused.
  EXPECT_GE(info(pair.owner)["counters"]["memory_soft"]["udmabuf_exports"], 1);
}

// One work request of many thousand packets. (rxe takes 2 GiB at once: the cutting is tested in verbs_rings.cpp.)
TEST(VerbsRail, MovesALongBlockWithAnImmediate) {
  constexpr std::size_t kLong = 40 << 20;
  Pair pair(over_rxe(), over_rxe());
  Block target(pair.owner, "host", kLong, access::all);
  Block local(pair.asker, "host", kLong, access::local);
  Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kLong, 3);
  local.fill(bytes);
  Operation receive = pair.near.receive_imm();
  auto put = pair.far.put(local.region.all(), place.at(0), {.imm = 9}).wait(120s);
  ASSERT_TRUE(put) << put.error().explain();
  auto received = receive.wait(60s);
  ASSERT_TRUE(received) << received.error().explain();
  EXPECT_EQ(received->imm, 9u);
  EXPECT_TRUE(target.read(0, kLong) == bytes);
}

// Work requests in the format of ConnectX, posted by CPU threads as a kernel would, on a device that never saw one.
TEST(VerbsRail, AGridPostsThroughTheProxy) {
  posts_through_the_proxy(over_rxe(), "rxe0");
}

TEST(VerbsRail, TellsKindsOfNicsApart) {
  Node soft = Node::open(settings()).value();
  Node rxe = Node::open(over_rxe()).value();
  const auto refused = rxe.connect(soft.address());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().explain().find("NIC address is not that of a"), std::string::npos)
      << refused.error().explain();
  const auto missing = Node::open(settings({{"nics", "verbs:rxe7"}}));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().explain().find("there are: rxe0"), std::string::npos) << missing.error().explain();
  const auto no_gid = Node::open(settings({{"nics", "verbs:rxe0/200"}}));
  ASSERT_FALSE(no_gid);
  EXPECT_NE(no_gid.error().explain().find("no GID of index 200"), std::string::npos) << no_gid.error().explain();
}

TEST(VerbsRail, TakesTheGidThatIsAskedFor) {
  Pair pair(settings({{"nics", "verbs:rxe0/2"}}), settings({{"nics", "verbs:rxe0/2"}}));
  EXPECT_EQ(info(pair.owner)["nics"][0]["address"], "fd00:db8:0:0:0:0:0:2");
  Block target(pair.owner, "host", 4096, access::all);
  Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  EXPECT_EQ(pair.far.fetch_add(place.at(0), 5).wait(60s).value().value, 0u);
  EXPECT_EQ(target.word(0), 5u);
}

TEST(VerbsRail, BothEndsOfAMessageTooLongFail) {
  Pair pair(over_rxe(), over_rxe());
  Block target(pair.owner, "host", 65536, access::local);
  Block local(pair.asker, "host", 65536, access::local);
  Operation receive = pair.near.receive(target.region.slice(0, 100));
  const auto sent = pair.far.send(local.region.slice(0, 5000)).wait(60s);
  const auto received = receive.wait(60s);
  ASSERT_FALSE(sent);
  ASSERT_FALSE(received);
  EXPECT_NE(sent.error().syndrome, 0u);
  EXPECT_NE(received.error().syndrome, 0u);
}

// A dma-buf whose pages nobody hands out: neither the driver nor its mapping can be had, and the error says what to do.
TEST(VerbsRail, ADmabufWithoutPagesIsToBeStaged) {
  const auto library = sys::Library::open(STRAIT_VERBS_LIBRARY).value();
  const strait_nic_ops* const ops = library.symbol<strait_nic_entry>(STRAIT_NIC_ENTRY).value()();
  strait_nic* nic = nullptr;
  strait_plugin_error error{};
  ASSERT_EQ(ops->open("device=rxe0", &nic, &error), 0) << error.text;
  std::uint32_t pd = 0;
  ASSERT_EQ(ops->alloc_pd(nic, &pd, &error), 0) << error.text;
  const auto memfd = sys::make_sealed_memfd("lab", 65536).value();
  const auto dmabuf = sys::make_udmabuf(memfd.get(), 0, 65536).value();
  strait_nic_mr_request request{};
  request.struct_size = sizeof request;
  request.pd = pd;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  request.fd = dmabuf.get();
  request.address = 0x10000;
  request.length_bytes = 65536;
  strait_nic_mr mr{};
  EXPECT_EQ(ops->register_memory(nic, &request, &mr, &error), static_cast<std::int32_t>(Code::unsupported));
  EXPECT_EQ(error.sys_errno, EFAULT);
  const std::string text = error.text;
  EXPECT_NE(text.find("dma-buf refused by rxe0 (EOPNOTSUPP)"), std::string::npos) << text;
  EXPECT_NE(text.find("no struct pages"), std::string::npos) << text;
  EXPECT_NE(text.find("staged through host memory"), std::string::npos) << text;

  // The same with the memfd behind it.
  request.access |= STRAIT_NIC_PAGES_FD;
  request.pages_fd = memfd.get();
  ASSERT_EQ(ops->register_memory(nic, &request, &mr, &error), 0) << error.text;
  char how[128] = {};
  EXPECT_EQ(ops->describe_mr(nic, mr.lkey, how, sizeof how), 0);
  EXPECT_STREQ(how, kByMapping);
  EXPECT_EQ(ops->free_pd(nic, pd, &error), static_cast<std::int32_t>(Code::again));
  EXPECT_EQ(ops->deregister_memory(nic, mr.lkey, &error), 0) << error.text;
  EXPECT_NE(ops->deregister_memory(nic, mr.lkey, &error), 0);

  // A file that could shrink under the device is not mapped at all.
  const sys::Fd loose(::memfd_create("loose", MFD_CLOEXEC));
  request.access = STRAIT_NIC_LOCAL_WRITE;
  request.fd = loose.get();
  EXPECT_NE(ops->register_memory(nic, &request, &mr, &error), 0);
  EXPECT_EQ(ops->free_pd(nic, pd, &error), 0) << error.text;
  ops->close(nic);
}

}  // namespace
}  // namespace strait::flow
