// SPDX-License-Identifier: Apache-2.0
// A verbs device that is removed under a Node (`strait run --nics 2 --faults gone=5`): what was under way ends with
// that cause, and what is asked of it afterwards is refused with the event that said so.
#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kPiece = 1 << 16;
constexpr std::size_t kPieces = 8;
constexpr auto kLong = 60s;

void expect_gone(const Error& error) {
  EXPECT_EQ(error.code, Code::gone) << error.explain();
  EXPECT_NE(error.text.find("NIC"), std::string::npos) << error.explain();
  EXPECT_NE(error.text.find("is no longer there"), std::string::npos) << error.explain();
  EXPECT_NE(error.remedy.find("Was it removed, or its driver unloaded?"), std::string::npos) << error.explain();
}
nlohmann::json counters(Node& node) {
  return info(node)["nics"][0]["counters"];
}

TEST(VerbsGone, TheEventEndsWhatIsUnderWayAndRefusesTheRest) {
  const auto on = [](const char* nic) { return settings({{"nics", nic}, {"accelerators", "none"}}); };
  Pair pair(on("verbs:strait1"), on("verbs:strait0"));
  Block target(pair.owner, "host", kPieces * kPiece, access::all);
  Block local(pair.asker, "host", kPieces * kPiece, access::all);
  Block into(pair.asker, "host", 4096, access::local);
  const Published published = pair.owner.publish("block", target.region).value();
  const Target place = pair.far.lookup("block").value();
  EXPECT_EQ(counters(pair.asker)["device_gone"], 0);
  Operation message = pair.far.receive(into.region.all());
  auto idle = pair.far.lane();  // nothing is ever posted to it
  ASSERT_TRUE(idle) << idle.error().explain();
  std::size_t arrived = 0;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const auto put = pair.far.put(local.region.slice(i * kPiece, kPiece), place.at(i * kPiece)).wait(kLong);
    if (put) {
      ++arrived;
    } else {
      expect_gone(put.error());
    }
  }
  EXPECT_LT(arrived, 5u) << "the fifth is never begun";
  const auto received = message.wait(kLong);
  ASSERT_FALSE(received);
  expect_gone(received.error());
  // The Node has read the event: also where nothing was under way, and for what is new.
  const auto counted = counters(pair.asker);
  EXPECT_EQ(counted["device_gone"], 1) << counted;
  EXPECT_GE(counted["device_events"], 1) << counted;
  const auto late = idle->put(local.region.slice(0, 64), place.at(0)).wait(kLong);
  ASSERT_FALSE(late);
  expect_gone(late.error());
  Memory fresh = pair.asker.allocate(4096, {.near = "host"}).value();
  const auto shared = pair.asker.share(fresh, access::local);
  ASSERT_FALSE(shared);
  expect_gone(shared.error());
  EXPECT_NE(shared.error().text.find("IBV_EVENT_DEVICE_FATAL"), std::string::npos) << shared.error().explain();
  const auto lane = pair.far.lane();
  ASSERT_FALSE(lane);
  expect_gone(lane.error());
  EXPECT_TRUE(local.region.revoke(kLong)) << "nothing of it is under way";
  EXPECT_EQ(counters(pair.owner)["device_gone"], 0) << "the other device is there";
}

}  // namespace
}  // namespace strait::flow
