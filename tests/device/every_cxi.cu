// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every call of a Lane on a CXI queue in a kernel, by a thread, a warp and a block.
#include "strait/device/cxi/lane.hpp"

namespace strait::device::cxi {

__global__ void open_all(QueueState* state, QueueMemory memory, unsigned* out) {
  *out = open_queue(*state, memory);
}

__global__ void ring_bells(Counter counter, std::uint64_t count) {
  inc_success(counter, count);
  inc_failure(counter, count);
  reset_success(counter);
  reset_failure(counter);
}

template <Sharing S, class G>
__global__ void call_every(Queue queue, LocalMemory local, RemoteMemory remote, Signal signal, unsigned* out) {
  Lane<S, G> lane(queue);
  const Deadline deadline = Deadline::after_ns(1000);
  unsigned ok = lane.usable() ? 1 : 0;
  ok += lane.put(local, 0, remote, 0, 8).ok();
  ok += lane.get(local, 0, remote, 0, 8).ok();
  ok += lane.put_value(1u, remote, 0).ok();
  ok += lane.add(remote, 0, 1).ok();
  ok += lane.signal(remote, 0, 1).ok();
  ok += lane.fetch_add(remote, 0, 1, local, 0).ok();
  ok += lane.compare_swap(remote, 0, 1, 2, local, 0).ok();
  ok += lane.atomic(add_words(), local, 0, remote, 0, &local, 8).ok();
  const Pending put = lane.put_signal(local, 0, remote, 0, 8, 0, 1);
  ok += put.ok();
  ok += lane.put_each(local, 0, remote, 0, 8).ok();
  lane.ring();
  ok += lane.wait(put, deadline).waited == Waited::ok;
  ok += lane.flush(deadline).waited == Waited::ok;
  ok += lane.drain(deadline).waited == Waited::ok;
  ok += lane.wait_counter(0, 1, deadline).waited == Waited::ok;
  ok += lane.read_counter(0, deadline).waited == Waited::ok;
  ok += lane.counter(0).failure == 0;
  ok += lane.reset_counter(0, deadline).waited == Waited::ok;
  ok += lane.raise_counter(0, 1);
  ok += lane.wait_signal(signal, 1, deadline).waited == Waited::ok;
  ok += lane.cause().code == wire::cxi::ReturnCode::ok;
  *out = ok;
}
template __global__ void call_every<Sharing::one_thread, Thread>(Queue, LocalMemory, RemoteMemory, Signal, unsigned*);
template __global__ void call_every<Sharing::one_thread, Warp>(Queue, LocalMemory, RemoteMemory, Signal, unsigned*);
template __global__ void call_every<Sharing::one_block, Warp>(Queue, LocalMemory, RemoteMemory, Signal, unsigned*);
template __global__ void call_every<Sharing::many_threads, Block>(Queue, LocalMemory, RemoteMemory, Signal, unsigned*);

}  // namespace strait::device::cxi
