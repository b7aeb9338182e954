// SPDX-License-Identifier: Apache-2.0
#include "export/reach.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "buffer/providers.hpp"
#include "soft/accel/plugin.hpp"
#include "sys/mapping.hpp"

namespace strait::exports {
namespace {

using buffer::Range;

const NicAbilities kNic{.name = "strait0", .imports_fds = true};
const Policy kStrict{};
const Policy kStaging{.allow_staging = true};

std::unique_ptr<buffer::Providers> open_soft(const std::string& config) {
  std::vector<buffer::Plugin> plugins;
  plugins.push_back(buffer::use_plugin(strait_provider_plugin(), config).value());
  return buffer::Providers::open(std::move(plugins)).value();
}

class ReachTest : public ::testing::Test {
 protected:
  void open(const std::string& config) {
    all_ = open_soft(config + ",memory=16777216,udmabuf=off");
    memory_ = all_->allocate("soft:0", 64 * 1024).value();
    claim_ = all_->classify(memory_.range()).value();
  }
  [[nodiscard]] bool counted(const std::string& what) const {
    return ("," + all_->providers()[1]->counters() + ",").find("," + what + ",") != std::string::npos;
  }
  std::unique_ptr<buffer::Providers> all_;
  buffer::Memory memory_;
  buffer::Claim claim_;
};

std::string reason(const std::vector<Rejected>& rejected, Way way) {
  for (const Rejected& each : rejected) {
    if (each.way == way) return each.reason;
  }
  return "not rejected";
}

TEST_F(ReachTest, DeviceMemoryIsExported) {
  open("export=1");
  {
    auto reached = make_reachable(claim_, Range{memory_.range().address + 4096, 1000}, kNic, kStrict);
    ASSERT_TRUE(reached) << reached.error().text;
    EXPECT_EQ(reached->way, Way::dmabuf);
    EXPECT_EQ(reached->range, (Range{memory_.range().address + 4096, 1000}));
    ASSERT_TRUE(reached->fd.valid());
    EXPECT_EQ(reached->fd.offset(), 4096u);
    EXPECT_TRUE(sys::check_sealed(reached->fd.fd(), 4096 + 1000));
    EXPECT_EQ(reason(reached->rejected, Way::host_pages), "soft:0 is not host memory");
    EXPECT_EQ(reason(reached->rejected, Way::staged), "never silent, and not needed");
    EXPECT_EQ(reached->rejected.size(), 4u) << "every way but the one taken";
    EXPECT_TRUE(counted("exports=1"));
    EXPECT_TRUE(counted("live_fds=1"));
    ExportedFd moved = std::move(reached->fd);
    EXPECT_FALSE(reached->fd.valid());
    EXPECT_TRUE(counted("live_fds=1")) << "moved, not doubled";
  }
  EXPECT_TRUE(counted("fd_closes=1"));
  EXPECT_TRUE(counted("live_fds=0"));
  EXPECT_TRUE(counted("bad_fd_closes=0"));
}

TEST_F(ReachTest, ThePagesGoAlongForANicThatTakesNoDmabuf) {
  open("export=1");
  NicAbilities nic = kNic;
  nic.wants_pages = true;
  {
    auto reached = make_reachable(claim_, Range{memory_.range().address + 4096, 1000}, nic, kStrict);
    ASSERT_TRUE(reached) << reached.error().text;
    EXPECT_EQ(reached->way, Way::dmabuf);
    ASSERT_TRUE(reached->pages.valid());
    EXPECT_NE(reached->pages.fd(), reached->fd.fd());
    EXPECT_EQ(reached->pages.offset(), 4096u);
    EXPECT_TRUE(sys::check_sealed(reached->pages.fd(), 4096 + 1000));
    EXPECT_TRUE(counted("exports=2"));
  }
  EXPECT_TRUE(counted("fd_closes=2"));
}

TEST_F(ReachTest, HostMemoryNeedsNoExport) {
  open("export=1");
  std::vector<char> bytes(5000);
  const auto claim = all_->classify(bytes.data(), bytes.size()).value();
  const auto reached = make_reachable(claim, claim.asked, kNic, kStrict);
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->way, Way::host_pages);
  EXPECT_FALSE(reached->fd.valid());
  EXPECT_EQ(reached->rejected.size(), 4u);
  EXPECT_TRUE(counted("exports=0"));
}

TEST_F(ReachTest, NothingIsStagedSilently) {
  open("export=0");
  const auto refused = make_reachable(claim_, claim_.asked, kNic, kStrict);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().text.find("cannot reach soft:0 memory from strait0"), std::string::npos);
  EXPECT_NE(refused.error().text.find("dma-buf: soft:0 cannot export its memory"), std::string::npos)
      << refused.error().text;
  EXPECT_NE(refused.error().text.find("peer-memory client: no peer-memory client is known to strait0"),
            std::string::npos);
  EXPECT_NE(refused.error().remedy.find("STRAIT_ALLOW_STAGING=1"), std::string::npos);

