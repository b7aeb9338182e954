// SPDX-License-Identifier: Apache-2.0
// PollFlag: a descriptor for a program to poll, readable while the flag is up. The program's descriptor and ours are of
// one open file: what it sets with fcntl (O_NONBLOCK) is seen here.
#pragma once

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class PollFlag {
 public:
  PollFlag() = default;
  // `nonblocking`: as open(2) with O_NONBLOCK would have left it.
  [[nodiscard]] static Result<PollFlag> make(bool nonblocking, const Calls& calls = real_calls());
  // For the program, close-on-exec.
  [[nodiscard]] Result<Fd> copy() const { return fd_.duplicate(); }

  // Up again while it is up: who waits edge-triggered is woken once more. Neither ever blocks.
  void raise() const;
  void clear() const;
  [[nodiscard]] bool nonblocking() const;
  // Sleeps until it is up. False: a signal came first, or `limit_ns` passed (negative: no limit).
  [[nodiscard]] bool wait(std::int64_t limit_ns) const;

 private:
  explicit PollFlag(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace strait::sys
