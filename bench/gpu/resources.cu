// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: what ptxas says about these kernels is the last row of the table. One operation each, as a user's
// kernel has it, and its wait.
#include "strait/device/lane.hpp"

using namespace strait::device;

extern "C" __global__ void put(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes, Pending* out) {
  Lane<Sharing::one_thread> lane(queue);
  *out = lane.put(from, 0, to, 0, bytes);
}

extern "C" __global__ void put_and_wait(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes,
                                        Outcome* out) {
  Lane<Sharing::one_thread> lane(queue);
  *out = lane.wait(lane.put(from, 0, to, 0, bytes), Deadline::after_ns(1000000));
}

extern "C" __global__ void put_signal_and_wait(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes,
                                               Outcome* out) {
  Lane<Sharing::one_thread> lane(queue);
  *out = lane.wait(lane.put_signal(from, 0, to, 0, bytes, 0, 1), Deadline::after_ns(1000000));
}

extern "C" __global__ void put_shared(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes,
                                      Pending* out) {
  Lane<Sharing::many_threads> lane(queue);
  out[threadIdx.x] = lane.put(from, 0, to, 0, bytes);
}

extern "C" __global__ void put_shared_and_wait(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes,
                                               Outcome* out) {
  Lane<Sharing::many_threads> lane(queue);
  out[threadIdx.x] = lane.wait(lane.put(from, 0, to, 0, bytes), Deadline::after_ns(1000000));
}

extern "C" __global__ void put_by_warp(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes,
                                       Pending* out) {
  Lane<Sharing::one_thread, Warp> lane(queue);
  out[threadIdx.x] = lane.put_each(from, bytes * threadIdx.x, to, bytes * threadIdx.x, bytes);
}