  const auto staged = make_reachable(claim_, claim_.asked, kNic, kStaging);
  ASSERT_TRUE(staged);
  EXPECT_EQ(staged->way, Way::staged);
  EXPECT_FALSE(zero_copy(staged->way));
  EXPECT_EQ(reason(staged->rejected, Way::dmabuf), "soft:0 cannot export its memory");
}

TEST_F(ReachTest, ANicThatImportsNothing) {
  open("export=1");
  const NicAbilities nic{.name = "old0"};
  EXPECT_NE(make_reachable(claim_, claim_.asked, nic, kStrict)
                .error()
                .text.find("old0 registers no memory by file descriptor"),
            std::string::npos);
  EXPECT_EQ(make_reachable(claim_, claim_.asked, nic, kStaging)->way, Way::staged);
  const NicAbilities useless{.name = "none0", .host_pages = false};
  const auto refused = make_reachable(claim_, claim_.asked, useless, kStaging);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("could not register the bounce buffer either"), std::string::npos);
  const NicAbilities short_one{.name = "tiny0", .imports_fds = true, .max_bytes = 4096};
  EXPECT_EQ(make_reachable(claim_, claim_.asked, short_one, kStrict).error().text,
            "tiny0 registers at most 4 KiB at once, 64 KiB were asked for");
  EXPECT_TRUE(counted("exports=0"));
}

TEST_F(ReachTest, RangesOutsideTheClaimAreRefused) {
  open("export=1");
  const std::uint64_t base = claim_.whole.address;
  for (const Range range : {Range{base, 0}, Range{base, 64 * 1024 + 1}, Range{base - 1, 2}, Range{base + 64 * 1024, 1},
                            Range{base + 1, UINT64_MAX}}) {
    EXPECT_EQ(make_reachable(claim_, range, kNic, kStaging).error().code, Code::invalid) << range.address - base;
  }
}

// The claim is stale: the memory was freed after it was recognised.
TEST_F(ReachTest, AStaleClaimExportsNothing) {
  open("export=1");
  ASSERT_TRUE(memory_.free());
  const auto refused = make_reachable(claim_, claim_.asked, kNic, kStrict);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_NE(refused.error().text.find("freed"), std::string::npos);
}

TEST_F(ReachTest, OutOfDescriptorsIsSaidAndLeavesNothing) {
  open("export=1");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = ::dup(0);
  ::close(lowest);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = make_reachable(claim_, claim_.asked, kNic, kStrict);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_NE(refused.error().remedy.find("ulimit -n"), std::string::npos);
  EXPECT_TRUE(counted("live_fds=0"));
}

// One way at a time: either it is made, or its own reason is the whole answer.
TEST_F(ReachTest, ByExactlyOneWay) {
  open("export=1");
  NicAbilities nic = kNic;
  const auto why_not = [&](Way way) {
    const auto reached = reach_by(claim_, claim_.asked, nic, way);
    return reached ? std::string("reached") : reached.error().text;
  };
  EXPECT_EQ(why_not(Way::host_pages), "soft:0 is not host memory");
  EXPECT_EQ(why_not(Way::dmabuf), "reached");
  EXPECT_EQ(why_not(Way::peer_memory), "no peer-memory client is known to strait0");
  EXPECT_EQ(why_not(Way::p2p_pages), "not on this NIC");
  EXPECT_EQ(why_not(Way::staged), "reached");
  nic.plain_unknown = true;  // asked for by name: it is tried
  EXPECT_EQ(why_not(Way::peer_memory), "reached");
  EXPECT_EQ(why_not(Way::p2p_pages), "reached");
  nic.imports_fds = nic.host_pages = false;
  EXPECT_EQ(why_not(Way::dmabuf), "strait0 registers no memory by file descriptor");
  EXPECT_EQ(why_not(Way::staged), "strait0 could not register the bounce buffer either");
  EXPECT_EQ(reach_by(claim_, {claim_.asked.address, claim_.asked.length_bytes + 1}, nic, Way::dmabuf).error().code,
            Code::invalid);
  EXPECT_TRUE(counted("live_fds=0"));
}

TEST_F(ReachTest, ManagedMemoryIsForNicsThatFollowItsPages) {
  open("export=1");
  claim_.sort = STRAIT_SORT_MANAGED;
  claim_.capabilities = STRAIT_CAN_COPY | STRAIT_CPU_ACCESSIBLE;
  NicAbilities nic = kNic;
  nic.follows_pages = true;
  const auto followed = make_reachable(claim_, claim_.asked, nic, kStrict);
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->way, Way::host_pages);
  nic.follows_pages = false;
  const auto pinned = make_reachable(claim_, claim_.asked, nic, kStaging);
  ASSERT_TRUE(pinned) << pinned.error().text;
  EXPECT_EQ(pinned->way, Way::staged);
  EXPECT_EQ(reason(pinned->rejected, Way::host_pages), "managed memory of soft:0 migrates, and strait0 pins pages");
  EXPECT_EQ(reason(pinned->rejected, Way::dmabuf), "managed memory of soft:0 migrates and is never exported");
  EXPECT_EQ(make_reachable(claim_, claim_.asked, nic, kStrict).error().code, Code::unsupported);
}

}  // namespace
}  // namespace strait::exports
