// SPDX-License-Identifier: Apache-2.0
// Fd: the one owner of a file descriptor.
#pragma once

#include <utility>

#include "base/error.hpp"

namespace strait::sys {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

  // A second descriptor for the same file, close-on-exec.
  [[nodiscard]] Result<Fd> duplicate() const;
  // The same of a descriptor that somebody else owns.
  [[nodiscard]] static Result<Fd> copy_of(int fd);

 private:
  int fd_ = -1;
};

// For a descriptor that somebody else's code made: not passed on to programs that this process starts.
void close_on_exec(int fd);

// How many descriptors this process holds: leak checks in tests and in `strait info`.
[[nodiscard]] int count_open_fds();

}  // namespace strait::sys
