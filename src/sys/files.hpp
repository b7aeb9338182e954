// SPDX-License-Identifier: Apache-2.0
// Files: what kind a descriptor is, and small ones read whole.
#pragma once

#include <cstdint>
#include <string>

namespace strait::sys {

[[nodiscard]] bool is_open_fd(int fd);
[[nodiscard]] bool is_dmabuf(int fd);
// Size by seeking to the end, which works for dma-bufs too; -1 when it cannot be told.
[[nodiscard]] std::int64_t file_bytes(int fd);
// The first 4096 bytes of a file under /proc or /sys; empty when it cannot be read.
[[nodiscard]] std::string read_small_file(const char* path);

}  // namespace strait::sys
