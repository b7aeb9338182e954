// SPDX-License-Identifier: Apache-2.0
// mmap of a dma-buf of the CUDA driver in software: a window, which has no bytes of its own.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace strait::preload {

// The address, -errno, or -ENOSYS: not a window, or one that this run lets nobody map.
[[nodiscard]] long map_window(int fd, void* address, std::size_t length, int protect, int flags, off64_t offset);

}  // namespace strait::preload
