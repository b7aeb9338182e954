// SPDX-License-Identifier: Apache-2.0
// Timer: a descriptor that becomes readable after a time, to sleep on together with others.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class Timer {
 public:
  Timer() = default;
  [[nodiscard]] static Result<Timer> make();
  void fire_after_ns(std::int64_t ns) const;  // 0 or less: at once
  void stop() const;                          // also takes back a firing that was not noticed yet
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Timer(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace strait::sys
