// SPDX-License-Identifier: Apache-2.0
// Where paths lead: in a tree that is written down here, so that every link is in view.
#include "soft/host/path.hpp"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace strait::soft::host {
namespace {

// Paths as the kernel knows them. "" is a folder, "=" a file, everything else the target of a link.
struct Tree {
  std::map<std::string, std::string> entries = {
      {"/sys", ""},
      {"/sys/class", ""},
      {"/sys/class/net", ""},
      {"/sys/class/net/eth0", "../../devices/virtual/net/eth0"},
      {"/sys/devices/virtual/net/eth0", ""},
      {"/tree/sys/class/infiniband", ""},
      {"/tree/sys/class/infiniband/strait0", "../../devices/pci5000:00/5000:00:00.0/infiniband/strait0"},
      {"/tree/sys/devices/pci5000:00", ""},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0", ""},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0/infiniband", ""},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0/infiniband/strait0", ""},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0/infiniband/strait0/node_type", "="},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0/infiniband/strait0/device", "../../../5000:00:00.0"},
      {"/tree/sys/devices/pci5000:00/5000:00:00.0/subsystem", "/sys/bus/pci"},
      {"/tree/sys/class/infiniband/loop", "loop"},
      {"/tree/dev/infiniband", ""},
      {"/tree/dev/infiniband/uverbs0", "="},
      {"/tree/dev/infiniband/abs", "/dev/infiniband/uverbs0"},
  };
  std::size_t asked = 0;

  static long read_link(void* context, const char* path, char* into, std::size_t capacity) {
    Tree& tree = *static_cast<Tree*>(context);
    ++tree.asked;
    std::string name = path;
    const bool must_be_folder = name.ends_with("/.");
    if (must_be_folder) name.resize(name.size() - 2);
    const auto found = tree.entries.find(name);
    if (found == tree.entries.end()) return -ENOENT;
    if (found->second == "=") return must_be_folder ? -ENOTDIR : -EINVAL;
    if (found->second.empty()) return -EINVAL;
    const std::size_t length = std::min(capacity, found->second.size());
    std::memcpy(into, found->second.data(), length);
    return static_cast<long>(length);
  }
};

class PathTest : public ::testing::Test {
 protected:
  PathTest() {
    EXPECT_TRUE(map_->set_root("/tree"));
    for (const char* claim : {"/sys/class/infiniband", "/sys/devices/pci5000:00", "/dev/infiniband"})
      EXPECT_TRUE(map_->add_claim(claim));
  }
  // "-": unchanged; "!2": refused with errno 2.
  std::string place(const std::string& path, const std::string& folder = "/home/me", bool follow = true) {
    tree_.asked = 0;
    const auto out = std::make_unique<Place>();
    switch (map_->place(folder.c_str(), path.c_str(), follow, Tree::read_link, &tree_, *out)) {
      case Placed::unchanged: return "-";
      case Placed::failed: return "!" + std::to_string(out->error);
      case Placed::moved: break;
    }
    EXPECT_EQ(out->inside, std::string(out->path).starts_with("/tree/"));
    return out->path;
  }
  std::unique_ptr<PathMap> map_ = std::make_unique<PathMap>();
  Tree tree_;
};

constexpr const char* kDevice = "/tree/sys/devices/pci5000:00/5000:00:00.0";

