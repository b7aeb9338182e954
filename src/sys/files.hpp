// SPDX-License-Identifier: Apache-2.0
// Files: what kind a descriptor is, and small ones read whole.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace strait::sys {

[[nodiscard]] bool is_open_fd(int fd);
[[nodiscard]] bool is_dmabuf(int fd);
// Size by seeking to the end, which works for dma-bufs too; -1 when it cannot be told.
[[nodiscard]] std::int64_t file_bytes(int fd);
// Which file a descriptor is of, whatever name it was opened by. It is the same one for as long as somebody holds it
// open.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const FileId&, const FileId&) = default;
};
[[nodiscard]] std::optional<FileId> file_id(int fd);
// What of open()'s flags says whether the thing may be made, or has to be.
[[nodiscard]] bool may_create(std::uint32_t open_flags);
[[nodiscard]] bool must_create(std::uint32_t open_flags);
// The first 4096 bytes of a file under /proc or /sys; empty when it cannot be read.
[[nodiscard]] std::string read_small_file(const char* path);

}  // namespace strait::sys
