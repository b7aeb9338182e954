// SPDX-License-Identifier: Apache-2.0
// put() and its wait, as small as a kernel can have them: no_spills.cmake looks at what they cost.
#include "strait/device/lane.hpp"

namespace strait::device {

template <Sharing S, class G>
__global__ void put_and_wait(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes, unsigned* out) {
  Lane<S, G> lane(queue);
  const Pending put = lane.put(from, 0, to, 0, bytes);
  *out = static_cast<unsigned>(lane.wait(put, Deadline::after_ns(1000000)).waited);
}
template __global__ void put_and_wait<Sharing::one_thread, Thread>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                                   unsigned*);
template __global__ void put_and_wait<Sharing::one_thread, Warp>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                                 unsigned*);
template __global__ void put_and_wait<Sharing::one_block, Warp>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                                unsigned*);
template __global__ void put_and_wait<Sharing::many_threads, Thread>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                                     unsigned*);

}  // namespace strait::device
