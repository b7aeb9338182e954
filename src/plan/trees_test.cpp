// SPDX-License-Identifier: Apache-2.0
// Plans on other machines: trees of /sys, made up after real ones, and one that trees/record.sh recorded, built anew in
// a folder of the test's own and read from there as the Node reads them (option `sysfs`). Each says which NIC is taken,
// and what is said of every other one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plan/record.hpp"
#include "sys/pci.hpp"

namespace strait::plan {
namespace {

namespace fs = std::filesystem;

// The folder that stands for /sys, with the links that sysfs has; gone when the test is over.
class Tree {
 public:
  explicit Tree(const std::string& name)
      : root_(fs::path(testing::TempDir()) / ("strait_tree_" + name + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/devices");
    std::ifstream lines(fs::path(STRAIT_TREES) / (name + ".tree"));
    EXPECT_TRUE(lines) << name;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string kind, device, path, node, link, wire;
      words >> kind >> device >> path >> node >> link >> wire;
      EXPECT_FALSE(node.empty()) << line;
      add(kind, device, path, node);
      // "16x8": GT/s and lanes, said by the device and by the port above it, as a machine does.
      const std::size_t times = link.find('x');
      if (times == std::string::npos) continue;
      const fs::path where = root_ / "devices" / path;
      for (const fs::path& end : {where, where.parent_path()}) {
        std::ofstream(end / "max_link_speed") << link.substr(0, times) << ".0 GT/s PCIe\n";
        std::ofstream(end / "current_link_width") << link.substr(times + 1) << "\n";
      }
      if (wire.empty()) continue;
      fs::create_directories(where / "infiniband" / device / "ports/1");
      std::ofstream(where / "infiniband" / device / "ports/1/rate") << wire << " Gb/sec (4X NDR)\n";
    }
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // What a Node would record of it.
  [[nodiscard]] Machine machine() const {
    Machine machine{"recorded", "there", 1, {}, {}};
    for (const auto& [name, address] : gpus_) {
      Memory memory{name, true, true, "", false, true};
      memory.kind = "cuda";
      memory.place = place(sys::pci_place(root_.string(), address));
      machine.memories.push_back(std::move(memory));
    }
    for (const std::string& name : nics_) {
      Nic nic{name, false, true, false, true, false};
      nic.imports_fds = !name.starts_with("mlx4");
      nic.place = place(sys::pci_place_of(root_.string(), "class/infiniband/" + name));
      nic.port_gb_s = sys::port_gb_s(root_.string(), "class/infiniband/" + name);
      machine.nics.push_back(std::move(nic));
    }
    return machine;
  }
  [[nodiscard]] std::string root() const { return root_.string(); }
  struct Line {
    std::string address, path;
    int numa_node;
  };
  [[nodiscard]] const std::vector<Line>& all() const { return all_; }

 private:
  static Place place(const Result<sys::PciPlace>& found) {
    EXPECT_TRUE(found) << (found ? "" : found.error().text);
    return found ? Place{found->path, found->numa_node, found->link_gb_s} : Place{};
  }
  void add(const std::string& kind, const std::string& device, const std::string& path, const std::string& node) {
    const fs::path where = root_ / "devices" / path;
    const std::string address = where.filename();
    fs::create_directories(where);
    std::ofstream(where / "numa_node") << node << "\n";
    fs::create_symlink(fs::path("../../../devices") / path, root_ / "bus/pci/devices" / address);
    all_.push_back({address, path, std::stoi(node)});
    if (kind == "gpu") gpus_.emplace_back(device, address);
    if (kind != "nic") return;
    fs::create_directories(where / "infiniband" / device);
    fs::create_symlink(fs::path("../..") / ".." / address, where / "infiniband" / device / "device");
    fs::create_directories(root_ / "class/infiniband");
    fs::create_symlink(fs::path("../../devices") / path / "infiniband" / device, root_ / "class/infiniband" / device);
    nics_.push_back(device);
  }

  const fs::path root_;
  std::vector<Line> all_;
  std::vector<std::pair<std::string, std::string>> gpus_;
  std::vector<std::string> nics_;
};

Plan plan_of(const Machine& machine, const std::string& memory) {
  const Memory* const source = machine.find(memory);
  return make_plan(*source, machine.nics, {"10.0.0.7:7471", Reach::other_host, false, ""}, {}, {},
                   machine.rank_of(*source));
}

std::string chosen_nic(const Plan& plan) {
  const auto way = plan.way();
  EXPECT_TRUE(way) << way.error().text;
  return way ? way->nic : std::string();
}

// What is said of the packets of a NIC: "yes: mlx5_0 reaches ..., estimated 24".
std::string said(const Plan& plan, const std::string& nic) {
  for (const Way& way : plan.ways) {
    if (way.kind != Kind::packets || way.nic != nic) continue;
    const std::string speed = way.cost.known() ? fmt::format(", {:.3} GB/s", way.cost.gb_s) : "";
    return fmt::format("{}: {}{}", verdict_name(way.verdict), way.reason, way.verdict == Verdict::yes ? speed : "");
  }
  return "not looked at";
}

TEST(Trees, EightPairsTakeTheirOwnNic) {
  const Tree tree("eight_pairs");
  const Machine machine = tree.machine();
  ASSERT_EQ(machine.memories.size(), 8u);
  ASSERT_EQ(machine.nics.size(), 9u);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::string name = fmt::format("cuda:{}", gpu);
    const Plan plan = plan_of(machine, name);
    EXPECT_EQ(chosen_nic(plan), fmt::format("mlx5_{}", gpu));
    for (int nic = 0; nic < 9; ++nic) {
      const int socket = nic == 8 ? 0 : nic / 4;
      const char* const where = nic == gpu          ? "below one PCIe switch, 24 GB/s"
                                : socket == gpu / 4 ? "at two root complexes of one NUMA node, 8 GB/s"
                                                    : "across NUMA nodes, 3 GB/s";
      EXPECT_EQ(said(plan, fmt::format("mlx5_{}", nic)),
                fmt::format("yes: mlx5_{} reaches {} memory as dma-buf, {}", nic, name, where));
    }
  }
}

// The good NIC is far away, and the near one cannot: it is taken all the same, and both are explained.
TEST(Trees, TwoSocketsWithTheNicOnTheOther) {
  const Tree tree("two_sockets");
  const Machine machine = tree.machine();
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string name = fmt::format("cuda:{}", gpu);
    const Plan plan = plan_of(machine, name);
    EXPECT_EQ(chosen_nic(plan), "mlx5_0");
    EXPECT_EQ(said(plan, "mlx5_0"),
              fmt::format("yes: mlx5_0 reaches {} memory as dma-buf, across NUMA nodes, 3 GB/s", name));
    EXPECT_EQ(said(plan, "mlx4_0"), "no: mlx4_0 imports no descriptors");
    for (const Way& way : plan.ways) {
      if (way.kind == Kind::copy || way.kind == Kind::ring) {
        EXPECT_EQ(way.verdict, Verdict::no);
        EXPECT_EQ(way.reason, way.nic + " shares no rings with peers: it has a wire of its own");
      }
    }
  }
  EXPECT_EQ(distance(machine.find("cuda:0")->place, machine.nics[0].place).nearness, Nearness::root_complex);
  EXPECT_EQ(distance(machine.find("cuda:2")->place, machine.nics[0].place).nearness, Nearness::numa_node);
}

TEST(Trees, EqualNicsBelowOneSwitchAreSharedOut) {
  const Tree tree("shared_switch");
  const Machine machine = tree.machine();
  std::string order;
  for (int gpu = 0; gpu < 4; ++gpu) {
    const Plan plan = plan_of(machine, fmt::format("cuda:{}", gpu));
    order += chosen_nic(plan) + " ";
    EXPECT_EQ(said(plan, "mlx5_2"),
              fmt::format("yes: mlx5_2 reaches cuda:{} memory as dma-buf, at one root complex, 12 GB/s", gpu));
    EXPECT_EQ(plan.ways.back().reason, "never silent: allowed only with allow_staging=1");
  }
  EXPECT_EQ(order, "mlx5_0 mlx5_1 mlx5_0 mlx5_1 ");
}

// A NIC that is near and slow, two that are quick at the next port and one that is quick and across the sockets: what
// the links and wires say decides, the equal ones are shared out, and the slow one comes last.
TEST(Trees, TheQuickNicsBeforeTheNearOne) {
  const Tree tree("mixed_speeds");
  const Machine machine = tree.machine();
  std::string order;
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string name = fmt::format("cuda:{}", gpu);
    const Plan plan = plan_of(machine, name);
    order += chosen_nic(plan) + " ";
    const auto expected = [&](const char* nic, const char* where, const char* speed) {
      EXPECT_EQ(said(plan, nic),
                fmt::format("yes: {} reaches {} memory as dma-buf, {}, {} GB/s", nic, name, where, speed));
    };
    expected("mlx5_0", "below one PCIe switch", "1.25");
    expected("mlx5_1", "at one root complex", "6.7");
    expected("mlx5_2", "at one root complex", "6.7");
    expected("mlx5_3", "across NUMA nodes", "3");
    std::string all;
    for (const Way& way : plan.ways) {
      if (way.kind == Kind::packets) all += way.nic.back();
    }
    EXPECT_EQ(all, gpu == 0 ? "1230" : "2130");
  }
  EXPECT_EQ(order, "mlx5_1 mlx5_2 ");
  EXPECT_EQ(plan_of(machine, "cuda:0").way()->cost.basis, "PCIe 6.7 GB/s, at one root complex");
  // Host memory is near everything, and every figure is the lesser of link and wire.
  Memory host;
  host.name = "host";
  const Plan from_host = make_plan(host, machine.nics, {"10.0.0.7:7471", Reach::other_host, false, ""}, {});
  EXPECT_EQ(chosen_nic(from_host), "mlx5_3");
  EXPECT_EQ(from_host.way()->cost.basis, "PCIe 26.8 GB/s");
}

