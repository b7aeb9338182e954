// SPDX-License-Identifier: Apache-2.0
// device/lane.hpp on CPU threads.
#include "cpu_machine.hpp"
#include "lane_suite.hpp"
#include "near_suite.hpp"

namespace suite {

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, LaneOn, CpuMachine);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, NearOn, CpuMachine);

// The script that gpu/lane_gpu_test.cu compares with a GPU's bytes.
TEST(Bytes, OfAWarpAreTheSameEveryTime) {
  const auto one = bytes_of_group<CpuMachine, Warp, true>(32, kListBlocks + kMemberBlocks);
  same_bytes(one, bytes_of_group<CpuMachine, Warp, true>(32, kListBlocks + kMemberBlocks));
  EXPECT_NE(one, (bytes_of_group<CpuMachine, Warp, false>(32, kListBlocks)));
}

}  // namespace suite
