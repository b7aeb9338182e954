// SPDX-License-Identifier: Apache-2.0
// What belongs to one process and not to its forked children: marks that tell them apart, and descriptors that a child
// closes at once.
//
// Close-on-exec does not help a child that never calls exec: its copy of a listening socket keeps the port taken after
// the parent died, and its copy of a connection hides the parent's death from the peer. This is per process by nature:
// one table, one pthread_atfork handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "sys/fd.hpp"

namespace strait::sys {

namespace detail {
extern std::atomic<std::uint64_t> forks;  // raised in every child, once somebody watches
void watch_forks();
}  // namespace detail

// Tells the process it was made in from that one's children, with one load.
class ForkMark {
 public:
  ForkMark() {
    detail::watch_forks();
    made_at_ = detail::forks.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool in_child() const { return detail::forks.load(std::memory_order_relaxed) != made_at_; }

 private:
  std::uint64_t made_at_;
};

// Owner of such a descriptor. In a forked child it is no longer valid() and closes nothing.
class ProcessFd {
 public:
  ProcessFd() = default;
  // A fork between opening `fd` and this line leaves a copy in that child until it ends.
  explicit ProcessFd(Fd fd);
  ProcessFd(ProcessFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), mark_(other.mark_) {}
  ProcessFd& operator=(ProcessFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      mark_ = other.mark_;
    }
    return *this;
  }
  ~ProcessFd() { reset(); }

  [[nodiscard]] int get() const { return valid() ? fd_ : -1; }
  [[nodiscard]] bool valid() const { return fd_ >= 0 && !mark_.in_child(); }
  void reset();

 private:
  int fd_ = -1;
  ForkMark mark_;
};

}  // namespace strait::sys
