// SPDX-License-Identifier: Apache-2.0
// Posting to CXI command rings nobody serves, ours beside a loop with the same stores and the same releases and no
// bookkeeping; and waiting for a counter's write-back, with a CPU thread in the place of the device.
#pragma once

#include "post.hpp"

namespace bench::gpu {

// 64-byte put commands by one thread, the write pointer with each.
Launches cxi_by_thread(unsigned launches);
// As many warps, each with a queue of its own, one command per member and the write pointer with every 32: one ring
// fill.
Launches cxi_by_warps(unsigned warps, unsigned launches);
// All on one queue; `bare` takes places by one addition and rings for itself, which is no queue.
Launches cxi_shared_warps(unsigned warps, unsigned launches);

// A kernel writes a flag into mapped host memory and waits for the CPU's: nanoseconds there and back.
double flag_trip_ns();
// Nanoseconds of a round trip: `ours` arms an event and waits until the CPU has written the counter back, into mapped
// host memory or by a copy into GPU memory; `bare` is the flags'.
Launches cxi_wait(bool on_gpu, unsigned launches);
// `ours`: a put of 8 bytes between two cards of the software Cassini, driven by a thread of this process, until its
// counter is written back into mapped host memory.
Launches cxi_on_cassini(unsigned launches);

}  // namespace bench::gpu
