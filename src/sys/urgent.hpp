// SPDX-License-Identifier: Apache-2.0
// Urgent: a descriptor that poll(2) reports with POLLPRI from raise() until a byte was read, as files of sysfs do. Made
// of what has such a state for unprivileged processes: a loopback TCP connection and its out-of-band byte.
#pragma once

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class Urgent {
 public:
  Urgent() = default;
  [[nodiscard]] static Result<Urgent> make();
  // For who polls it, close-on-exec; never blocks.
  [[nodiscard]] Result<Fd> copy() const { return watch_.duplicate(); }
  [[nodiscard]] bool valid() const { return watch_.valid(); }

  // Never blocks. Raised again before it was read is raised once.
  void raise() const;
  // What reading the byte does; `watch` is a copy.
  static void clear(int watch);

 private:
  Urgent(Fd raise, Fd watch) : raise_(std::move(raise)), watch_(std::move(watch)) {}
  Fd raise_;
  Fd watch_;
};

}  // namespace strait::sys
