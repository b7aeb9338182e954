// SPDX-License-Identifier: Apache-2.0
// RDMaxcel's own device functions and launch helpers, in a library of their own: our rdmaxcel.h has functions of the
// same names. Built where its sources are given (STRAIT_RDMAXCEL); nothing of it lies in this tree.
#pragma once

#include <cstdint>

namespace bench::gpu {

struct PeerRing {
  std::uint8_t* blocks;   // a kernel's addresses
  std::uint32_t* record;  // both words
  void* doorbell;         // 64 bytes
  std::uint32_t count;    // of blocks
  std::uint32_t qpn;
};

// Fills the ring by one thread, a doorbell each; nanoseconds per entry by the GPU's clock, negative: it failed.
using PeerPost = double (*)(const PeerRing&, int fenced);
// launch_send_wqe + launch_db_ring, `times` times; nanoseconds each by the host's clock.
using PeerLaunch = double (*)(const PeerRing&, unsigned times);

struct Peer {
  PeerPost post = nullptr;
  PeerLaunch launch = nullptr;
};
// From the library beside the program; null members where it was not built.
const Peer& rdmaxcel();

}  // namespace bench::gpu
