// SPDX-License-Identifier: Apache-2.0
#include "buffer/claim.hpp"

#include <fmt/format.h>

#include <array>

namespace strait::buffer {

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, kUnits[unit]);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(scale), kUnits[unit]);
}

const char* sort_name(std::uint32_t sort) {
  switch (sort) {
    case STRAIT_SORT_HOST: return "host memory";
    case STRAIT_SORT_PINNED_HOST: return "pinned host memory";
    case STRAIT_SORT_DEVICE: return "device memory";
    case STRAIT_SORT_MANAGED: return "managed memory";
    case STRAIT_SORT_POOL: return "pool memory";
    case STRAIT_SORT_VMM: return "mapped handles (VMM)";
    default: return "memory";
  }
}

std::string describe(const Claim& claim) {
  std::string text =
      fmt::format("{} {:#x} + {}", claim.device->name, claim.asked.address, size_text(claim.asked.length_bytes));
  if (claim.whole != claim.asked) text += fmt::format(" (whole allocation {})", size_text(claim.whole.length_bytes));
  return text;
}

}  // namespace strait::buffer
