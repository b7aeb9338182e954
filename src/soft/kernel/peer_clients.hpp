// SPDX-License-Identifier: Apache-2.0
// The two peer-memory clients there were: NVIDIA's, on top of nvidia_p2p, and AMD's, in the shape of ROCnRDMA.
#pragma once

#include <memory>

#include "soft/kernel/p2p.hpp"
#include "soft/kernel/peer_memory.hpp"

namespace strait::soft::kernel {

// `persistent`: the newer flavour, whose pages survive a free and which never invalidates.
[[nodiscard]] std::shared_ptr<PeerClient> make_nvidia_client(P2p& p2p, bool persistent);
[[nodiscard]] std::shared_ptr<PeerClient> make_amd_client(Drivers& drivers, BarSpace& bar, KernelFaults& faults);

}  // namespace strait::soft::kernel
