// SPDX-License-Identifier: Apache-2.0
// Bad input to operations: what is refused before it is posted, what the owner's NIC refuses, and the sentences.
#include <thread>

#include "flow.hpp"

namespace strait::flow {
namespace {

bool says(const Error& error, const std::string& part) {
  return error.text.find(part) != std::string::npos;
}

constexpr const char* kNoKey = "it has no such key, or none any more";

class Refuse : public testing::Test {
 protected:
  explicit Refuse(const NodeOptions& options = settings()) : pair(options, options) {}
  NoFilesLeft no_files_left;
  Pair pair;
  NothingHeld nothing_held{pair};
  Block target{pair.owner, "soft:0", 65536, access::all};
  Block local{pair.asker, "host", 65536, access::local};
  Published published = pair.owner.publish("block", target.region).value();
  Target place = pair.far.lookup("block").value();

  // The place with something about it forged: the library cannot know, the owner's NIC must.
  template <class Forge>
  Place forged(Forge forge) const {
    Place at = place.at(0);
    forge(at.target);
    return at;
  }
  // `cause` and `remedy`: as the software NIC says it over the ring grant. Packets and other NICs only say that.
  void expect_refused_by_nic(const Place& at, std::uint64_t length, const std::string& cause,
                             const std::string& remedy) {
    Lane lane = pair.far.lane().value();
    const auto before = target.read(0, 4096);
    const auto start = std::chrono::steady_clock::now();
    auto done = lane.put(local.region.slice(0, length), at).wait(5s);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::denied) << done.error().explain();
    EXPECT_EQ(done.error().syndrome, 0x13u);
    const bool told = lane.path().find("ring grant") != std::string::npos;
    EXPECT_TRUE(says(done.error(), "refused by the owner's NIC: " +
                                       (told ? cause : "wrong or revoked key, out of bounds, or right not granted") +
                                       " (syndrome 0x13)"))
        << done.error().text << ", by " << lane.path();
    EXPECT_NE(done.error().remedy.find(told ? remedy : "look the region up again: it may have been revoked"),
              std::string::npos)
        << done.error().remedy;
    EXPECT_EQ(target.read(0, 4096), before);
    // The lane says why it can be used no longer, and another one works.
    auto again = lane.put(local.region.slice(0, 8), place.at(0)).wait(5s);
    ASSERT_FALSE(again);
    EXPECT_TRUE(says(again.error(), "in error since a put failed")) << again.error().text;
    Lane other = pair.far.lane().value();
    EXPECT_TRUE(other.put(local.region.slice(0, 8), place.at(0)).wait(5s));
  }
};

// What is under way: a grant by map or copy has nothing that is.
class RefuseOnTheRing : public Refuse {
 protected:
  RefuseOnTheRing() : Refuse(settings({{"grant", "ring"}})) {}
};

TEST_F(Refuse, OutsideTheTarget) {
  for (const auto& [offset, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {65529, 8}, {65536, 1}, {65537, 0}, {UINT64_MAX, 1}, {UINT64_MAX - 3, 8}, {1, 65536}}) {
    auto put = pair.far.put(local.region.slice(0, length), place.at(offset)).wait(1s);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, Code::invalid);
    EXPECT_TRUE(says(put.error(), "outside the target of 65536 bytes")) << put.error().text;
    auto get = pair.far.get(local.region.slice(0, length), place.at(offset)).wait(1s);
    ASSERT_FALSE(get);
    EXPECT_TRUE(says(get.error(), "outside the target")) << get.error().text;
  }
}

TEST_F(Refuse, OutsideTheLocalRegion) {
  for (const auto& [offset, length] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{65530, 8}, {UINT64_MAX, 2}, {65537, 0}}) {
    auto put = pair.far.put(local.region.slice(offset, length), place.at(0)).wait(1s);
    ASSERT_FALSE(put);
    EXPECT_TRUE(says(put.error(), "outside the local region of 65536 bytes")) << put.error().text;
  }
}

TEST_F(Refuse, HugeLengths) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 40, std::uint64_t{1} << 63, UINT64_MAX}) {
    auto put = pair.far.put(local.region.slice(0, length), place.at(0)).wait(1s);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, Code::invalid);
    EXPECT_EQ(put.error().text, std::to_string(length) + " bytes at offset 0 are outside the target of 65536 bytes");
    auto huge = pair.owner.share(target.memory().data(), length, access::all);
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().code, Code::invalid) << length;
    EXPECT_TRUE(says(huge.error(), length == UINT64_MAX ? "wrap around the end of the address space"
                                                        : "bytes past the allocation of 64 KiB at "))
        << huge.error().text;
  }
  auto nothing = pair.owner.share(target.memory().data(), 0, access::all);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::invalid);
  EXPECT_TRUE(says(nothing.error(), "a range of 0 bytes at ")) << nothing.error().text;
  auto nowhere = pair.owner.share(nullptr, 8, access::all);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::invalid);
  EXPECT_EQ(nowhere.error().text, "the null address is nobody's memory");
}

