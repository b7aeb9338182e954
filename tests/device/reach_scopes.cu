// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: the same steps towards a NIC near and far, and among the posters of a block and of a GPU.
// scopes.cmake looks at how far each kernel's fences and atomics go.
#include "strait/device/send_ring.hpp"

namespace strait::device {

template <Reach R>
STRAIT_HD_INLINE void show(SendRing ring, std::uint64_t next, std::uint64_t control) {
  ring.reach = R;
  show_to_device(ring, next, control);
}
extern "C" __global__ void towards_a_near_nic(SendRing ring, std::uint64_t next, std::uint64_t control) {
  show<Reach::gpu>(ring, next, control);
}
extern "C" __global__ void towards_a_far_nic(SendRing ring, std::uint64_t next, std::uint64_t control) {
  show<Reach::system>(ring, next, control);
}

// Every step of a slot's life, and nothing that is shown to a NIC.
template <Sharing S>
STRAIT_HD_INLINE void share_slots(Slots& slots, std::uint64_t* out) {
  std::uint64_t first = 0;
  if (!reserve<S>(slots, 1, first)) return;
  commit<S>(slots, first, 1);
  show_ready<S>(slots, [&](std::uint64_t ready) { *out = ready; });
  raise_completed<S>(slots, rung_of<S>(slots));
  *out = completed_of<S>(slots) + free_slots<S>(slots);
}
extern "C" __global__ void among_a_block(Slots* slots, std::uint64_t* out) {
  share_slots<Sharing::one_block>(*slots, out);
}
extern "C" __global__ void among_a_gpu(Slots* slots, std::uint64_t* out) {
  share_slots<Sharing::many_threads>(*slots, out);
}

}  // namespace strait::device
