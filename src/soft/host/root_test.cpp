// SPDX-License-Identifier: Apache-2.0
// The tree of a run: what is written, and that nothing of it stays.
#include "soft/host/root.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "soft/host/path.hpp"

namespace strait::soft::host {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Root, HoldsWhatIsWritten) {
  Root root = Root::create().value();
  root.claim("/sys/class/infiniband").value();
  root.claim("/dev/infiniband").value();
  root.file("/sys/class/infiniband/strait0/node_type", "1: CA").value();
  root.file("/sys/class/infiniband/strait0/empty", "").value();
  root.link("/sys/class/infiniband/strait0/device", "../../../devices/x").value();
  root.node("/dev/infiniband/uverbs0", makedev(231, 192)).value();
  const std::string& at = root.path();
  EXPECT_EQ(text_of(at + "/claims"), "/sys/class/infiniband\n/dev/infiniband\n");
  EXPECT_EQ(text_of(at + "/sys/class/infiniband/strait0/node_type"), "1: CA\n");
  EXPECT_EQ(text_of(at + "/sys/class/infiniband/strait0/empty"), "\n");
  EXPECT_EQ(fs::read_symlink(at + "/sys/class/infiniband/strait0/device"), "../../../devices/x");
  EXPECT_EQ(text_of(at + "/dev/infiniband/uverbs0"), "231:192\n");
  struct stat is;
  ASSERT_EQ(::stat(at.c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, ::getuid() == 0 ? 0711u : 0700u) << "other users have no business there";
  // A process of root's that works as somebody else comes back to its devices, and to nothing that was captured.
  ASSERT_EQ(::stat((at + kCaptures).c_str(), &is), 0);
  if (::getuid() == 0) {
    EXPECT_EQ(is.st_mode & 0777, 0700u);
  }
}

TEST(Root, KnowsItsClaims) {
  Root root = Root::create().value();
  EXPECT_FALSE(root.claimed("/dev/infiniband"));
  root.claim("/dev/infiniband").value();
  root.claim("/sys/class/x").value();
  for (const char* path : {"/dev/infiniband", "/dev/infiniband/uverbs0", "/sys/class/x/y"})
    EXPECT_TRUE(root.claimed(path)) << path;
  for (const char* path : {"/dev/infiniband2", "/dev", "/", "", "/sys/class/xy"})
    EXPECT_FALSE(root.claimed(path)) << path;
}

TEST(Root, RefusesPathsThatLeadElsewhere) {
  Root root = Root::create().value();
  for (const char* path : {"relative", "/", "/sys/../../etc/x", "/sys/..", "/sys//x", "/sys/", "", "/a\nb"}) {
    const auto written = root.file(path, "x");
    ASSERT_FALSE(written) << path;
    EXPECT_EQ(written.error().code, Code::invalid) << path;
  }
  EXPECT_EQ(root.node("/sys/class/x", 1).error().code, Code::invalid);
  EXPECT_FALSE(root.claim("/dev/"));
}

TEST(Root, IsGoneWithItsOwner) {
  std::string path;
  {
    Root root = Root::create().value();
    root.file("/sys/a/b/c", "x").value();
    path = root.path();
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Root, TwoLiveSideBySide) {
  const Root one = Root::create().value();
  const Root two = Root::create().value();
  EXPECT_NE(one.path(), two.path());
  EXPECT_TRUE(fs::exists(one.path())) << "the second one swept the first one away";
}

}  // namespace
}  // namespace strait::soft::host
