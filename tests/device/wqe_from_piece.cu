// SPDX-License-Identifier: Apache-2.0
// One RDMA write from a Piece, and one inline write of a value: the kernels whose stores whole_stores.cmake looks at.
#include "strait/device/post.hpp"

namespace strait::device {

__global__ void write_piece(SendRing* ring, Remote to, Piece piece, unsigned* ok) {
  const bool posted = post_write<Sharing::one_thread>(*ring, to, piece, kSignaled).ok();
  ring_doorbell<Sharing::one_thread>(*ring);
  if (!posted) *ok = 0;
}

__global__ void write_value(SendRing* ring, Remote to, std::uint64_t value) {
  if (post_write_inline<Sharing::many_threads>(*ring, to, &value, sizeof(value), kSignaled).ok())
    ring_doorbell<Sharing::many_threads>(*ring);
}

}  // namespace strait::device
