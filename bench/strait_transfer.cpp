// SPDX-License-Identifier: Apache-2.0
// Moves bytes between two processes with libstrait, through its public API alone.
//
//   strait_transfer latency|rate|bandwidth [workload options] [options of strait_transport.hpp]
#include "strait_transport.hpp"
#include "transfer.hpp"

int main(int argc, char** argv) try {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::StraitTransport transport(workload, meeting, side);
    bench::run_transfer(workload, meeting, side, transport);
    bench::meet(meeting, side);
  }
  if (side == 0) bench::join();
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
