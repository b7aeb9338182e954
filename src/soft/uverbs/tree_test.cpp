// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/tree.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "sys/files.hpp"

namespace strait::soft::uverbs {
namespace {

GidEntry entry(const char* address, const char* interface, unsigned index, std::uint32_t mtu) {
  return {roce::IpAddress::parse(address).value(), interface, index, mtu};
}

std::string text_of(const std::string& path) {
  return sys::read_small_file(path.c_str());
}

TEST(Tree, DevicesAreWhereLibibverbsLooks) {
  auto root = host::Root::create();
  ASSERT_TRUE(root);
  TreeSettings settings;
  settings.devices = 2;
  settings.gids = {entry("10.0.0.7", "eth0", 4, 1500), entry("fd00::7", "eth0", 4, 1500)};
  ASSERT_TRUE(write_tree(*root, settings));
  const std::string sys = root->path() + "/sys/class/";
  EXPECT_EQ(text_of(sys + "infiniband_verbs/abi_version"), "6\n");
  EXPECT_EQ(text_of(sys + "infiniband_verbs/uverbs1/ibdev"), "strait1\n");
  EXPECT_EQ(text_of(sys + "infiniband_verbs/uverbs1/dev"), "231:193\n");
  EXPECT_EQ(text_of(sys + "infiniband/strait0/node_guid"), "5254:00ff:fe12:3400\n");
  EXPECT_EQ(text_of(sys + "infiniband/strait0/ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:0a00:0007\n");
  EXPECT_EQ(text_of(sys + "infiniband/strait0/ports/1/gid_attrs/ndevs/1"), "eth0\n");
  EXPECT_EQ(text_of(sys + "infiniband/strait0/device/vendor"), "0x15b3\n");
  EXPECT_EQ(text_of(sys + "infiniband/strait0/device/net/eth0/ifindex"), "4\n");
  // The device of a class link is its PCI function, from either class.
  EXPECT_EQ(std::filesystem::canonical(sys + "infiniband/strait1/device"),
            std::filesystem::canonical(sys + "infiniband_verbs/uverbs1/device"));
}

TEST(Tree, GidsAreReadBack) {
  auto root = host::Root::create();
  ASSERT_TRUE(root);
  TreeSettings settings;
  settings.gids = {entry("10.0.0.7", "eth0", 4, 9000), entry("fe80::1", "eth1", 5, 1500), entry("::1", "lo", 1, 65536)};
  ASSERT_TRUE(write_tree(*root, settings));
  const auto gids = read_gids(root->path(), 0);
  ASSERT_TRUE(gids);
  ASSERT_EQ(gids->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*gids)[i].address, settings.gids[i].address);
    EXPECT_EQ((*gids)[i].interface, settings.gids[i].interface);
    EXPECT_EQ((*gids)[i].interface_index, settings.gids[i].interface_index);
    EXPECT_EQ((*gids)[i].mtu_bytes, settings.gids[i].mtu_bytes);
  }
  EXPECT_FALSE(read_gids(root->path(), 1));
  EXPECT_FALSE(read_gids(root->path() + "/nowhere", 0));
}

TEST(Tree, RefusesWhatCannotBe) {
  auto root = host::Root::create();
  ASSERT_TRUE(root);
  EXPECT_FALSE(write_tree(*root, {1, {}}));
  EXPECT_FALSE(write_tree(*root, {0, {entry("10.0.0.7", "eth0", 4, 9000)}}));
  EXPECT_FALSE(write_tree(*root, {kMostDevices + 1, {entry("10.0.0.7", "eth0", 4, 9000)}}));
}

TEST(Gids, TextAndBack) {
  const auto address = roce::IpAddress::parse("fd00:1:2::3").value();
  EXPECT_EQ(gid_text(address), "fd00:0001:0002:0000:0000:0000:0000:0003");
  EXPECT_EQ(parse_gid(gid_text(address) + "\n").value(), address);
  for (const char* wrong : {"", "fd00::3", "fd00:0001:0002:0000:0000:0000:0000:000g",
                            "fd00.0001:0002:0000:0000:0000:0000:0003", "fd00:0001:0002:0000:0000:0000:0000:00031"})
    EXPECT_FALSE(parse_gid(wrong)) << wrong;
}

TEST(Gids, TheHostHasSome) {
  const auto gids = host_gids();
  ASSERT_TRUE(gids);
  EXPECT_FALSE(gids->front().interface.empty());
  EXPECT_NE(gids->front().mtu_bytes, 0u);
}

TEST(Gids, MtuFollowsTheInterface) {
  EXPECT_EQ(mtu_code(1500), 3);  // 1024
  EXPECT_EQ(mtu_code(9000), 5);  // 4096
  EXPECT_EQ(mtu_code(65536), 5);
  EXPECT_EQ(mtu_code(2200), 4);
  EXPECT_EQ(mtu_code(100), 1);
}

}  // namespace
}  // namespace strait::soft::uverbs
