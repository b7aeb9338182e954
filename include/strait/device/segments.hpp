// SPDX-License-Identifier: Apache-2.0
// Composes 16-byte segments as two words and stores each segment whole. No segment straddles the end of a ring, since
// both are multiples of 16: an inline payload that wraps needs no byte-wise split either, only the next segment's
// place.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/request.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

// Two big-endian 32-bit fields side by side, as one word in memory.
STRAIT_HD_INLINE std::uint64_t be_pair(std::uint32_t first, std::uint32_t second) {
  return wire::be64{static_cast<std::uint64_t>(first) << 32 | second}.raw();
}

STRAIT_HD_INLINE std::uint64_t control_low(wire::mlx5::Opcode op, std::uint8_t opmod, std::uint64_t index,
                                           std::uint32_t qpn_shifted, std::uint32_t ds) {
  return be_pair(wire::mlx5::control_word0(opmod, index, op), qpn_shifted | ds);
}
STRAIT_HD_INLINE std::uint64_t control_high(Flags flags, wire::be32 imm) {
  return static_cast<std::uint64_t>(flags) << 24 | static_cast<std::uint64_t>(imm.raw()) << 32;
}

STRAIT_HD_INLINE void store_remote(std::uint8_t* at, const Remote& r) {
  store_segment(at, wire::be64{r.addr}.raw(), wire::be32{r.rkey}.raw());
}
STRAIT_HD_INLINE void store_data(std::uint8_t* at, std::uint64_t addr, std::uint32_t length, std::uint32_t lkey) {
  store_segment(at, be_pair(length, lkey), wire::be64{addr}.raw());
}

// Where the next segment goes, once it may lie beyond the first block.
struct SegmentCursor {
  std::uint8_t* at;
  std::uint8_t* begin;
  std::uint8_t* end;

  STRAIT_HD_INLINE std::uint8_t* next() {
    if (at == end) at = begin;
    std::uint8_t* const here = at;
    at += wire::mlx5::kSegmentBytes;
    return here;
  }
};

// Counts the segments and bytes of a list. Stops as soon as the list is too long.
STRAIT_HD_INLINE Posted measure(const Piece* pieces, std::uint32_t count, std::uint32_t max_segments,
                                std::uint64_t max_bytes, std::uint32_t& segments) {
  segments = 0;
  if (count != 0 && pieces == nullptr) return Posted::invalid;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes += pieces[i].length;
    if (pieces[i].length != 0) ++segments;
    if (bytes > max_bytes || segments > max_segments) return Posted::too_long;
  }
  return Posted::ok;
}

// The payload behind one header, padded with zeros. `at` is the header's segment, which the caller knows to be in the
// first block; what follows goes through the cursor.
STRAIT_HD_INLINE void store_inline(std::uint8_t* at, SegmentCursor rest, const std::uint8_t* payload,
                                   std::uint32_t length) {
  const std::uint64_t header = wire::be32{wire::mlx5::kInlineFlag | length}.raw();
  store_segment(at, header | load_bytes(payload, length < 4 ? length : 4) << 32,
                length > 4 ? load_bytes(payload + 4, length - 4) : 0);
  for (std::uint32_t done = 12; done < length; done += wire::mlx5::kSegmentBytes) {
    const std::uint32_t left = length - done;
    store_segment(rest.next(), load_bytes(payload + done, left),
                  left > 8 ? load_bytes(payload + done + 8, left - 8) : 0);
  }
}

}  // namespace strait::device
