// SPDX-License-Identifier: Apache-2.0
#include "soft/gaudi/nodes.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "soft/gaudi/machine.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"

namespace strait::soft::gaudi {
namespace {

accel::VendorSpec small_spec(const std::string& variant) {
  accel::VendorSpec spec;
  spec.devices = 2;
  spec.memory_bytes = 1 << 20;
  spec.variant = variant;
  return spec;
}

struct NodeCase {
  const char* variant;
  const char* compute;
  const char* control;
  const char* about;
  const char* type;
};
class GaudiNodes : public ::testing::TestWithParam<NodeCase> {
 protected:
  void SetUp() override {
    auto root = host::Root::create();
    ASSERT_TRUE(root) << root.error().text;
    root_ = std::make_unique<host::Root>(std::move(*root));
    auto machine = Machine::create(root_->path(), small_spec(GetParam().variant));
    ASSERT_TRUE(machine) << machine.error().text;
    machine_ = std::make_unique<Machine>(std::move(*machine));
    const Status written = write_nodes(*root_, small_spec(GetParam().variant));
    ASSERT_TRUE(written) << written.error().text;
    family_ = make_node_family(root_->path());
  }
  [[nodiscard]] std::string node(const char* prefix, int number) const { return prefix + std::to_string(number); }

  std::unique_ptr<host::Root> root_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<host::Family> family_;
};

TEST_P(GaudiNodes, AreInTheTree) {
  for (const int slot : {0, 1}) {
    for (const char* prefix : {GetParam().compute, GetParam().control}) {
      EXPECT_TRUE(std::filesystem::is_regular_file(root_->path() + node(prefix, slot))) << node(prefix, slot);
      EXPECT_TRUE(root_->claimed(node(prefix, slot)));
      EXPECT_TRUE(family_->owns(node(prefix, slot)));
      const std::uint64_t number = family_->device_number(node(prefix, slot));
      EXPECT_EQ(sys::read_small_file((root_->path() + node(prefix, slot)).c_str()),
                fmt::format("{}:{}\n", major(number), minor(number)));
    }
    EXPECT_NE(family_->device_number(node(GetParam().compute, slot)),
              family_->device_number(node(GetParam().control, slot)));
    const std::string about = fmt::format(fmt::runtime(GetParam().about), slot);
    EXPECT_EQ(sys::read_small_file((root_->path() + about + "/pci_addr").c_str()),
              fmt::format("0000:3{}:00.0\n", slot));
    EXPECT_EQ(sys::read_small_file((root_->path() + about + "/device_type").c_str()),
              GetParam().type + std::string("\n"));
  }
  EXPECT_FALSE(std::filesystem::exists(root_->path() + node(GetParam().compute, 2)));
}

TEST_P(GaudiNodes, AComputeNodeHasOneOwnerAControlNodeAny) {
  const std::string compute = node(GetParam().compute, 1), control = node(GetParam().control, 1);
  auto opened = family_->open(compute, 0);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(sys::file_id(opened->fd.get()), sys::file_id(machine_->device(1).compute.get()));
  EXPECT_EQ(opened->file->ioctl(1, nullptr), -ENOTTY) << "what a device does is behind its library";
  EXPECT_EQ(family_->open(compute, 0).error().sys_errno, EBUSY);
  EXPECT_TRUE(family_->open(node(GetParam().compute, 0), 0)) << "the other is free";
  const auto first = family_->open(control, 0), second = family_->open(control, 0);
  EXPECT_TRUE(first && second);
  opened = fail(Code::gone, "closed");
  auto dmabuf = sys::open_again(machine_->device(1).hbm[3].get());
  ASSERT_TRUE(dmabuf && sys::hold_file(dmabuf->get()));
  EXPECT_EQ(family_->open(compute, 0).error().sys_errno, EBUSY) << "a dma-buf of it leaked";
  dmabuf->reset();
  EXPECT_TRUE(family_->open(compute, 0));
}

TEST_P(GaudiNodes, OtherNamesAreNotOurs) {
  for (const char* other :
       {"", "/dev/accel", "/dev/accel/", "/dev/accel/accel", "/dev/accel/accelx", "/dev/accel/accel-1",
        "/dev/accel/accel0x", "/dev/accel/accel64", "/dev/accel/accel99999999999", "/dev/hl", "/dev/hlx",
        "/dev/hl_controlD", "/dev/hl0/x", "/dev/hpet"})
    EXPECT_FALSE(family_->owns(other)) << other;
  EXPECT_FALSE(family_->open(node(GetParam().compute, 2), 0)) << "there is no such device";
}

INSTANTIATE_TEST_SUITE_P(Both, GaudiNodes,
                         ::testing::Values(NodeCase{"", "/dev/accel/accel", "/dev/accel/accel_controlD",
                                                    "/sys/class/accel/accel{}/device", "GAUDI2"},
                                           NodeCase{"2021", "/dev/hl", "/dev/hl_controlD", "/sys/class/habanalabs/hl{}",
                                                    "GAUDI"}));

}  // namespace
}  // namespace strait::soft::gaudi
