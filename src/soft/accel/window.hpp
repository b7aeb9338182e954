// SPDX-License-Identifier: Apache-2.0
// A window: one descriptor that stands for pieces of several memory files, or for a part of one. It is what a software
// driver hands out as a dma-buf where the range is not exactly one file: as long as the range, so that its size can be
// asked, and without bytes of its own. Mapping it for writing fails, as mapping a dma-buf of CUDA driver 580 does; in a
// run with cuda:N@map the preloaded library maps what it stands for instead (soft/preload/window.cpp).
//
// Its first page, which nobody reads as memory, says what the pieces are: whose process, which descriptor, which file.
// Who imports it opens those; it must be possible to open /proc/PID/fd/N of the process that exported.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "soft/accel/window_list.hpp"
#include "sys/fd.hpp"

namespace strait::soft::accel {

struct WindowPiece {
  int file = -1;  // open in this process for as long as the window is to be usable
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;  // whole pages
};
// Code::limit: too many pieces. To hand one out, open it again and hold it (sys/file_hold.hpp).
[[nodiscard]] Result<sys::Fd> make_window(std::span<const WindowPiece> pieces);

struct OpenedPiece {
  sys::Fd file;  // holds the memory (sys/file_hold.hpp), also when the window is closed
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};
// Nothing: `fd` is no window. An error: it is one, but what it stands for is gone or not as it says.
[[nodiscard]] Result<std::optional<std::vector<OpenedPiece>>> open_window(int fd);

}  // namespace strait::soft::accel
