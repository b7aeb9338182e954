// SPDX-License-Identifier: Apache-2.0
// EventPipe: small events for somebody who polls and reads a descriptor, one event per read (a pair of sockets that
// keep messages apart). What was not read yet can be taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class EventPipe {
 public:
  struct Made;
  [[nodiscard]] static Result<Made> make();

  // Never blocks. What finds no room waits here and goes out, in order, with the next call of send() or flush().
  void send(std::span<const std::byte> event);
  void flush();
  // Takes back what nobody has read and `is_mine` says yes to; how many that were. The rest stays in order.
  [[nodiscard]] std::uint32_t take_back(const std::function<bool(std::span<const std::byte>)>& is_mine);
  // Is this descriptor of this process the reader's end?
  [[nodiscard]] bool is_reader(int fd) const;
  // The reader has closed it.
  [[nodiscard]] bool abandoned() const;

 private:
  Fd fd_;
  int reader_fd_ = -1;  // the number it had; looked at again before use
  std::uint64_t reader_inode_ = 0;
  std::vector<std::vector<std::byte>> waiting_;
};

struct EventPipe::Made {
  EventPipe pipe;
  Fd reader;  // blocks when there is nothing, unless it is told not to
};

}  // namespace strait::sys
