// SPDX-License-Identifier: Apache-2.0
// Posting to rings nobody serves, ours beside a loop with the same stores and the same releases and no bookkeeping.
#pragma once

#include <string>
#include <vector>

namespace bench::gpu {

// Nanoseconds per entry, one value per launch; the launches of one index ran one after the other, so that the ratio of
// a pair means something on a machine whose clocks move.
struct Launches {
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> ours_cycles;  // the same by the multiprocessor's clock
  std::vector<double> one_release;  // bare with a release before the record only; empty: not asked for
  std::vector<double> peer;         // empty: it was not built
  std::vector<double> peer_fenced;  // the same with the fence it lacks before its doorbell
};

// 8-byte inline writes by one thread, a doorbell with every `every`-th: 1, 8 or 64.
Launches post_by_thread(unsigned every, unsigned launches);
// One warp of which `members` (8 or 32) write one entry each, then one doorbell.
Launches post_by_warp(unsigned members, unsigned launches);
// As many warps, each with a queue of its own, every ring filled once.
Launches post_by_warps(unsigned warps, unsigned launches);
// All on one queue. Here `bare` takes its places by one addition and rings for itself: it can move the record backwards
// and is no queue, but nothing that is one can be quicker.
Launches share_by_warps(unsigned warps, unsigned launches);
Launches share_by_threads(unsigned blocks, unsigned threads, unsigned launches);

// "NVIDIA H200, 132 SMs, driver 13.0, runtime 13.0"
std::string describe_gpu();
// The clocks of an idle GPU are slow.
void warm_up();

}  // namespace bench::gpu
