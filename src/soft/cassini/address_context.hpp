// SPDX-License-Identifier: Apache-2.0
// Address contexts of a resource group: where the IOVAs of descriptors come from.
#pragma once

#include "soft/cassini/card.hpp"

namespace strait::soft::cassini {

// What one context covers unless a descriptor needs more.
inline constexpr std::uint64_t kContextBytes = std::uint64_t{32} << 30;

// Flags of a descriptor that make it need a context of its kind.
[[nodiscard]] constexpr std::uint32_t flag_class(std::uint32_t flags) {
  return flags & ~(wire::kMapRead | wire::kMapWrite | wire::kMapAllocMd | wire::kMapFault | wire::kMapPrefetch);
}

// Sets md.iova and md.lac: room in a context of the LNI that suits, or in a new one (always, if `alone`). 0 or -errno.
[[nodiscard]] int context_for(Card& card, Lni& lni, Md& md, int ptg_mode, bool alone, AddressContext*& out);

}  // namespace strait::soft::cassini
