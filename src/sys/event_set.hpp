// SPDX-License-Identifier: Apache-2.0
// EventSet: one descriptor that is readable while any of several is (epoll), and a poll over a few descriptors.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class EventSet {
 public:
  EventSet() = default;
  [[nodiscard]] static Result<EventSet> make();
  // The descriptor must stay open as long as the set.
  [[nodiscard]] Status add(int fd);
  // One that counts while it has something urgent (POLLPRI): files of sysfs are always readable.
  [[nodiscard]] Status add_urgent(int fd);
  void remove(int fd);
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Whether one is readable now. One call for all of them, which takes less than an attempt to read one.
  [[nodiscard]] bool ready() const;
  // Sleeps until one is readable (true) or the time has passed (false). Negative: without limit. Microseconds count.
  [[nodiscard]] bool wait_ns(std::int64_t limit_ns) const;

 private:
  [[nodiscard]] Status add_for(int fd, std::uint32_t events);
  explicit EventSet(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Sleeps until `fd` is readable (true) or the time has passed. Finer than wait_ready: microseconds count.
[[nodiscard]] bool nap_on(int fd, std::int64_t limit_ns);
// The same for two; -1 is never readable.
[[nodiscard]] bool nap_on_either(int one, int other, std::int64_t limit_ns);

}  // namespace strait::sys