TEST_F(PathTest, ClaimsAreInTheRootAndTheirNeighboursAreNot) {
  EXPECT_EQ(place("/sys/class/infiniband"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("/dev/infiniband/uverbs0"), "/tree/dev/infiniband/uverbs0");
  EXPECT_EQ(place("/dev/infiniband/uverbs7"),
            "/tree/dev/infiniband/uverbs7");  // nobody is there, which the caller sees
  EXPECT_EQ(place("/sys/class/infiniband_verbs"), "-");
  EXPECT_EQ(place("/sys/class"), "-");
  EXPECT_EQ(place("/dev/null"), "-");
  EXPECT_EQ(place("/"), "-");
  EXPECT_EQ(place(""), "-");
  EXPECT_EQ(tree_.asked, 0u);
}

TEST_F(PathTest, SlashesAndDots) {
  EXPECT_EQ(place("//sys///class/./infiniband"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("/sys/class/infiniband/"), "/tree/sys/class/infiniband/");
  EXPECT_EQ(place("/sys/class/infiniband/."), "/tree/sys/class/infiniband/");
  EXPECT_EQ(place("/dev/infiniband/uverbs0/"), "/tree/dev/infiniband/uverbs0/");  // the kernel says ENOTDIR
  EXPECT_EQ(place("/sys/class/net/../infiniband"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("/../../sys/class/infiniband"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("/usr/lib/../../sys/class/infiniband"), "/tree/sys/class/infiniband");
}

TEST_F(PathTest, LinksInTheRootAreFollowedInTheRoot) {
  const std::string device = kDevice;
  EXPECT_EQ(place("/sys/class/infiniband/strait0/node_type"), device + "/infiniband/strait0/node_type");
  EXPECT_EQ(place("/sys/class/infiniband/strait0"), device + "/infiniband/strait0");
  EXPECT_EQ(place("/sys/class/infiniband/strait0/device"), device);
  EXPECT_EQ(place("/dev/infiniband/abs"), "/tree/dev/infiniband/uverbs0");
}

TEST_F(PathTest, TheLastLinkIsLeftWhenAsked) {
  EXPECT_EQ(place("/sys/class/infiniband/strait0", "/", false), "/tree/sys/class/infiniband/strait0");
  EXPECT_EQ(place("/sys/class/infiniband/strait0/device", "/", false),
            std::string(kDevice) + "/infiniband/strait0/device");
  // A slash behind it asks for what it leads to.
  EXPECT_EQ(place("/sys/class/infiniband/strait0/device/", "/", false), std::string(kDevice) + "/");
}

TEST_F(PathTest, TwoDotsBehindALinkAreAboveItsTarget) {
  EXPECT_EQ(place("/sys/class/infiniband/strait0/.."), std::string(kDevice) + "/infiniband");
  EXPECT_EQ(place("/sys/class/infiniband/strait0/device/../5000:00:00.0"), kDevice);
  // eth0 is a link of the real tree: its ".." is not /sys/class/net.
  EXPECT_EQ(place("/sys/class/net/eth0/../infiniband"), "-");
  EXPECT_EQ(place("/sys/class/net/eth0/../../../../class/infiniband"), "/tree/sys/class/infiniband");
}

TEST_F(PathTest, WaysOutOfTheRootLeadToTheRealTree) {
  EXPECT_EQ(place("/sys/class/infiniband/../net/eth0"), "/sys/class/net/eth0");
  EXPECT_EQ(place("/sys/class/infiniband/../../.."), "/");
  EXPECT_EQ(place("/sys/class/infiniband/strait0/device/subsystem/drivers"), "/sys/bus/pci/drivers");
}

TEST_F(PathTest, RelativePaths) {
  EXPECT_EQ(place("infiniband/uverbs0", "/dev"), "/tree/dev/infiniband/uverbs0");
  EXPECT_EQ(place("sys/class/infiniband", "/"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("null", "/dev"), "-");
  EXPECT_EQ(place("../../sys/class/infiniband", "/home/me"), "/tree/sys/class/infiniband");
  EXPECT_EQ(place("file", "/home/me"), "-");
}

TEST_F(PathTest, RelativeToAFolderThatWasOpenedInTheRoot) {
  EXPECT_EQ(place("strait0/node_type", "/tree/sys/class/infiniband"),
            std::string(kDevice) + "/infiniband/strait0/node_type");
  EXPECT_EQ(place(".", "/tree/sys/class/infiniband"), "/tree/sys/class/infiniband/");
  EXPECT_EQ(place("../net/eth0", "/tree/sys/class/infiniband"), "/sys/class/net/eth0");
  EXPECT_EQ(place("..", "/tree/sys/class/infiniband"), "/sys/class");
}

TEST_F(PathTest, NamesThatLeakedOutOfTheRoot) {
  EXPECT_EQ(place("/tree/sys/class/infiniband/strait0/device"), kDevice);
  EXPECT_EQ(place("/tree/claims"), "-");
  EXPECT_EQ(place("/treeless/x"), "-");
}

TEST_F(PathTest, RefusesWhatTheKernelRefuses) {
  EXPECT_EQ(place("/sys/class/infiniband/loop"), "!" + std::to_string(ELOOP));
  EXPECT_EQ(place("/sys/class/infiniband/nobody/.."), "!" + std::to_string(ENOENT));
  EXPECT_EQ(place("/dev/infiniband/uverbs0/.."), "!" + std::to_string(ENOTDIR));
  EXPECT_EQ(place("/sys/class/infiniband/" + std::string(kPathBytes - 25, 'a')), "!" + std::to_string(ENAMETOOLONG));
  EXPECT_EQ(place("/sys/class/infiniband/" + std::string(2 * kPathBytes, 'a')), "-");
}

TEST_F(PathTest, CheapAnswers) {
  EXPECT_TRUE(map_->may_concern("/sys/class/infiniband"));
  EXPECT_TRUE(map_->may_concern("/dev/null"));
  EXPECT_TRUE(map_->may_concern("../../sys/x"));
  EXPECT_TRUE(map_->may_concern("/usr/../sys/x"));
  EXPECT_FALSE(map_->may_concern("/usr/lib/../lib64"));
  EXPECT_FALSE(map_->may_concern("/etc/passwd"));
  EXPECT_FALSE(map_->may_concern("sys/x"));
  for (const char* folder : {"/", "/dev", "/sys/class", "/tree/sys/class/infiniband", "/tree"})
    EXPECT_TRUE(map_->concerns_folder(folder)) << folder;
  for (const char* folder : {"/home", "/sys/class/net", "/devices", "/treeless"})
    EXPECT_FALSE(map_->concerns_folder(folder)) << folder;
}

TEST_F(PathTest, BackToTheNamesThatProgramsKnow) {
  char path[64] = "/tree/sys/class/infiniband/strait0";
  EXPECT_TRUE(map_->to_logical(path));
  EXPECT_STREQ(path, "/sys/class/infiniband/strait0");
  EXPECT_FALSE(map_->to_logical(path));
  char other[64] = "/tree/claims";
  EXPECT_FALSE(map_->to_logical(other));
}

TEST_F(PathTest, NamesThatClaimsBringToAFolder) {
  std::size_t length = 0;
  const char* name = map_->name_below("/sys/class", 0, &length);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(std::string(name, length), "infiniband");
  EXPECT_EQ(map_->name_below("/sys/class", 1, &length), nullptr);
  EXPECT_EQ(map_->name_below("/home", 0, &length), nullptr);
  name = map_->name_below("/", 2, &length);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(std::string(name, length), "dev");
}

TEST(PathMap, RefusesRootsAndClaimsThatCannotWork) {
  const auto map = std::make_unique<PathMap>();
  EXPECT_FALSE(map->set_root(""));
  EXPECT_FALSE(map->set_root("relative"));
  EXPECT_FALSE(map->set_root("/slash/"));
  EXPECT_FALSE(map->set_root(("/" + std::string(kPathBytes, 'a')).c_str()));
  EXPECT_FALSE(map->add_claim("/"));
  EXPECT_FALSE(map->add_claim("dev"));
  EXPECT_FALSE(map->add_claim("/dev/"));
  for (std::size_t i = 0; i < kMaxClaims; ++i) EXPECT_TRUE(map->add_claim("/dev/x"));
  EXPECT_FALSE(map->add_claim("/dev/x"));
}

}  // namespace
}  // namespace strait::soft::host
