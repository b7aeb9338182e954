// SPDX-License-Identifier: Apache-2.0
#include "soft/cuda/announce.hpp"

#include "soft/kernel/driver.h"

namespace strait::soft::cuda {

bool announce(const Range& range, Piece& piece) {
  if (!range.on_device()) {
    piece.identity = 0;
    return true;
  }
  const bool capable =
      range.sort == Sort::plain || (piece.physical && piece.physical->prop.allocFlags.gpuDirectRDMACapable != 0);
  strait_soft_driver_memory memory{};
  memory.struct_size = sizeof memory;
  memory.vendor = STRAIT_SOFT_VENDOR_CUDA;
  memory.device = static_cast<std::uint32_t>(range.device);
  memory.flags = capable ? STRAIT_SOFT_P2P_CAPABLE : 0;
  memory.base = piece.base;
  memory.length_bytes = piece.length_bytes;
  memory.identity = piece.identity;
  memory.memfd = piece.block->file();
  memory.memfd_offset = piece.block_offset;
  if (strait_soft_driver_add(&memory) == 0) return true;
  piece.identity = 0;
  return false;
}

void retract(Piece& piece) {
  if (piece.identity != 0) (void)strait_soft_driver_remove(piece.base, piece.identity);
  piece.identity = 0;
}

}  // namespace strait::soft::cuda
