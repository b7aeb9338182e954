// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every call of a Lane in a kernel, by a thread, a warp and a block.
#include "strait/device/lane.hpp"

namespace strait::device {

template <Sharing S, class G>
__global__ void call_every(Queue queue, LocalRegion local, RemoteRegion remote, Signal signal,
                           const typename Lane<S, G>::Item* items, unsigned* out) {
  Lane<S, G> lane(queue);
  const Deadline deadline = Deadline::after_ns(1000);
  unsigned ok = lane.usable() ? 1 : 0;
  ok += lane.put(local, 0, remote, 0, 8).ok();
  ok += lane.get(local, 0, remote, 0, 8).ok();
  ok += lane.put_value(1u, remote, 0).ok();
  ok += lane.put_signal(local, 0, remote, 0, 8, 0, 1).ok();
  ok += lane.signal(remote, 0, 1).ok();
  ok += lane.fetch_add(remote, 0, 1, local, 0).ok();
  ok += lane.compare_swap(remote, 0, 1, 2, local, 0).ok();
  ok += lane.send(local, 0, 8).ok();
  ok += lane.send_imm(local, 0, 8, 1).ok();
  ok += lane.put_each(local, 0, remote, 0, 8).ok();
  ok += lane.put_value_each(1u, remote, 0).ok();
  ok += lane.put_strided(local, 0, 8, remote, 0, 8, 8, 4).ok();
  const Pending last = lane.put_batch(local, remote, items, 4);
  ok += last.ok();
  ok += lane.put_values(
                4, remote, [](std::uint64_t i) { return i; }, [](std::uint64_t i) { return 8 * i; })
            .ok();
  lane.fence();
  lane.ring();
  lane.progress();
  ok += lane.wait(last, deadline).waited == Waited::ok;
  ok += lane.flush(deadline).waited == Waited::ok;
  ok += lane.wait_counter(0, 1, deadline) == Waited::ok;
  ok += lane.counter(0).failed == 0;
  ok += lane.failure().waited == Waited::ok;
  ok += lane.wait_signal(signal, 1, deadline).waited == Waited::ok;
  ok += lane.receive(local, 0, 8).ok();
  ok += lane.wait_receive(deadline).waited == Waited::ok;
  *out = ok;
}
template __global__ void call_every<Sharing::one_thread, Thread>(Queue, LocalRegion, RemoteRegion, Signal,
                                                                 const Lane<Sharing::one_thread, Thread>::Item*,
                                                                 unsigned*);
template __global__ void call_every<Sharing::one_thread, Warp>(Queue, LocalRegion, RemoteRegion, Signal,
                                                               const Lane<Sharing::one_thread, Warp>::Item*, unsigned*);
template __global__ void call_every<Sharing::one_block, Warp>(Queue, LocalRegion, RemoteRegion, Signal,
                                                              const Lane<Sharing::one_block, Warp>::Item*, unsigned*);
template __global__ void call_every<Sharing::many_threads, Block>(Queue, LocalRegion, RemoteRegion, Signal,
                                                                  const Lane<Sharing::many_threads, Block>::Item*,
                                                                  unsigned*);

}  // namespace strait::device
