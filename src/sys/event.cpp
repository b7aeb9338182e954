// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace strait::sys {

Result<Event> Event::make(const Calls& calls) {
  Fd fd(calls.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return fail_errno(errno, "cannot create an eventfd");
  return Event(std::move(fd));
}

void Event::raise() const {
  const std::uint64_t one = 1;
  // EAGAIN means the counter is at its maximum: the sleeper is certain to wake, which is all that is asked.
  [[maybe_unused]] const ssize_t sent = ::write(fd_.get(), &one, sizeof one);
}

void Event::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace strait::sys
