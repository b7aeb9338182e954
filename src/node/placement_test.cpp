// SPDX-License-Identifier: Apache-2.0
// Recorded machines of one and two NUMA nodes, with system calls that only write down what they were asked.
#include "node/placement.hpp"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "sys/scratch.hpp"

namespace strait::node {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> asked;  // "mbind 8192 1 node 1"
int answer = 0, asking_node = 0;

std::string words(const char* what, int mode, const unsigned long* nodes) {
  return fmt::format("{} mode {} nodes {:#x}", what, mode, nodes == nullptr ? 0 : nodes[0]);
}
long reply() {
  errno = answer;
  return answer == 0 ? 0 : -1;
}
const sys::NumaCalls kCalls{
    [](void*, unsigned long bytes, int mode, const unsigned long* nodes, unsigned long, unsigned) {
      asked.push_back(fmt::format("{} bytes {}", words("mbind", mode, nodes), bytes));
      return reply();
    },
    [](int* mode, unsigned long*, unsigned long) {
      *mode = MPOL_DEFAULT;
      return reply();
    },
    [](int mode, const unsigned long* nodes, unsigned long) {
      asked.push_back(words("policy", mode, nodes));
      return reply();
    },
    [] { return asking_node; },
    [](const int* cpus, int n_cpus) {
      asked.push_back(fmt::format("cpus {}", fmt::join(cpus, cpus + n_cpus, " ")));
      return reply();
    }};

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() {
    asked.clear();
    answer = asking_node = 0;
  }
  void record(int n_nodes) {
    const fs::path nodes = fs::path(scratch_.path()) / "devices/system/node";
    fs::create_directories(nodes);
    std::ofstream(nodes / "has_memory") << (n_nodes == 1 ? "0\n" : fmt::format("0-{}\n", n_nodes - 1));
    for (int i = 0; i < n_nodes; ++i) {
      fs::create_directories(nodes / fmt::format("node{}", i));
      std::ofstream(nodes / fmt::format("node{}", i) / "cpulist")
          << fmt::format("{}-{},{}\n", 2 * i, 2 * i + 1, 16 + i);
    }
  }
  Result<Placement> make(const std::string& option, int nic_node) {
    return Placement::make(option, scratch_.path(), "mlx5_0", nic_node, kCalls);
  }
  static void all_of(Placement& placement) {
    placement.place_memory(nullptr, 5000);
    placement.place_thread();
    const sys::NodeWish wish(placement.ring_node(), kCalls);
  }
  sys::Scratch scratch_ = sys::Scratch::create(sys::temporary_folder(), "strait-placement-test").value();
};
using Asked = std::vector<std::string>;

TEST_F(PlacementTest, OneNodeIsLeftAlone) {
  record(1);
  auto placement = make("auto", 0);
  ASSERT_TRUE(placement) << placement.error().text;
  all_of(*placement);
  EXPECT_EQ(asked, Asked{});
  EXPECT_EQ(placement->text(), "nothing is placed: the machine has one NUMA node");
  EXPECT_EQ(make("auto", -1)->nodes(), std::vector<int>{0});
  fs::remove_all(scratch_.path() + "/devices");
  EXPECT_EQ(make("auto", -1)->text(), "nothing is placed: the machine shows no NUMA nodes");
}

TEST_F(PlacementTest, NearTheNic) {
  record(2);
  auto placement = make("auto", 1);
  ASSERT_TRUE(placement) << placement.error().text;
  all_of(*placement);
  EXPECT_EQ(asked, (Asked{fmt::format("mbind mode {} nodes 0x2 bytes 8192", MPOL_PREFERRED + 0), "cpus 2 3 17",
                          fmt::format("policy mode {} nodes 0x2", MPOL_PREFERRED + 0),
                          fmt::format("policy mode {} nodes 0x0", MPOL_DEFAULT + 0)}))
      << "and the thread's own wish is as it was";
  EXPECT_EQ(placement->text(), "memory, rings and thread on NUMA node 1, near mlx5_0");
  EXPECT_EQ(placement->placed(), 2u);
  EXPECT_EQ(placement->refused(), "");
}

TEST_F(PlacementTest, WithoutAPlaceMemoryIsNearWhoAsks) {
  record(2);
  auto placement = make("auto", -1);
  ASSERT_TRUE(placement) << placement.error().text;
  for (const int node : {1, 0}) {
    asked.clear();
    asking_node = node;
    all_of(*placement);
    EXPECT_EQ(asked, Asked{fmt::format("mbind mode {} nodes {:#x} bytes 8192", MPOL_PREFERRED + 0, 1 << node)});
  }
  asking_node = -1;
  asked.clear();
  all_of(*placement);
  EXPECT_EQ(asked, Asked{});
  EXPECT_EQ(placement->refused(), "the kernel does not say on which node this CPU is");
  EXPECT_EQ(make("auto", 7)->ring_node(), -1) << "a NIC that names a node without memory";
}

TEST_F(PlacementTest, ByOption) {
  record(2);
  auto placement = make("0", 1);
  ASSERT_TRUE(placement) << placement.error().text;
  all_of(*placement);
  EXPECT_EQ(asked.front(), fmt::format("mbind mode {} nodes 0x1 bytes 8192", MPOL_PREFERRED + 0));
  EXPECT_EQ(placement->text(), "memory, rings and thread on NUMA node 0, by option numa");
  asked.clear();
  auto off = make("off", 1);
  ASSERT_TRUE(off);
  all_of(*off);
  EXPECT_EQ(asked, Asked{});
  EXPECT_EQ(off->text(), "nothing is placed: option numa=off");
  EXPECT_EQ(make("2", -1).error().text, "option numa: this machine has no node 2 with memory: it has 0, 1");
  for (const char* const odd : {"near", "-1", "1x", ""}) {
    EXPECT_EQ(make(odd, -1).error().text,
              fmt::format("option numa: \"{}\" is neither auto, off nor the number of a node", odd));
  }
}

TEST_F(PlacementTest, AKernelThatRefusesIsSaidAndNothingFails) {
  record(2);
  auto placement = make("auto", 1);
  ASSERT_TRUE(placement);
  answer = EPERM;
  all_of(*placement);
  EXPECT_EQ(placement->placed(), 0u);
  EXPECT_NE(placement->refused().find("mbind for NUMA node 1"), std::string::npos) << placement->refused();
  const sys::NodeWish wish(1, kCalls);
  EXPECT_EQ(wish.status().error().remedy, "Containers often forbid it: it takes CAP_SYS_NICE there.");
}

// The kernel of this machine, whatever nodes it has.
TEST(NumaCalls, OfThisMachine) {
  const auto nodes = sys::numa_nodes("/sys");
  const int here = sys::real_numa_calls().current_node();
  EXPECT_TRUE(nodes.empty() || std::ranges::find(nodes, here) != nodes.end()) << here;
  EXPECT_FALSE(sys::prefer_node(nullptr, 4096, -1));
  EXPECT_FALSE(sys::run_on_cpus(std::vector<int>{100'000})) << "nobody has that one";
  EXPECT_EQ(sys::parse_numbers("0-2,8\n"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(sys::parse_numbers("3"), std::vector<int>{3});
  for (const char* const none : {"", "\n", "x", "-1"}) EXPECT_EQ(sys::parse_numbers(none), std::vector<int>{}) << none;
  EXPECT_EQ(sys::parse_numbers("0-99999999").size(), 4096u) << "whatever a file says";
}

}  // namespace
}  // namespace strait::node
