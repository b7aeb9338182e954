// SPDX-License-Identifier: Apache-2.0
// What ways cost on paper: links, wires and distances; and which NIC is taken first because of it.
#include "plan/cost.hpp"

#include <gtest/gtest.h>

namespace strait::plan {
namespace {

// PCIe 4.0 with 16 lanes, in GB/s, and what is left of it.
constexpr double kGen4 = 31.5;
constexpr double kGen4Payload = kGen4 * 0.85;

Place place(std::vector<std::string> path, int node, double link_gb_s) {
  Place made{std::move(path), node};
  made.link_gb_s.assign(made.path.size(), link_gb_s);
  made.link_gb_s[0] = 0;  // a root complex has no link
  return made;
}
const Place kGpuPlace = place({"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:00.0", "0000:1b:00.0"}, 0, kGen4);
const Place kBeside = place({"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:01.0", "0000:1c:00.0"}, 0, kGen4);
const Place kOtherPort = place({"pci0000:17", "0000:17:03.0", "0000:30:00.0"}, 0, kGen4);
const Place kOtherSocket = place({"pci0000:ca", "0000:ca:01.0", "0000:cb:00.0"}, 1, kGen4);

Memory gpu() {
  Memory memory{"cuda:0", true, true, "", false, true};
  memory.place = kGpuPlace;
  return memory;
}
Nic nic(const char* name, const Place& where, double port_gb_s = 0) {
  Nic made{name, false, true, false, true, false};
  made.place = where;
  made.port_gb_s = port_gb_s;
  return made;
}

TEST(Cost, LinksBetweenTheTwoAndNoOthers) {
  const Cost near = between(kGpuPlace, kBeside);
  EXPECT_DOUBLE_EQ(near.gb_s, kGen4Payload);
  EXPECT_FALSE(near.measured);
  EXPECT_EQ(near.basis, "PCIe 26.8 GB/s, below one PCIe switch");
  // The switch's own link to the processor is narrow, and not on the way.
  Place a = kGpuPlace, b = kBeside;
  a.link_gb_s[1] = a.link_gb_s[2] = b.link_gb_s[1] = b.link_gb_s[2] = 1;
  EXPECT_DOUBLE_EQ(between(a, b).gb_s, kGen4Payload);
  a.link_gb_s[4] = 4;
  EXPECT_DOUBLE_EQ(between(a, b).gb_s, 4 * 0.85);
  EXPECT_DOUBLE_EQ(between(b, a).gb_s, 4 * 0.85) << "the same both ways";
  // To host memory it goes through everything.
  EXPECT_DOUBLE_EQ(between({}, b).gb_s, 0.85);
}

TEST(Cost, BeyondASwitchTheProcessorSetsThePace) {
  EXPECT_EQ(between(kGpuPlace, kOtherPort).gb_s, 12);
  EXPECT_EQ(between(kGpuPlace, kOtherSocket).gb_s, 3);
  EXPECT_EQ(between(kGpuPlace, kOtherSocket).basis, "usual for devices across NUMA nodes");
  Place slow = kOtherSocket;
  slow.link_gb_s[2] = 2;
  EXPECT_DOUBLE_EQ(between(kGpuPlace, slow).gb_s, 2 * 0.85);
}

TEST(Cost, WhereNothingIsSaidNothingIsKnown) {
  EXPECT_FALSE(between({}, {}).known());
  EXPECT_FALSE(between({}, Place{{"pci0000:00", "0000:00:04.0"}, -1}).known());
  Nic soft = nic("strait0", kBeside, 12.5);
  soft.software = true;
  EXPECT_FALSE(by_hardware(gpu(), soft).known()) << "a software device is no hardware at that place";
  Memory nowhere = gpu();
  nowhere.place = {};
  EXPECT_FALSE(by_hardware(nowhere, nic("mlx5_0", kBeside, 12.5)).known());
}

TEST(Cost, TheWireMayBeSlowerThanTheLinks) {
  EXPECT_DOUBLE_EQ(by_hardware(gpu(), nic("mlx5_0", kBeside, 50)).gb_s, kGen4Payload);
  const Cost wire = by_hardware(gpu(), nic("mlx5_0", kBeside, 12.5));
  EXPECT_EQ(wire.gb_s, 12.5);
  EXPECT_EQ(wire.basis, "mlx5_0's wire of 100 Gb/s");
  Memory host;
  host.name = "host";
  EXPECT_EQ(by_hardware(host, nic("mlx5_0", kOtherSocket, 12.5)).gb_s, 12.5) << "host memory is no peer on the bus";
  EXPECT_EQ(by_hardware(host, nic("mlx5_0", {}, 12.5)).gb_s, 12.5);
}

TEST(Cost, InTurnTimesAddUp) {
  const Cost both = in_turn({1, 10, true, "one"}, {2, 10, true, "two"});
  EXPECT_DOUBLE_EQ(both.latency_us, 3);
  EXPECT_DOUBLE_EQ(both.gb_s, 5);
  EXPECT_FALSE(both.measured) << "nobody has timed the two together";
  EXPECT_EQ(both.basis, "one, then two");
  EXPECT_FALSE(in_turn({1, 10, true, "one"}, {}).known());
}

using Order = std::vector<std::size_t>;

TEST(Preferred, TheQuickestThenTheNearest) {
  // Below the GPU's switch sits an old NIC of 10 Gb/s; a good one is at another port.
  const std::vector<Nic> nics{nic("mlx5_0", kBeside, 1.25), nic("mlx5_1", kOtherPort, 50),
                              nic("mlx5_2", kOtherSocket, 50)};
  EXPECT_EQ(preferred(gpu(), nics, 0), (Order{1, 2, 0}));
  EXPECT_EQ(best_group(gpu(), nics), (Order{1}));
  // All have the same wire, which is slower than anything on the way: the nearest.
  const std::vector<Nic> slow{nic("mlx5_0", kOtherSocket, 1.25), nic("mlx5_1", kOtherPort, 1.25),
                              nic("mlx5_2", kBeside, 1.25)};
  EXPECT_EQ(preferred(gpu(), slow, 0), (Order{2, 1, 0}));
}

TEST(Preferred, WhereOneIsUnknownOnlyTheDistanceCounts) {
  std::vector<Nic> nics{nic("mlx5_0", kOtherPort, 50), nic("mlx5_1", kBeside, 1.25)};
  EXPECT_EQ(preferred(gpu(), nics, 0), (Order{0, 1}));
  nics.push_back({"strait0", true, true, true, true});
  EXPECT_EQ(preferred(gpu(), nics, 0), (Order{1, 0, 2}));
}

TEST(Preferred, EqualNicsTakeTurns) {
  const std::vector<Nic> nics{nic("mlx5_0", kOtherSocket), nic("mlx5_1", kOtherPort), nic("mlx5_2", kOtherPort),
                              nic("mlx5_3", kBeside)};
  EXPECT_EQ(preferred(gpu(), nics, 0), (Order{3, 1, 2, 0}));
  EXPECT_EQ(preferred(gpu(), nics, 1), (Order{3, 2, 1, 0}));
  EXPECT_EQ(preferred(gpu(), nics, 2), preferred(gpu(), nics, 0));
  EXPECT_TRUE(preferred(gpu(), {}, 5).empty());
  EXPECT_TRUE(best_group(gpu(), {}).empty());
  EXPECT_EQ(best_group(gpu(), std::span(nics).first(3)), (Order{1, 2}));
}

}  // namespace
}  // namespace strait::plan
