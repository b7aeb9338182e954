// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace strait::sys {

Result<Event> Event::make(const Calls& calls) {
  Fd fd(calls.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return fail_errno(errno, "cannot create an eventfd");
  return Event(std::move(fd));
}

Result<Event> Event::take_over(Fd fd) {
  char what[64] = {};
  const std::string link = fmt::format("/proc/self/fd/{}", fd.get());
  const bool event =
      ::readlink(link.c_str(), what, sizeof what - 1) > 0 && std::strcmp(what, "anon_inode:[eventfd]") == 0;
  if (!event || (::fcntl(fd.get(), F_GETFL) & O_NONBLOCK) == 0)
    return fail(Code::invalid, "a process sent a descriptor to be woken by that is no eventfd, or one that blocks");
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
