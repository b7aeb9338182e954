// SPDX-License-Identifier: Apache-2.0
// Addresses and the numbers of a connection. Devices themselves are tested in the kernel lab.
#include "rail/verbs/port.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "rail/verbs/rail.hpp"

namespace strait::rail::verbs {
namespace {

TEST(VerbsPort, AddressThereAndBack) {
  Address mine;
  for (std::uint8_t i = 0; i < 16; ++i) mine.gid.raw[i] = i;
  mine.lid = 0x1234;
  mine.mtu = IBV_MTU_2048;
  mine.reads = 16;
  mine.ethernet = false;
  mine.seed = 0x1122334455667788;
  const auto back = Address::parse(mine.bytes());
  ASSERT_TRUE(back);
  EXPECT_EQ(std::memcmp(back->gid.raw, mine.gid.raw, 16), 0);
  EXPECT_EQ(back->lid, mine.lid);
  EXPECT_EQ(back->mtu, mine.mtu);
  EXPECT_EQ(back->reads, mine.reads);
  EXPECT_EQ(back->ethernet, mine.ethernet);
  EXPECT_EQ(back->psn(5), mine.psn(5));
  EXPECT_NE(mine.psn(5), mine.psn(6));
  EXPECT_LE(mine.psn(5), 0xffffffu);
}

TEST(VerbsPort, RefusesOtherAddresses) {
  strait_nic_address stranger{};
  EXPECT_EQ(Address::parse(stranger).error().code, Code::unsupported);
  Address damaged;
  damaged.mtu = 9;
  EXPECT_EQ(Address::parse(damaged.bytes()).error().code, Code::invalid);
}

TEST(VerbsPort, Times) {
  EXPECT_EQ(timeout_code(0), 1);
  EXPECT_EQ(timeout_code(8'192), 1);
  EXPECT_EQ(timeout_code(8'193), 2);
  EXPECT_EQ(timeout_code(500'000'000), 17);  // 537 ms
  EXPECT_EQ(timeout_code(INT64_MAX), 31);
  EXPECT_EQ(rnr_code(0), 1);
  EXPECT_EQ(rnr_code(100'000), 7);  // 0.12 ms
  EXPECT_EQ(rnr_code(491'520'000), 31);
  EXPECT_EQ(rnr_code(600'000'000), 0);  // 655.36 ms
  EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256u);
  EXPECT_EQ(mtu_bytes(IBV_MTU_4096), 4096u);
}

TEST(VerbsPort, GidsForPeople) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 198;
  gid.raw[13] = 51;
  gid.raw[14] = 100;
  gid.raw[15] = 2;
  EXPECT_EQ(gid_text(gid), "::ffff:198.51.100.2");
  gid.raw[0] = 0xfd;
  EXPECT_EQ(gid_text(gid), "fd00:0:0:0:0:ffff:c633:6402");
}

TEST(VerbsPort, SaysWhatIsWrongWithAName) {
  EXPECT_EQ(Port::open("no_such_device/x").error().code, Code::invalid);
  EXPECT_EQ(Port::open("no_such_device/256").error().code, Code::invalid);
  const auto none = Port::open("no_such_device");
  ASSERT_FALSE(none);
  EXPECT_FALSE(none.error().remedy.empty());
  for (const char* config : {"color=red", "device", "device=x,", "device=x,max_message=0", "max_message=1x"}) {
    const auto refused = VerbsRail::open(config);
    ASSERT_FALSE(refused) << config;
    EXPECT_EQ(refused.error().code == Code::invalid, std::string(config) != "device=x,") << config;
  }
}

}  // namespace
}  // namespace strait::rail::verbs
