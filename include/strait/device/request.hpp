// SPDX-License-Identifier: Apache-2.0
// What a caller asks of a queue and what it is told: plain values, the same on host and device.
#pragma once

#include <cstdint>

#include "strait/device/space.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

// Local memory under a key. Pieces of length 0 are left out of the WQE.
struct Piece {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

struct Remote {
  std::uint64_t addr;
  std::uint32_t rkey;
};

// The bits as they go into the control segment.
using Flags = std::uint8_t;
inline constexpr Flags kNoFlags = 0;
inline constexpr Flags kSignaled = wire::mlx5::kCompletionAlways;
inline constexpr Flags kSolicited = wire::mlx5::kSolicited;
inline constexpr Flags kFenced = wire::mlx5::kFenceAndInitiatorSmall;  // after all earlier reads and atomics
inline constexpr Flags kKnownFlags = wire::mlx5::kCompletionMask | wire::mlx5::kFenceMask | wire::mlx5::kSolicited;

enum class Posted : std::uint8_t {
  ok,
  full,      // no room until something completes; nothing was changed
  too_long,  // message, piece or segment list beyond what the format can say; never truncated
  invalid,   // a null list, an unknown flag, an atomic that is misaligned or has a result of the wrong size
  aborted,   // the host raised the abort word while the post waited for room; nothing was changed
};

// A posted WQE: `start` is its 64-bit index, by which its completion is recognised. Meaningless unless ok().
struct [[nodiscard]] Pending {
  std::uint64_t start;
  Posted posted;

  STRAIT_HD constexpr bool ok() const { return posted == Posted::ok; }
};

struct MaskedSwap4 {
  std::uint32_t swap, compare, swap_mask, compare_mask;
};
struct MaskedSwap8 {
  std::uint64_t swap, compare, swap_mask, compare_mask;
};

inline constexpr std::uint32_t kMaxInlineSend =
    (wire::mlx5::kMaxSegments - 1) * wire::mlx5::kSegmentBytes - sizeof(wire::mlx5::InlineHeader);
inline constexpr std::uint32_t kMaxInlineWrite = kMaxInlineSend - wire::mlx5::kSegmentBytes;

}  // namespace strait::device
