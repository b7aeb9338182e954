// SPDX-License-Identifier: Apache-2.0
// Descriptors that belong to one process: a forked child closes its copies at once.
//
// Close-on-exec does not help a child that never calls exec: its copy of a listening socket keeps the port taken after
// the parent died, and its copy of a connection hides the parent's death from the peer. This is per process by nature:
// one table, one pthread_atfork handler.
#pragma once

#include <cstdint>
#include <utility>

#include "sys/fd.hpp"

namespace strait::sys {

// Grows by one in every forked child: an object that remembers it can tell that it is a copy of somebody else's.
[[nodiscard]] std::uint64_t fork_generation();

// Owner of such a descriptor. In a forked child it is no longer valid() and closes nothing.
class ProcessFd {
 public:
  ProcessFd() = default;
  // A fork between opening `fd` and this line leaves a copy in that child until it ends.
  explicit ProcessFd(Fd fd);
  ProcessFd(ProcessFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  ProcessFd& operator=(ProcessFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }
  ~ProcessFd() { reset(); }

  [[nodiscard]] int get() const { return valid() ? fd_ : -1; }
  [[nodiscard]] bool valid() const { return fd_ >= 0 && generation_ == fork_generation(); }
  void reset();

 private:
  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace strait::sys
