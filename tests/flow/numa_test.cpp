// SPDX-License-Identifier: Apache-2.0
// Option numa: what the kernel was told about memory of a Node, seen where the kernel shows it. The machine is recorded
// as one of two nodes, so that there is something to place; the first of them is real.
#include <filesystem>
#include <fstream>

#include "flow.hpp"

namespace strait::flow {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLength = 3 << 20;

class Numa : public testing::Test {
 protected:
  Numa() : root_(fs::path(testing::TempDir()) / ("strait_numa_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "devices/system/node/node0");
    std::ofstream(root_ / "devices/system/node/has_memory") << "0,900\n";
    std::ofstream(root_ / "devices/system/node/node0/cpulist") << "0-1023\n";
  }
  ~Numa() override { fs::remove_all(root_); }
  NodeOptions options(const char* numa) const { return settings({{"sysfs", root_.string()}, {"numa", numa}}); }
  const fs::path root_;
};

// The kernel's word on the range that begins there: "prefer:0"; "none": it keeps no such list.
std::string policy_at(const void* address) {
  std::ifstream lines("/proc/self/numa_maps");
  if (!lines) return "none";
  char wanted[32];
  std::snprintf(wanted, sizeof wanted, "%lx", reinterpret_cast<unsigned long>(address));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string at, policy;
    words >> at >> policy;
    if (at == wanted) return policy;
  }
  return "not mapped";
}

TEST_F(Numa, MemoryThatIsAllocatedGoesWhereItIsWished) {
  Pair pair(options("0"), settings());
  const auto before = info(pair.owner)["numa"];
  EXPECT_EQ(before["node"], 0);
  Block target(pair.owner, "host", kLength, access::all);
  Block local(pair.asker, "host", kLength, access::local);
  const auto after = info(pair.owner)["numa"];
  const std::string policy = policy_at(target.memory().data());
  if (after["refused"] == "") {
    EXPECT_GT(after["placed"], before["placed"]) << after;
    EXPECT_TRUE(policy == "prefer:0" || policy == "none") << policy;
  } else {
    EXPECT_NE(policy, "prefer:0") << after;
  }
  EXPECT_NE(policy_at(local.memory().data()), "prefer:0") << "the other Node was not told to";
  // The window that the peer maps is the same pages, and works as ever; so do rings that were made with a wish.
  const Published published = pair.owner.publish("block", target.region).value();
  const auto bytes = pattern(kLength, 4);
  local.fill(bytes);
  ASSERT_TRUE(pair.far.put(local.region.all(), pair.far.lookup("block").value().at(0)).wait(30s));
  EXPECT_EQ(target.read(0, kLength), bytes);
  ASSERT_TRUE(pair.far.lane());
}

TEST_F(Numa, OffAndElsewhere) {
  Node off = Node::open(options("off")).value();
  const Memory memory = off.allocate(kLength, {.near = "host"}).value();
  EXPECT_EQ(info(off)["numa"]["placed"], 0);
  EXPECT_NE(policy_at(memory.data()), "prefer:0");
  // A node that only the recorded machine has: the kernel refuses, which is said, and memory comes all the same.
  Node elsewhere = Node::open(options("900")).value();
  const Memory anyway = elsewhere.allocate(kLength, {.near = "host"}).value();
  static_cast<char*>(anyway.data())[0] = 1;
  EXPECT_NE(info(elsewhere)["numa"]["refused"], "") << info(elsewhere)["numa"];
  const auto wrong = Node::open(options("2"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::flow
