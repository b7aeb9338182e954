// SPDX-License-Identifier: Apache-2.0
// translate: the one question behind three generations of kernels: by what addresses does this NIC reach this range,
// and how long are they good?
#pragma once

#include <cstdint>
#include <vector>

#include "export/reach.hpp"

namespace strait::exports {

// What a NIC's driver is told about a piece of the range, in its order. Bus addresses never reach a process: these are
// the names by which the driver asks for them.
struct AddressPiece {
  std::uint64_t address = 0;  // of the process or the device; what work requests call the first byte
  std::uint64_t length_bytes = 0;
  int fd = -1;  // dma-buf: the file, and where the piece begins in it
  std::uint64_t fd_offset = 0;
};

struct Translated {
  Exported exported;  // holds what the pieces name
  Lifetime lifetime = Lifetime::process;
  std::vector<AddressPiece> pieces;  // nvidia_p2p: pages of 64 KiB, rounded outward; else the range as it is
};

inline constexpr std::uint64_t kP2pPage = 65536;

// The honest answer that nothing reaches it is make_reachable's: Code::unsupported with every way and its reason.
[[nodiscard]] Result<Translated> translate(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic,
                                           const Policy& policy);

}  // namespace strait::exports
