// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every function of device/ in a kernel, in every sharing mode, beside the same on the host.
#include "all_functions.hpp"

namespace strait::device {

__global__ void open_all(SendRing* send, ReceiveRing* receive, CompletionRing* cq, SendRingMemory a,
                         ReceiveRingMemory b, CompletionRingMemory c, unsigned* out) {
  *out = open_send_ring(*send, a) + open_receive_ring(*receive, b) + open_completion_ring(*cq, c);
}

template <Sharing S>
__global__ void call_all_kernel(SendRing* send, ReceiveRing* receive, CompletionRing* cq, const Piece* pieces,
                                std::uint32_t count, Remote remote, const void* payload, std::uint32_t length,
                                unsigned* out) {
  *out = call_all<S>(*send, *receive, *cq, pieces, count, remote, payload, length);
}
template __global__ void call_all_kernel<Sharing::one_thread>(SendRing*, ReceiveRing*, CompletionRing*, const Piece*,
                                                              std::uint32_t, Remote, const void*, std::uint32_t,
                                                              unsigned*);
template __global__ void call_all_kernel<Sharing::one_block>(SendRing*, ReceiveRing*, CompletionRing*, const Piece*,
                                                             std::uint32_t, Remote, const void*, std::uint32_t,
                                                             unsigned*);
template __global__ void call_all_kernel<Sharing::many_threads>(SendRing*, ReceiveRing*, CompletionRing*, const Piece*,
                                                                std::uint32_t, Remote, const void*, std::uint32_t,
                                                                unsigned*);

unsigned on_the_host(SendRing& send, ReceiveRing& receive, CompletionRing& cq, const Piece* pieces,
                     const Remote& remote) {
  return call_all<Sharing::many_threads>(send, receive, cq, pieces, 1, remote, pieces, 8);
}

}  // namespace strait::device
