// SPDX-License-Identifier: Apache-2.0
// One put and one put of a value on a CXI queue, as small as a kernel can have them: the kernels whose stores and
// registers are looked at.
#include "strait/device/cxi/lane.hpp"

namespace strait::device::cxi {

__global__ void put_memory(Queue queue, LocalMemory from, RemoteMemory to, unsigned* ok) {
  Lane<Sharing::one_thread> lane(queue);
  if (!lane.put(from, 0, to, 0, 4096).ok()) *ok = 0;
}

__global__ void put_word(Queue queue, RemoteMemory to, std::uint64_t value, unsigned* ok) {
  Lane<Sharing::many_threads> lane(queue);
  if (!lane.put_value(value, to, 0).ok()) *ok = 0;
}

}  // namespace strait::device::cxi
