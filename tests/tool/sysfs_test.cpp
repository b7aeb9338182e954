// SPDX-License-Identifier: Apache-2.0
// Option sysfs: a recorded machine in place of this one. What `strait info` and `strait explain` say of places,
// distances and the NIC to take comes from there and from nowhere else.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A tree of /sys as the kernel links it, with two GPUs (their addresses are those of the stand-in's) and two NICs.
class Recorded {
 public:
  Recorded() : root_(fs::path(::testing::TempDir()) / ("strait_sysfs_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/devices");
    fs::create_directories(root_ / "class/infiniband");
  }
  ~Recorded() { fs::remove_all(root_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  void device(const std::string& path, int node) {
    const fs::path where = root_ / "devices" / path;
    fs::create_directories(where);
    std::ofstream(where / "numa_node") << node << "\n";
    fs::create_symlink(fs::path("../../../devices") / path, root_ / "bus/pci/devices" / where.filename());
  }
  void nic(const std::string& name, const std::string& path, int node) {
    device(path, node);
    const fs::path where = root_ / "devices" / path;
    fs::create_directories(where / "infiniband" / name);
    fs::create_symlink(fs::path("../../../") / where.filename(), where / "infiniband" / name / "device");
    fs::create_symlink(fs::path("../../devices") / path / "infiniband" / name, root_ / "class/infiniband" / name);
  }
  void numa_node(int node, const std::string& cpus) {
    const fs::path nodes = root_ / "devices/system/node";
    fs::create_directories(nodes / ("node" + std::to_string(node)));
    std::ofstream(nodes / ("node" + std::to_string(node)) / "cpulist") << cpus << "\n";
    std::ofstream(nodes / "has_memory") << (node == 0 ? "0" : "0-" + std::to_string(node)) << "\n";
  }
  // What links and wires carry, as a machine that is newer than its NIC says it.
  void link(const std::string& path, const std::string& transfers, const std::string& lanes) {
    std::ofstream(root_ / "devices" / path / "max_link_speed") << transfers << " GT/s PCIe\n";
    std::ofstream(root_ / "devices" / path / "current_link_width") << lanes << "\n";
  }
  void wire(const std::string& name, const std::string& rate) {
    fs::create_directories(root_ / "class/infiniband" / name / "ports/1");
    std::ofstream(root_ / "class/infiniband" / name / "ports/1/rate") << rate << "\n";
  }
  [[nodiscard]] std::string option() const { return "sysfs=" + root_.string(); }

 private:
  const fs::path root_;
};

// Two sockets; each GPU below a switch with one of the NICs, crosswise.
struct TwoSockets : Recorded {
  TwoSockets() {
    device("pci0000:20/0000:20:01.0/0000:1e:00.0/0000:1f:02.0/0000:21:00.0", 0);
    nic("strait1", "pci0000:20/0000:20:01.0/0000:1e:00.0/0000:1f:00.0/0000:22:00.0", 0);
    device("pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:02.0/0000:24:00.0", 1);
    nic("strait0", "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0", 1);
  }
};

Outcome furnished(std::vector<std::string> command, const std::string& sysfs) {
  command.insert(command.end(), {"--set", "accelerators=cuda", "--set", sysfs});
#ifdef STRAIT_STAND_INS
  return strait(std::move(command), 60,
                {{"LD_LIBRARY_PATH", STRAIT_STAND_INS},
                 {"STRAIT_SOFT_ACCELERATORS", "cuda:2"},
                 {"ASAN_OPTIONS", "detect_leaks=0"}});
#else
  std::vector<std::string> all{"run", "--quiet", "--nics", "2", "--accelerators", "cuda:2", "--"};
  const std::vector<std::string> inner = strait_command(std::move(command));
  all.insert(all.end(), inner.begin(), inner.end());
  return strait(all);
#endif
}
json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}
const json& named(const json& list, const std::string& name) {
  for (const json& each : list) {
    if (each.at("name") == name) return each;
  }
  ADD_FAILURE() << name << " is not in " << list;
  return list;
}

TEST(RecordedMachine, InfoShowsItsPlaces) {
  const TwoSockets tree;
  const json info = parsed(furnished({"info", "--json", "--no-trials"}, tree.option()));
  EXPECT_EQ(named(info.at("accelerators"), "cuda:0").at("numa_node"), 0);
  EXPECT_EQ(named(info.at("accelerators"), "cuda:1").at("numa_node"), 1);
  EXPECT_EQ(named(info.at("accelerators"), "cuda:1").at("pci_path"),
            json({"pci0000:80", "0000:80:01.0", "0000:81:00.0", "0000:82:02.0", "0000:24:00.0"}));
  const Outcome page = furnished({"info", "--no-trials"}, tree.option());
  EXPECT_NE(page.out.find("at 0000:24:00.0, NUMA node 1"), std::string::npos) << page.out;
  EXPECT_LE(widest(page.out), 80u) << page.out;
}

TEST(RecordedMachine, NumaNodesAreThoseOfIt) {
  TwoSockets tree;
  tree.numa_node(0, "0-7");
  const json one = parsed(furnished({"info", "--json", "--no-trials"}, tree.option())).at("numa");
  EXPECT_EQ(one.at("nodes"), json::array({0}));
  EXPECT_EQ(one.at("text"), "nothing is placed: the machine has one NUMA node");
  tree.numa_node(1, "8-15");
  const json two = parsed(furnished({"info", "--json", "--no-trials", "--set", "numa=1"}, tree.option())).at("numa");
  EXPECT_EQ(two.at("nodes"), json({0, 1}));
  EXPECT_EQ(two.at("node"), 1);
  const Outcome page = furnished({"info", "--no-trials", "--set", "numa=1"}, tree.option());
  EXPECT_NE(unwrapped(page.out).find("NUMA: memory, rings and thread on NUMA node 1, by option numa"),
            std::string::npos)
      << page.out;
  EXPECT_LE(widest(page.out), 80u) << page.out;
  const Outcome none = furnished({"info", "--no-trials", "--set", "numa=2"}, tree.option());
  EXPECT_EQ(none.status, 2) << none.out;
  EXPECT_NE(unwrapped(none.err).find("option numa: this machine has no node 2 with memory: it has 0, 1"),
            std::string::npos)
      << none.err;
}

TEST(RecordedMachine, WhereNothingIsShownNothingIsAssumed) {
  const json info = parsed(furnished({"info", "--json", "--no-trials"}, "sysfs=/nowhere/at/all"));
  EXPECT_EQ(named(info.at("accelerators"), "cuda:0").at("numa_node"), -1);
  EXPECT_EQ(named(info.at("accelerators"), "cuda:0").at("pci_path"), json::array());
  const Outcome page = furnished({"explain", "--from", "cuda:0", "--to", "host@peer"}, "sysfs=/nowhere/at/all");
  EXPECT_EQ(page.status, 0) << page.err;
  for (const char* word : {"PCIe switch", "root", "NUMA"})
    EXPECT_EQ(page.out.find(word), std::string::npos) << page.out;
}

#ifdef STRAIT_VERBS_UNDER_RUN
json plan_of(const std::string& from, const std::string& sysfs) {
  return parsed(furnished(
      {"explain", "--json", "--from", from, "--to", "host@peer", "--set", "nics=verbs:strait0,verbs:strait1"}, sysfs));
}
json packets_by(const json& plan, const std::string& nic) {
  for (const json& way : plan.at("ways")) {
    if (way.at("kind") == "roce" && way.at("nic") == nic) return way;
  }
  ADD_FAILURE() << nic << " is not in " << plan;
  return {};
}

TEST(RecordedMachine, ExplainTakesTheNearestNicOfIt) {
  TwoSockets tree;
  for (const auto& [gpu, near, far] :
       {std::tuple("cuda:0", "strait1", "strait0"), std::tuple("cuda:1", "strait0", "strait1")}) {
    const json plan = plan_of(gpu, tree.option());
    EXPECT_EQ(plan.at("ways").at(plan.at("chosen").get<std::size_t>()).at("nic"), near) << gpu;
    const json good = packets_by(plan, near);
    EXPECT_NE(good.at("reason").get<std::string>().find("below one PCIe switch"), std::string::npos) << good;
    EXPECT_EQ(good.at("cost").at("gb_per_s"), 24.0);
    EXPECT_EQ(good.at("cost").at("origin"), "estimated");
    const json other = packets_by(plan, far);
    EXPECT_EQ(other.at("cost").at("gb_per_s"), 3.0) << other;
  }
  // Its thread is on this machine and its kernel was not told of that one: said, and nothing fails.
  tree.numa_node(1, "100000");
  const json info =
      parsed(furnished({"info", "--json", "--no-trials", "--set", "nics=verbs:strait0,verbs:strait1"}, tree.option()));
  EXPECT_EQ(info.at("numa").at("node"), 1);
  EXPECT_EQ(info.at("numa").at("text"), "memory, rings and thread on NUMA node 1, near strait0");
  EXPECT_EQ(named(info.at("nics"), "strait0").at("numa_node"), 1);
  EXPECT_EQ(named(info.at("nics"), "strait1").at("pci_path").back(), "0000:22:00.0");
}

// The same devices in another machine: another answer.
TEST(RecordedMachine, AnotherMachineAnotherNic) {
  Recorded tree;
  tree.device("pci0000:20/0000:20:01.0/0000:21:00.0", 0);
  tree.nic("strait0", "pci0000:20/0000:20:02.0/0000:30:00.0", 0);
  tree.nic("strait1", "pci0000:40/0000:40:01.0/0000:41:00.0", 0);
  const json plan = plan_of("cuda:0", tree.option());
  EXPECT_EQ(plan.at("ways").at(plan.at("chosen").get<std::size_t>()).at("nic"), "strait0");
  EXPECT_EQ(packets_by(plan, "strait0").at("cost").at("gb_per_s"), 12.0);
  EXPECT_EQ(packets_by(plan, "strait1").at("cost").at("gb_per_s"), 8.0);
}

// A NIC beside the GPU with a wire of 10 Gb/s, a better one further away: the page says what both would carry, and why.
TEST(RecordedMachine, LinksAndWiresDecideWhereTheyAreSaid) {
  Recorded tree;
  tree.device("pci0000:20/0000:20:01.0/0000:1e:00.0/0000:1f:02.0/0000:21:00.0", 0);
  tree.nic("strait0", "pci0000:20/0000:20:01.0/0000:1e:00.0/0000:1f:00.0/0000:22:00.0", 0);
  tree.nic("strait1", "pci0000:20/0000:20:02.0/0000:30:00.0", 0);
  tree.link("pci0000:20/0000:20:02.0/0000:30:00.0", "16.0", "4");
  tree.wire("strait0", "10 Gb/sec (1X QDR)");
  tree.wire("strait1", "200 Gb/sec (4X HDR)");
  const json plan = plan_of("cuda:0", tree.option());
  EXPECT_EQ(plan.at("ways").at(plan.at("chosen").get<std::size_t>()).at("nic"), "strait1");
  EXPECT_EQ(packets_by(plan, "strait0").at("cost").at("basis"), "strait0's wire of 10 Gb/s");
  EXPECT_EQ(packets_by(plan, "strait1").at("cost").at("basis"), "PCIe 6.7 GB/s, at one root complex");
  const Outcome page = furnished(
      {"explain", "--from", "cuda:0", "--to", "host@peer", "--set", "nics=verbs:strait0,verbs:strait1"}, tree.option());
  EXPECT_NE(page.out.find("estimated 2.5 us + 6.7 GB/s\n"), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("estimated 2.0 us + 1.2 GB/s\n"), std::string::npos) << page.out;
  EXPECT_LE(widest(page.out), 80u) << page.out;
}
#endif

}  // namespace
}  // namespace strait::testing
