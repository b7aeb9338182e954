// SPDX-License-Identifier: Apache-2.0
#include "sys/pci.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sys/scratch.hpp"

namespace strait::sys {
namespace {

namespace fs = std::filesystem;

class Pci : public ::testing::Test {
 protected:
  void add(const std::string& path, const std::string& numa_node) {
    const fs::path device = fs::path(sysfs()) / "devices" / path;
    fs::create_directories(device);
    std::ofstream(device / "numa_node") << numa_node << "\n";
    fs::create_directories(fs::path(sysfs()) / "bus/pci/devices");
    fs::create_directory_symlink("../../../devices/" + path, fs::path(sysfs()) / "bus/pci/devices" / device.filename());
  }
  [[nodiscard]] std::string sysfs() const { return scratch_.path() + "/sys"; }
  Scratch scratch_ = Scratch::create(temporary_folder(), "strait-pci-test").value();
};

TEST_F(Pci, PlaceBehindTwoBridges) {
  add("pci0000:17/0000:17:01.0/0000:18:00.0/0000:1b:00.0", "1");
  const auto place = pci_place(sysfs(), "0000:1B:00.0");
  ASSERT_TRUE(place) << place.error().text;
  EXPECT_EQ(place->address, "0000:1b:00.0");
  EXPECT_EQ(place->path, (std::vector<std::string>{"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:1b:00.0"}));
  EXPECT_EQ(place->numa_node, 1);
}

TEST_F(Pci, NumaNodeThatIsNotSaid) {
  add("pci0000:00/0000:00:04.0", "-1");
  EXPECT_EQ(pci_place(sysfs(), "00:04.0")->numa_node, -1);
  add("pci0000:00/0000:00:05.0", "what");
  EXPECT_EQ(pci_place(sysfs(), "00:05.0")->numa_node, -1);
}

TEST_F(Pci, WhatLinksCarry) {
  const std::string path = "pci0000:17/0000:17:01.0/0000:1b:00.0";
  add(path, "0");
  const auto say = [&](const std::string& of, const char* name, const char* text) {
    std::ofstream(fs::path(sysfs()) / "devices" / of / name) << text << "\n";
  };
  say(path, "max_link_speed", "16.0 GT/s PCIe");
  say(path, "current_link_width", "8");
  say(path, "current_link_speed", "2.5 GT/s PCIe");  // asleep
  EXPECT_EQ(pci_place(sysfs(), "1b:00.0")->link_gb_s, (std::vector<double>{0, 0, 16.0 * 8 / 8 * 128 / 130}));
  say("pci0000:17/0000:17:01.0", "max_link_speed", "5.0 GT/s PCIe");
  say("pci0000:17/0000:17:01.0", "current_link_width", "8");
  EXPECT_EQ(pci_place(sysfs(), "1b:00.0")->link_gb_s[1], 4);
  say(path, "max_link_speed", "Unknown");
  EXPECT_EQ(pci_place(sysfs(), "1b:00.0")->link_gb_s[2], 0);
  fs::create_directories(sysfs() + "/class/infiniband/mlx5_0/ports/1");
  EXPECT_EQ(port_gb_s(sysfs(), "class/infiniband/mlx5_0"), 0);
  std::ofstream(sysfs() + "/class/infiniband/mlx5_0/ports/1/rate") << "100 Gb/sec (4X EDR)\n";
  EXPECT_EQ(port_gb_s(sysfs(), "class/infiniband/mlx5_0"), 12.5);
}

TEST_F(Pci, DeviceOfAClassEntry) {
  add("pci0000:17/0000:17:01.0/0000:1c:00.0", "0");
  fs::create_directories(sysfs() + "/devices/pci0000:17/0000:17:01.0/0000:1c:00.0/infiniband/mlx5_0");
  fs::create_directories(sysfs() + "/class/infiniband");
  fs::create_directory_symlink("../../devices/pci0000:17/0000:17:01.0/0000:1c:00.0/infiniband/mlx5_0",
                               sysfs() + "/class/infiniband/mlx5_0");
  fs::create_directory_symlink("../../../0000:1c:00.0",
                               sysfs() + "/devices/pci0000:17/0000:17:01.0/0000:1c:00.0/infiniband/mlx5_0/device");
  const auto place = pci_place_of(sysfs(), "class/infiniband/mlx5_0");
  ASSERT_TRUE(place) << place.error().text;
  EXPECT_EQ(place->address, "0000:1c:00.0");
  EXPECT_EQ(place->numa_node, 0);
}

TEST_F(Pci, WhatIsNotThereAndWhatIsNoPciDevice) {
  EXPECT_EQ(pci_place(sysfs(), "0000:1b:00.0").error().code, Code::gone);
  fs::create_directories(sysfs() + "/devices/virtual/net/rxe0");
  fs::create_directories(sysfs() + "/class/infiniband/rxe0");
  fs::create_directory_symlink("../../../devices/virtual/net/rxe0", sysfs() + "/class/infiniband/rxe0/device");
  EXPECT_EQ(pci_place_of(sysfs(), "class/infiniband/rxe0").error().code, Code::unsupported);
}

TEST(PciAddress, AsRuntimesWriteIt) {
  EXPECT_EQ(*pci_address("0000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(*pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(*pci_address("00000000:3B:1F.7"), "0000:3b:1f.7");
  EXPECT_EQ(*pci_address("1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(*pci_address("10000:e1:00.0"), "10000:e1:00.0") << "behind a volume controller domains are longer";
  for (const char* const wrong : {"", "gpu0", "1b", "0000:3b:00.9", "0000:1b:00", "0000:1g:00.0", "0000:1b:00.0 ",
                                  "../../etc", "0000:1b:20.0", "0000:1b:00.8"})
    EXPECT_EQ(pci_address(wrong).error().text, "\"" + std::string(wrong) + "\" is not a PCI address like 0000:1b:00.0");
}

}  // namespace
}  // namespace strait::sys
