// SPDX-License-Identifier: Apache-2.0
// How can a NIC reach this memory? One answer, and for every other way the reason it was not taken.
//
// The namespace is `exports` because `export` is a keyword.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "buffer/claim.hpp"
#include "export/abilities.hpp"
#include "export/exported_fd.hpp"

namespace strait::exports {

struct Exported {
  Way way = Way::host_pages;
  buffer::Range range;  // what the NIC is to register, the caller's own bytes
  ExportedFd fd;        // valid for Way::dmabuf only
  ExportedFd pages;     // the memfd behind a dma-buf, when the NIC wants it and there is one
  // Of whoever made `fd`, for a NIC in software when the descriptor cannot be mapped; null where there is none.
  const strait_memory_port* port = nullptr;
  bool persistent = false;         // by address, and the pages survive the memory
  std::string text;                // "dma-buf at offset 0, made by soft"
  std::vector<Rejected> rejected;  // in the order of Way

  [[nodiscard]] Lifetime lifetime() const { return lifetime_of(way, persistent); }
};

// `range` lies inside claim.whole; the claim must be fresh. Way::staged is an answer only if the policy allows it: the
// caller then makes a Staging and registers its bounce buffer. Code::unsupported lists every way with its reason,
// unless an export failed for want of something (descriptors): then it is that error. Nothing stays open after a
// failure.
[[nodiscard]] Result<Exported> make_reachable(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic,
                                              const Policy& policy);

// Whether memory of this device can have nvidia_p2p pages at all.
[[nodiscard]] bool has_p2p_pages(const buffer::Device& device);

// By exactly this way, whatever others there are: for who tries them all. Code::unsupported: its reason alone.
[[nodiscard]] Result<Exported> reach_by(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic,
                                        Way way);

}  // namespace strait::exports
