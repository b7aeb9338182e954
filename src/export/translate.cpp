// SPDX-License-Identifier: Apache-2.0
#include "export/translate.hpp"

#include <utility>

namespace strait::exports {

Result<Translated> translate(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic,
                             const Policy& policy) {
  STRAIT_TRY(Exported exported, make_reachable(claim, range, nic, policy));
  Translated out;
  out.lifetime = exported.lifetime();
  switch (exported.way) {
    case Way::dmabuf:
      out.pieces.push_back({range.address, range.length_bytes, exported.fd.fd(), exported.fd.offset()});
      break;
    case Way::p2p_pages: {
      const std::uint64_t first = range.address / kP2pPage * kP2pPage;
      for (std::uint64_t at = first; at < range.end(); at += kP2pPage) out.pieces.push_back({at, kP2pPage});
      break;
    }
    case Way::host_pages:
    case Way::peer_memory: out.pieces.push_back({range.address, range.length_bytes}); break;
    case Way::staged: break;  // the bounce buffer's, once there is one
  }
  out.exported = std::move(exported);
  return out;
}

}  // namespace strait::exports
