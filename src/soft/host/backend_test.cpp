// SPDX-License-Identifier: Apache-2.0
// Families behind the C table: who is asked, what errors become, and that nothing is thrown at a program.
#include "soft/host/backend.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace strait::soft::host {
namespace {

int alive = 0;

class TestFile : public File {
 public:
  TestFile() { ++alive; }
  ~TestFile() override { --alive; }
  long ioctl(unsigned long request, void*) override {
    if (request == 1) throw std::runtime_error("no");
    if (request == 2) throw std::bad_alloc();
    return static_cast<long>(request);
  }
};

class TestFamily : public Family {
 public:
  explicit TestFamily(std::string node) : node_(std::move(node)) {}
  [[nodiscard]] bool owns(std::string_view node) const override { return node == node_; }
  [[nodiscard]] std::uint64_t device_number(std::string_view) const override { return 1; }
  [[nodiscard]] Result<Opened> open(std::string_view, int flags) override {
    if (flags == 1) return fail_errno(EBUSY, "opening");
    if (flags == 2) return fail(Code::unsupported, "no");
    if (flags == 3) throw std::runtime_error("no");
    return Opened{sys::Fd(::dup(0)), std::make_shared<TestFile>()};
  }

 private:
  std::string node_;
};

TEST(Backend, OpensInTheFamilyThatOwnsTheNode) {
  TestFamily first("/dev/a"), second("/dev/b");
  const std::array<Family*, 2> families = {&first, &second};
  strait_host_file* file = nullptr;
  const sys::Fd fd(open_node(families, "/dev/b", 0, &file));
  ASSERT_TRUE(fd.valid());
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(ioctl_node(file, 17, nullptr), 17);
  close_node(file);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(open_node(families, "/dev/c", 0, &file), -ENXIO);
  EXPECT_EQ(open_node({}, "/dev/a", 0, &file), -ENXIO);
}

TEST(Backend, FailuresBecomeNumbers) {
  TestFamily family("/dev/a");
  const std::array<Family*, 1> families = {&family};
  strait_host_file* file = nullptr;
  EXPECT_EQ(open_node(families, "/dev/a", 1, &file), -EBUSY);
  EXPECT_EQ(open_node(families, "/dev/a", 2, &file), -EIO);
  EXPECT_EQ(open_node(families, "/dev/a", 3, &file), -EIO);
  const sys::Fd fd(open_node(families, "/dev/a", 0, &file));
  ASSERT_TRUE(fd.valid());
  EXPECT_EQ(ioctl_node(file, 1, nullptr), -EIO);
  EXPECT_EQ(ioctl_node(file, 2, nullptr), -ENOMEM);
  EXPECT_EQ(write_node(file, "x", 1), -EINVAL);
  char byte;
  EXPECT_EQ(read_node(file, &byte, 1), -EINVAL);
  close_node(file);
}

}  // namespace
}  // namespace strait::soft::host
