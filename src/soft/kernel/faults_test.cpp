// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/faults.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace strait::soft::kernel {
namespace {

TEST(KernelFaults, StepsFailAlwaysOrOnce) {
  KernelFaults faults = KernelFaults::parse("attach=524,map=EPERM@2").value();
  EXPECT_EQ(faults.on(Step::attach), -524);
  EXPECT_EQ(faults.on(Step::attach), -524);
  EXPECT_EQ(faults.on(Step::map), 0);
  EXPECT_EQ(faults.on(Step::map), -EPERM);
  EXPECT_EQ(faults.on(Step::map), 0);
  EXPECT_EQ(faults.on(Step::pin), 0);
  EXPECT_EQ(faults.injected(), 3u);
}

TEST(KernelFaults, EverythingIsRead) {
  const KernelFaults faults =
      KernelFaults::parse("topology;no_p2p,reset,static_moves,bar=256M,move@64K,invalidate@7").value();
  EXPECT_TRUE(faults.topology && faults.no_p2p && faults.reset && faults.static_moves);
  EXPECT_EQ(faults.bar_bytes, 256u << 20);
  EXPECT_EQ(faults.move_at, 65536u);
  EXPECT_EQ(faults.invalidate_at, 7u);
  for (const char* step : {"attach", "pin", "map", "acquire", "get_pages", "dma_map", "p2p_get", "p2p_map"})
    EXPECT_TRUE(KernelFaults::parse(std::string(step) + "=EIO")) << step;
  EXPECT_TRUE(KernelFaults::parse(""));
}

TEST(KernelFaults, WrongTextsAreRefusedByName) {
  for (const char* text : {"nonsense", "map", "map=", "map=EWHAT", "map=0", "map=5000", "map=EIO@", "map=EIO@0",
                           "map=EIO@x", "map@3", "bar=", "bar=0", "bar@1", "move@", "move=1", "invalidate@1Q", ",",
                           "bar=99999999999999999999", "move@18446744073709551615G"}) {
    const auto parsed = KernelFaults::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::invalid);
  }
}

}  // namespace
}  // namespace strait::soft::kernel
