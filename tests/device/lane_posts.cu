// SPDX-License-Identifier: Apache-2.0
// A put of a value and one with a signal, each by a queue's owner and by threads that share it: lane_put.cu and this
// are what a Lane writes, and whole_stores.cmake looks at the stores.
#include "strait/device/lane.hpp"

namespace strait::device {

template <Sharing S>
__global__ void put_one_value(Queue queue, RemoteRegion to, std::uint64_t value, unsigned* ok) {
  Lane<S> lane(queue);
  if (!lane.put_value(value, to, 0).ok()) *ok = 0;
}
template __global__ void put_one_value<Sharing::one_thread>(Queue, RemoteRegion, std::uint64_t, unsigned*);
template __global__ void put_one_value<Sharing::many_threads>(Queue, RemoteRegion, std::uint64_t, unsigned*);

template <Sharing S>
__global__ void put_and_signal(Queue queue, LocalRegion from, RemoteRegion to, std::uint64_t bytes, unsigned* ok) {
  Lane<S> lane(queue);
  if (!lane.put_signal(from, 0, to, 0, bytes, 0, 1).ok()) *ok = 0;
}
template __global__ void put_and_signal<Sharing::one_thread>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                             unsigned*);
template __global__ void put_and_signal<Sharing::many_threads>(Queue, LocalRegion, RemoteRegion, std::uint64_t,
                                                               unsigned*);

}  // namespace strait::device
