// SPDX-License-Identifier: Apache-2.0
// What a NIC and a Node allow, and the ways memory can be reached: plain records, so that plan/ can rank ways and tests
// can describe machines nobody has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait::exports {

// Filled by a rail when it opens its NIC.
struct NicAbilities {
  std::string name;             // "strait0"
  bool host_pages = true;       // registers plain host memory by address
  bool imports_fds = false;     // registers memory by file descriptor (dma-buf)
  bool wants_pages = false;     // its driver takes no dma-buf: the memfd behind one goes along
  bool peer_memory = false;     // a peer-memory client answers for device addresses given as plain addresses
  bool p2p_pages = false;       // nvidia_p2p pages
  std::uint64_t max_bytes = 0;  // longest registration; 0: no limit
};

struct Policy {
  bool allow_staging = false;  // option allow_staging
};

// In the order they are tried: from no work at all to a copy of every byte.
enum class Way { host_pages, dmabuf, peer_memory, p2p_pages, staged };

[[nodiscard]] constexpr const char* way_name(Way way) {
  switch (way) {
    case Way::host_pages: return "host pages";
    case Way::dmabuf: return "dma-buf";
    case Way::peer_memory: return "peer-memory client";
    case Way::p2p_pages: return "nvidia_p2p pages";
    case Way::staged: return "staged through host";
  }
  return "unknown";
}
[[nodiscard]] constexpr bool zero_copy(Way way) {
  return way != Way::staged;
}

// A way not taken, and why.
struct Rejected {
  Way way;
  std::string reason;
};

}  // namespace strait::exports
