// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of strait, under `strait run --accelerators gaudi:2`: it lists the nodes, opens them
// with plain system calls, and finds its library by name.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <string>

#include "sys/library.hpp"

namespace strait::soft::gaudi {
namespace {

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  DIR* const open = ::opendir(folder);
  EXPECT_NE(open, nullptr) << folder;
  for (const dirent* each = open == nullptr ? nullptr : ::readdir(open); each != nullptr; each = ::readdir(open)) {
    if (each->d_name[0] != '.') names.insert(each->d_name);
  }
  if (open != nullptr) ::closedir(open);
  return names;
}

TEST(NodesUnderRun, AreListedStattedAndOpened) {
  const std::set<std::string> all{"accel0", "accel1", "accel_controlD0", "accel_controlD1"};
  EXPECT_EQ(names_in("/dev/accel"), all);
  EXPECT_EQ(names_in("/sys/class/accel"), all);
  std::string pci;
  std::ifstream("/sys/class/accel/accel1/device/pci_addr") >> pci;
  EXPECT_EQ(pci, "0000:31:00.0");
  struct stat about {};
  ASSERT_EQ(::stat("/dev/accel/accel1", &about), 0);
  EXPECT_TRUE(S_ISCHR(about.st_mode));
  EXPECT_EQ(major(about.st_rdev), 261u);
  EXPECT_EQ(minor(about.st_rdev), 1u);

  auto thunk = sys::Library::open("libhl-thunk.so");
  ASSERT_TRUE(thunk) << thunk.error().text;
  const auto open_module = thunk->symbol<int (*)(unsigned)>("hlthunk_open_by_module_id");
  const auto close_device = thunk->symbol<int (*)(int)>("hlthunk_close");
  ASSERT_TRUE(open_module && close_device);
  const int node = ::open("/dev/accel/accel1", O_RDWR | O_CLOEXEC);
  ASSERT_GE(node, 0) << errno;
  EXPECT_EQ(::open("/dev/accel/accel1", O_RDWR | O_CLOEXEC), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ((*open_module)(1), -EBUSY) << "the library sees the owner too";
  EXPECT_EQ(::ioctl(node, 0x4801), -1);
  EXPECT_EQ(errno, ENOTTY);
  ::close(node);
  const int device = (*open_module)(1);
  ASSERT_GE(device, 0);
  EXPECT_EQ(::open("/dev/accel/accel1", O_RDWR | O_CLOEXEC), -1) << "and the other way round";
  EXPECT_EQ((*close_device)(device), 0);
  const int control = ::open("/dev/accel/accel_controlD0", O_RDWR | O_CLOEXEC);
  EXPECT_GE(control, 0);
  ::close(control);
}

}  // namespace
}  // namespace strait::soft::gaudi
