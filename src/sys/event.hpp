// SPDX-License-Identifier: Apache-2.0
// Event: an eventfd, to wake a thread that sleeps in poll(2), in this process or another.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class Event {
 public:
  Event() = default;
  explicit Event(Fd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] static Result<Event> make(const Calls& calls = real_calls());

  // One that another process sent. An error unless it is what make() makes: raise() must not block on it.
  [[nodiscard]] static Result<Event> take_over(Fd fd);

  void raise() const;  // never blocks
  void clear() const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }

 private:
  Fd fd_;
};

}  // namespace strait::sys