TEST_F(Refuse, UnalignedAtomics) {
  for (const std::uint64_t offset : {1u, 4u, 7u}) {
    auto add = pair.far.fetch_add(place.at(offset), 1).wait(1s);
    ASSERT_FALSE(add);
    EXPECT_EQ(add.error().code, Code::invalid);
    EXPECT_TRUE(says(add.error(), "8-byte aligned")) << add.error().text;
  }
  auto past = pair.far.compare_swap(place.at(65536), 0, 1).wait(1s);
  ASSERT_FALSE(past);
  EXPECT_TRUE(says(past.error(), "outside the target")) << past.error().text;
}

TEST_F(Refuse, AKeyThatNeverWas) {
  expect_refused_by_nic(forged([](strait_target& t) { t.rkey ^= 0x5500; }), 64, kNoKey,
                        "look the region up again: its owner");
}

TEST_F(Refuse, AKeyOfAnEarlierLife) {
  expect_refused_by_nic(forged([](strait_target& t) { t.rkey ^= 1; }), 4096, kNoKey,
                        "look the region up again: its owner");
}

TEST_F(Refuse, BoundsTheLibraryWasLiedToAbout) {
  Place at = forged([](strait_target& t) { t.length_bytes = 1 << 20; });
  at.offset = 65536 - 32;
  expect_refused_by_nic(at, 64, "the bytes are not all inside what the key is for", "stay within the target's length");
}

TEST_F(Refuse, ARightThatWasNotGranted) {
  Block read_only(pair.owner, "host", 4096, access::remote_read);
  Published name = pair.owner.publish("read only", read_only.region).value();
  Target there = pair.far.lookup("read only").value();
  auto put = pair.far.put(local.region.slice(0, 8), there.at(0)).wait(1s);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::denied);
  EXPECT_TRUE(says(put.error(), "not shared for remote write")) << put.error().text;
  auto add = pair.far.fetch_add(there.at(0), 1).wait(1s);
  ASSERT_FALSE(add);
  EXPECT_TRUE(says(add.error(), "not shared for remote atomic")) << add.error().text;
  Place forged_place = there.at(0);
  forged_place.target.access = STRAIT_REMOTE_WRITE;
  expect_refused_by_nic(forged_place, 8, "the key does not grant remote write", "let the owner share the region");
}

TEST_F(Refuse, ARevokedRegion) {
  EXPECT_EQ(place.epoch(), 1u);
  ASSERT_TRUE(target.region.revoke(1s));
  auto gone = pair.far.lookup("block", 1s);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::gone);
  EXPECT_TRUE(says(gone.error(), "nothing is published under \"block\"")) << gone.error().text;
  auto put = pair.far.put(local.region.slice(0, 8), place.at(0)).wait(5s);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().syndrome, 0x13u) << put.error().text;
  auto ticket = target.region.ticket(access::remote_read);
  ASSERT_FALSE(ticket);
  EXPECT_EQ(ticket.error().code, Code::gone);
}

TEST_F(Refuse, SignalsThatDoNotExist) {
  auto put = pair.far.put(local.region.slice(0, 8), place.at(0), {.signal = 64}).wait(1s);
  ASSERT_FALSE(put);
  EXPECT_TRUE(says(put.error(), "signal 64 does not exist")) << put.error().text;
  Block read_only(pair.owner, "host", 4096, access::remote_read);
  auto none = read_only.region.signal(0).read();
  ASSERT_FALSE(none);
  EXPECT_TRUE(says(none.error(), "has no signals")) << none.error().text;
  const auto start = std::chrono::steady_clock::now();
  auto never = target.region.signal(1).wait_until_at_least(1, 100ms);
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::timeout);
  EXPECT_GE(took, 100ms);
  EXPECT_LT(took, 1s);
}

TEST_F(RefuseOnTheRing, AFullLane) {
  Lane lane = pair.far.lane(4).value();
  std::vector<Operation> puts;
  for (int i = 0; i < 4; ++i) puts.push_back(lane.put(local.region.slice(0, 64), place.at(0)));
  for (const auto& put : puts) EXPECT_TRUE(put.posted());
  auto fifth = lane.put(local.region.slice(0, 64), place.at(0)).wait(1s);
  ASSERT_FALSE(fifth);
  EXPECT_EQ(fifth.error().code, Code::again);
  EXPECT_TRUE(says(fifth.error(), "full: 4 operations")) << fifth.error().text;
  ASSERT_TRUE(puts[2].wait(5s));  // any of them makes room
  EXPECT_TRUE(lane.put(local.region.slice(0, 64), place.at(0)).wait(5s));
  for (int i : {0, 1, 3}) EXPECT_TRUE(puts[static_cast<std::size_t>(i)].wait(5s));
}

