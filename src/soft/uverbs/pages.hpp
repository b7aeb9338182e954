// SPDX-License-Identifier: Apache-2.0
// What a program maps of /dev/infiniband/uverbsN: pages of a sparse file, by the numbers that libmlx5 computes. Those
// of a command are (command << 8 | index); doorbell pages that a program asks for are behind all of them.
#pragma once

#include <cstdint>

namespace strait::soft::uverbs::pages {

inline constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  // sparse: its size costs nothing
inline constexpr std::uint64_t kClock = 7u << 8;                  // MLX5_IB_MMAP_CLOCK_INFO, version 1
inline constexpr std::uint32_t kMemory = 8u << 8;                 // MLX5_IB_MMAP_DEVICE_MEM
inline constexpr std::uint32_t kMemoryPages = 256;                // that an index of 8 bits reaches
inline constexpr std::uint32_t kFirstDoorbell = 0x2000;
inline constexpr std::uint32_t kDoorbells = 0x1000;

}  // namespace strait::soft::uverbs::pages
