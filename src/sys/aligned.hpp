// SPDX-License-Identifier: Apache-2.0
// Mappings that huge pages can back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "sys/mapping.hpp"

namespace strait::sys {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Like map_file, from the start of the file, at an address that is a multiple of 2 MiB once the file is that long; asks
// the kernel for huge pages and does not insist.
[[nodiscard]] Result<Mapping> map_file_aligned(int fd, std::size_t length_bytes, Protect protect,
                                               const Calls& calls = real_calls());

}  // namespace strait::sys