TEST_F(RefuseOnTheRing, ABatchIsAllOrNothing) {
  Lane lane = pair.far.lane(8).value();
  target.fill(std::vector<std::uint8_t>(65536, 0xee));
  local.fill(std::vector<std::uint8_t>(65536, 0x11));
  std::vector<Item> items(9, Item{Item::put, local.region.slice(0, 256), place.at(0)});
  auto never = lane.batch(items).wait(1s);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::invalid);
  EXPECT_TRUE(says(never.error(), "too long")) << never.error().text;
  std::vector<Operation> held;
  for (int i = 0; i < 4; ++i) held.push_back(lane.put(local.region.slice(0, 8), place.at(60000)));
  items.resize(6);
  auto later = lane.batch(items).wait(1s);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::again);
  items.resize(3);
  items[2].remote.offset = 65535;
  auto bad = lane.batch(items).wait(1s);
  ASSERT_FALSE(bad);
  EXPECT_TRUE(says(bad.error(), "outside the target")) << bad.error().text;
  for (auto& op : held) ASSERT_TRUE(op.wait(5s));
  EXPECT_EQ(target.read(0, 256), std::vector<std::uint8_t>(256, 0xee));
}

TEST_F(Refuse, AMessageLongerThanItsReceive) {
  Operation receive = pair.near.receive(target.region.slice(0, 16));
  auto sent = pair.far.send(local.region.slice(0, 4096)).wait(5s);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().syndrome, 0x12u) << sent.error().text;
  auto received = receive.wait(5s);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().syndrome, 0x01u) << received.error().text;
}

TEST_F(RefuseOnTheRing, AnOperationTwice) {
  strait_op op{};
  const strait_target raw = place.raw();
  const strait_slice slice = local.region.slice(0, 8).raw;
  strait_lane* lane = strait_peer_lane(nullptr);
  EXPECT_EQ(lane, nullptr);
  Lane own = pair.far.lane().value();
  ASSERT_EQ(strait_put(own.raw(), &slice, &raw, 0, nullptr, &op, nullptr), STRAIT_OK);
  strait_op copy = op;
  ASSERT_EQ(strait_wait(&op, 1'000'000'000, nullptr, nullptr), STRAIT_OK);
  EXPECT_EQ(op.lane, nullptr);
  strait_error error{};
  error.struct_size = sizeof error;
  EXPECT_EQ(strait_wait(&op, 0, nullptr, &error), STRAIT_INVALID);
  EXPECT_EQ(strait_wait(&copy, 0, nullptr, &error), STRAIT_INVALID);
  EXPECT_NE(std::string(error.text).find("waited for or detached before"), std::string::npos) << error.text;
}

TEST_F(Refuse, NullHandles) {
  strait_error error{};
  error.struct_size = sizeof error;
  EXPECT_EQ(strait_put(nullptr, nullptr, nullptr, 0, nullptr, nullptr, &error), STRAIT_INVALID);
  EXPECT_NE(std::string(error.text).find("is null"), std::string::npos);
  EXPECT_EQ(strait_share(nullptr, nullptr, 0, 0, nullptr, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_node_open(nullptr, nullptr, nullptr), STRAIT_INVALID);
  EXPECT_EQ(strait_node_poll(nullptr), 0);
  strait_region_drop(nullptr);
  strait_lane_close(nullptr);
  strait_peer_close(nullptr);
  strait_node_close(nullptr);
  strait_withdraw(nullptr);
  strait_detach(nullptr);
  strait_text_free(nullptr);
}

#ifndef NDEBUG
TEST_F(Refuse, ALaneFromTheWrongThread) {
  Lane lane = pair.far.lane().value();
  ASSERT_TRUE(lane.put(local.region.slice(0, 8), place.at(0)).wait(1s));  // the owner is who uses it first
  std::thread([&] {
    auto put = lane.put(local.region.slice(0, 8), place.at(0)).wait(1s);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, Code::invalid);
    EXPECT_TRUE(says(put.error(), "owned by another thread")) << put.error().text;
    EXPECT_TRUE(pair.far.put(local.region.slice(0, 8), place.at(0)).wait(1s));  // the peer's own lane is for everybody
  }).join();
}
#endif

}  // namespace
}  // namespace strait::flow
