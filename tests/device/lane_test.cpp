// SPDX-License-Identifier: Apache-2.0
// device/lane.hpp on CPU threads.
#include "cpu_machine.hpp"
#include "lane_suite.hpp"

namespace suite {
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, LaneOn, CpuMachine);
}