TEST(Trees, ALaptopHasNothingToChooseFrom) {
  const Tree tree("laptop");
  Machine machine = tree.machine();
  ASSERT_TRUE(machine.nics.empty());
  EXPECT_EQ(sys::pci_place_of(tree.root(), "class/infiniband/mlx5_0").error().code, Code::gone);
  EXPECT_EQ(machine.memories[0].place.numa_node, -1);
  const Plan none = plan_of(machine, "cuda:0");
  EXPECT_FALSE(none.chosen);
  ASSERT_EQ(none.ways.size(), 1u);
  EXPECT_EQ(none.ways[0].reason, "there is no NIC");
  // A software NIC is nowhere, so nothing is said about how near it is, and nothing about its speed.
  machine.nics.push_back({"strait0", true, true, true, true});
  EXPECT_EQ(said(plan_of(machine, "cuda:0"), "strait0"), "yes: strait0 reaches cuda:0 memory as dma-buf");
}

// The one that was recorded: every function is found where the recording says, and none has anything to choose from.
TEST(Trees, AVirtualMachineIsReadAsItWasRecorded) {
  const Tree tree("small_vm");
  Machine machine = tree.machine();
  ASSERT_EQ(tree.all().size(), 6u);
  EXPECT_TRUE(machine.nics.empty() && machine.memories.empty());
  for (const Tree::Line& line : tree.all()) {
    const auto found = sys::pci_place(tree.root(), line.address);
    ASSERT_TRUE(found) << found.error().text;
    std::string path;
    for (const std::string& part : found->path) path += (path.empty() ? "" : "/") + part;
    EXPECT_EQ(path, line.path);
    EXPECT_EQ(found->numa_node, line.numa_node);
  }
  // Two of its functions share the root complex and nothing below it, as passed-through devices would.
  const auto network = sys::pci_place(tree.root(), "0000:00:03.0"), disk = sys::pci_place(tree.root(), "0000:00:02.0");
  ASSERT_TRUE(network && disk);
  EXPECT_EQ(distance({network->path, network->numa_node, {}}, {disk->path, disk->numa_node, {}}).nearness,
            Nearness::root_complex);
  machine.nics.push_back({"strait0", true, true, true, true});
  Memory host;
  host.name = "host";
  EXPECT_EQ(said(make_plan(host, machine.nics, {"10.0.0.7:7471", Reach::other_host, false, ""}, {}, {}), "strait0"),
            "yes: strait0 reaches host memory as host pages");
}

}  // namespace
}  // namespace strait::plan
