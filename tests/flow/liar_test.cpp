// SPDX-License-Identifier: Apache-2.0
// A peer that keeps pages which it says, or by going lets the owner think, that it has let go of. By default its word
// is taken; with revoked_pages=leave it has pages that are nobody's any more.
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "flow.hpp"
#include "process.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kLiarsBytes = 65536;

int counter_of(Node& node, const char* what) {
  return info(node)["counters"].value(what, 0);
}

std::string said_way(Operation operation) {
  const auto done = operation.wait(10s);
  return done ? done->path.str().substr(0, done->path.str().find(" -> ")) : done.error().text;
}

// Another mapping of the pages of which this process has one that begins with these bytes. What the library unmaps it
// does not know of. Null: there is none.
std::uint8_t* keep_pages(const std::vector<std::uint8_t>& bytes) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
    if (rights != "rw-s" || line.find("memfd:") == std::string::npos || end - begin < bytes.size()) continue;
    void* const at = reinterpret_cast<void*>(begin);  // NOLINT: that is what the kernel tells
    if (std::memcmp(at, bytes.data(), bytes.size()) != 0) continue;
    void* const kept = ::mremap(at, 0, bytes.size(), MREMAP_MAYMOVE);  // from 0: the old one stays
    if (kept != MAP_FAILED) return static_cast<std::uint8_t*>(kept);
  }
  return nullptr;
}

// Puts, keeps, and says at each step what is asked for. "go": its Node goes, as if it had handed the pages on.
void lie(Process::Wire wire) {
  std::optional<Node> node = Node::open(settings()).value();
  std::optional<Peer> peer = node->connect(wire.hear()).value();
  std::optional<Target> place = peer->lookup("block").value();
  std::optional<Block> local(std::in_place, *node, "host", kLiarsBytes, access::local);
  local->fill(pattern(kLiarsBytes, 1));
  wire.say(said_way(peer->put(local->region.all(), place->at(0))));
  local->fill(pattern(kLiarsBytes, 2));
  std::uint8_t* const kept = keep_pages(pattern(kLiarsBytes, 1));
  wire.say(kept == nullptr ? "nothing to keep" : "kept");
  if (kept == nullptr) return;
  if (wire.hear() == "go") {
    local.reset();
    place.reset();
    peer.reset();
    node.reset();
  }
  wire.say("here");
  (void)wire.hear();
  wire.say(std::memcmp(kept, pattern(kLiarsBytes, 3).data(), kLiarsBytes) == 0 ? "sees what came later"
                                                                               : "sees nothing new");
  std::fill_n(kept, kLiarsBytes, std::uint8_t{0xee});
  wire.say("written");
  (void)wire.hear();
}

struct Case {
  const char* name;
  const char* option;
  bool goes;
};
class Liar : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] bool leaves() const { return std::string(GetParam().option) == "leave"; }
};
INSTANTIATE_TEST_SUITE_P(Pages, Liar,
                         ::testing::Values(Case{"BelievedWhenItLetsGo", "keep", false},
                                           Case{"BelievedWhenItGoes", "keep", true},
                                           Case{"LeftThePagesWhenItLetsGo", "leave", false},
                                           Case{"LeftThePagesWhenItGoes", "leave", true}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(Liar, Is) {
  Process liar{lie};
  Node node = Node::open(settings({{"revoked_pages", GetParam().option}})).value();
  Block block(node, "host", kLiarsBytes, access::all);
  Published published = node.publish("block", block.region).value();
  liar.wire().say(node.address());
  ASSERT_EQ(liar.wire().hear(), "map grant");
  ASSERT_EQ(liar.wire().hear(), "kept");
  liar.wire().say(GetParam().goes ? "go" : "stay");
  ASSERT_EQ(liar.wire().hear(), "here");

  const auto revoked = block.region.revoke(20s);
  ASSERT_TRUE(revoked) << revoked.error().explain();
  EXPECT_EQ(counter_of(node, "grant_holdouts"), 0) << "nobody is suspected";
  EXPECT_EQ(counter_of(node, "pages_left"), leaves() ? 1 : 0);
  EXPECT_EQ(block.read(0, kLiarsBytes), pattern(kLiarsBytes, 1));
  block.fill(pattern(kLiarsBytes, 3));
  liar.wire().say("look");
  EXPECT_EQ(liar.wire().hear(), leaves() ? "sees nothing new" : "sees what came later");
  ASSERT_EQ(liar.wire().hear(), "written");
  EXPECT_EQ(block.read(0, kLiarsBytes),
            leaves() ? pattern(kLiarsBytes, 3) : std::vector<std::uint8_t>(kLiarsBytes, 0xee));

  // The memory is as good as before.
  Region again = node.share(block.memory(), access::all).value();
  EXPECT_TRUE(again.revoke(5s));
  EXPECT_TRUE(block.memory().free());
}

// Other regions of the memory are used by their peers with the pages it has: the last that ends leaves them.
TEST(LiarOfTwoRegions, IsLeftThePagesWithTheLast) {
  for (const bool dropped : {false, true}) {
    SCOPED_TRACE(dropped ? "the regions are dropped" : "the regions are revoked");
    Process liar{lie};
    Node node = Node::open(settings({{"revoked_pages", "leave"}})).value();
    Memory memory = node.allocate(kLiarsBytes).value();
    std::optional<Region> mapped = node.share(memory, access::all).value();
    std::optional<Region> other = node.share(memory, access::local).value();  // nobody was told of it
    std::vector<Published> published;
    published.push_back(node.publish("block", *mapped).value());
    liar.wire().say(node.address());
    ASSERT_EQ(liar.wire().hear(), "map grant");
    ASSERT_EQ(liar.wire().hear(), "kept");
    liar.wire().say("stay");
    ASSERT_EQ(liar.wire().hear(), "here");
    EXPECT_TRUE(mapped->revoke(20s));
    if (dropped) {
      published.clear();
      mapped.reset();
    }
    EXPECT_EQ(counter_of(node, "pages_left"), 0);
    if (dropped) {
      other.reset();
    } else {
      EXPECT_TRUE(other->revoke(20s));
    }
    EXPECT_EQ(counter_of(node, "pages_left"), 1);
    const auto later = pattern(kLiarsBytes, 3);
    {
      [[maybe_unused]] const Unwatched unwatched;
      std::copy(later.begin(), later.end(), static_cast<std::uint8_t*>(memory.data()));
    }
    liar.wire().say("look");
    EXPECT_EQ(liar.wire().hear(), "sees nothing new");
    ASSERT_EQ(liar.wire().hear(), "written");
    {
      [[maybe_unused]] const Unwatched unwatched;
      EXPECT_EQ(std::memcmp(memory.data(), later.data(), kLiarsBytes), 0);
    }
    published.clear();
    mapped.reset();
    other.reset();
    EXPECT_TRUE(memory.free());
  }
}

// What no peer has mapped keeps its pages: leaving them costs a look at each.
TEST(RevokedPages, OfMemoryThatWasNotMappedStay) {
  Pair pair(settings({{"revoked_pages", "leave"}, {"grant", "copy"}}), settings());
  Block target(pair.owner, "host", kLiarsBytes, access::all);
  Block local(pair.asker, "host", kLiarsBytes, access::local);
  Published published = pair.owner.publish("block", target.region).value();
  EXPECT_EQ(said_way(pair.far.put(local.region.all(), pair.far.lookup("block").value().at(0))), "copy grant");
  EXPECT_TRUE(target.region.revoke(20s));
  EXPECT_EQ(counter_of(pair.owner, "pages_left"), 0);
}

}  // namespace
}  // namespace strait::flow
