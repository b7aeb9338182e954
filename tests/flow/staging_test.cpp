// SPDX-License-Identifier: Apache-2.0
// Staging through host memory: the vendor pins the buffer, and its copies and the NIC are at work at the same time.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "counting_provider.h"
#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::size_t kPieces = 5;
constexpr std::size_t kAll = kPieces * kPiece;

counting_control& staged_control() {
  static counting_control* const found = [] {
    void* const library = ::dlopen(STRAIT_COUNTING_PROVIDER, RTLD_NOW);
    return reinterpret_cast<counting_control_entry>(::dlsym(library, COUNTING_CONTROL))();
  }();
  return *found;
}

// Looks on from inside the provider, whose copies end when this lets them.
class Staged : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    staged_control() = {};
    staged_control().can_pin = 1;
  }
  void TearDown() override { staged_control() = {}; }
  [[nodiscard]] static NodeOptions staged() {
    return settings({{"reach", "staged"},
                     {"staging_piece", "64K"},
                     {"deadline", "20s"},
                     {"plugins", STRAIT_COUNTING_PROVIDER},
                     {"progress", GetParam()}});
  }
  // What the NIC writes while this looks on.
  [[nodiscard]] static bool came(const std::uint8_t* bytes, const std::uint8_t* wanted) {
    [[maybe_unused]] const Unwatched unwatched;
    return std::memcmp(bytes, wanted, kPiece) == 0;
  }
};

struct Puts {
  const std::uint8_t* target = nullptr;
  const std::uint8_t* bytes = nullptr;
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> ahead{0};  // began before the piece before had been put

  [[nodiscard]] bool arrived(std::size_t piece) const {
    [[maybe_unused]] const Unwatched unwatched;
    return std::memcmp(target + piece * kPiece, bytes + piece * kPiece, kPiece) == 0;
  }
};

// A copy begins before the NIC has the piece before it, and does not end before the NIC is done with that one.
TEST_P(Staged, TheNextPieceIsCopiedWhileTheNicPutsOne) {
  Pair pair(settings(), staged());
  Block target(pair.owner, "host", kAll, access::all);
  Block local(pair.asker, "counted:0", kAll, access::local);
  EXPECT_EQ(staged_control().pinned, 1u);
  EXPECT_EQ(staged_control().pinned_bytes, kAll);
  EXPECT_EQ(info(pair.asker)["counters"]["staged_pinned"], 1);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kAll, 21);
  local.fill(bytes);
  Puts seen;
  seen.target = static_cast<const std::uint8_t*>(target.memory().data());
  seen.bytes = bytes.data();
  staged_control().context = &seen;
  staged_control().on_copy = [](void* context, std::uint64_t, std::uint64_t, std::uint64_t) {
    Puts& here = *static_cast<Puts*>(context);
    const std::size_t piece = here.begun.fetch_add(1);
    if (piece > 0 && !here.arrived(piece - 1)) ++here.ahead;
  };
  staged_control().may_end = [](void* context) {
    const Puts& here = *static_cast<Puts*>(context);
    const std::size_t piece = here.begun.load() - 1;
    return piece == 0 || here.arrived(piece - 1) ? 1 : 0;
  };
  Lane lane = pair.far.lane().value();
  const auto put = lane.put(local.region.slice(0, kAll), place.at(0)).wait(30s);
  staged_control().on_copy = nullptr;
  staged_control().may_end = nullptr;
  ASSERT_TRUE(put) << put.error().explain();
  EXPECT_EQ(seen.begun, kPieces);
  EXPECT_EQ(seen.ahead, kPieces - 1);
  EXPECT_EQ(target.read(0, kAll), bytes);
}

struct Gets {
  const std::uint8_t* bytes = nullptr;
  std::uint64_t bounce = 0;
  std::atomic<std::size_t> begun{0};
};

// A piece goes to the device while the next one is on its way: the copy ends when that one is here.
TEST_P(Staged, TheNextPieceArrivesWhileOneIsCopied) {
  Pair pair(settings(), staged());
  Block target(pair.owner, "host", kAll, access::all);
  Block local(pair.asker, "counted:0", kAll, access::local);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kAll, 22);
  target.fill(bytes);
  Gets seen;
  seen.bytes = bytes.data();
  staged_control().context = &seen;
  staged_control().on_copy = [](void* context, std::uint64_t, std::uint64_t from, std::uint64_t) {
    Gets& here = *static_cast<Gets*>(context);
    if (here.begun.fetch_add(1) == 0) here.bounce = from;
  };
  staged_control().may_end = [](void* context) {
    const Gets& here = *static_cast<Gets*>(context);
    const std::size_t next = here.begun.load();
    if (next == kPieces) return 1;
    return came(reinterpret_cast<const std::uint8_t*>(here.bounce) + next * kPiece, here.bytes + next * kPiece) ? 1 : 0;
  };
  Lane lane = pair.far.lane().value();
  const auto got = lane.get(local.region.slice(0, kAll), place.at(0)).wait(30s);
  staged_control().on_copy = nullptr;
  staged_control().may_end = nullptr;
  ASSERT_TRUE(got) << got.error().explain();
  EXPECT_EQ(seen.begun, kPieces);
  EXPECT_EQ(local.read(0, kAll), bytes);
}

TEST_P(Staged, WhatIsPinnedIsLetGo) {
  Node node = Node::open(staged()).value();
  Memory memory = node.allocate(kAll, {.near = "counted:0"}).value();
  for (int i = 0; i < 3; ++i) {
    const auto region = node.share(memory, access::local);
    ASSERT_TRUE(region) << region.error().explain();
    EXPECT_EQ(staged_control().pinned, 1u);
  }
  EXPECT_EQ(staged_control().pinned, 0u);
}

INSTANTIATE_TEST_SUITE_P(Progress, Staged, testing::Values("thread", "caller"),
                         [](const auto& each) { return std::string(each.param); });

// Under `strait run` with a vendor's driver in software: the one whose copies need it pins the buffer.
TEST(StagedBy, AVendorThatPinsHostMemory) {
  const bool pins = test_kind() == "cuda";  // the others lock or map what a copy needs, for that copy
  Pair pair(settings(), settings({{"reach", "staged"}, {"staging_piece", "64K"}}));
  Block target(pair.owner, "host", kAll, access::all);
  Block local(pair.asker, test_device(), kAll, access::local);
  const auto counters = info(pair.asker)["counters"];
  EXPECT_EQ(counters.value("staged_pinned", 0), pins ? 1 : 0) << counters;
  EXPECT_EQ(counters.value("staged_plain", 0), pins ? 0 : 1) << counters;
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  const auto bytes = pattern(kAll, 23);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.slice(0, kAll), place.at(0)).wait(60s));
  EXPECT_EQ(target.read(0, kAll), bytes);
  const auto other = pattern(kAll, 24);
  target.fill(other);
  ASSERT_TRUE(pair.far.get(local.region.slice(0, kAll), place.at(0)).wait(60s));
  EXPECT_EQ(local.read(0, kAll), other);
}

}  // namespace
}  // namespace strait::flow
