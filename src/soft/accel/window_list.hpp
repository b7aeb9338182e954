// SPDX-License-Identifier: Apache-2.0
// The first page of a window (window.hpp): what it stands for. Apart from the rest because `strait run`'s preloaded
// library, which has nothing but the C library, reads it too where a run lets the CPU map windows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::soft::accel {

inline constexpr std::size_t kMostPieces = 100;  // of one window: the list fits into its first page
inline constexpr char kWindowName[] = "strait dma-buf";
inline constexpr std::uint64_t kWindowMagic = 0x7769'6e64'6f77'3031;  // "window01"
// Behind the @ of `strait run --accelerators cuda:N@map`: windows can be mapped.
inline constexpr char kMapVariant[] = "map";

struct ListedPiece {
  std::uint32_t process;
  std::int32_t file;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t offset;
  std::uint64_t length_bytes;
};
struct PieceList {
  std::uint64_t magic;
  std::uint64_t count;
  ListedPiece pieces[kMostPieces];
};
static_assert(sizeof(PieceList) <= 4096);

}  // namespace strait::soft::accel
