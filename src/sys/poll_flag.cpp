// SPDX-License-Identifier: Apache-2.0
#include "sys/poll_flag.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace strait::sys {
namespace {

bool ready(int fd, short what) {
  pollfd one{fd, what, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & what) != 0;
}

}  // namespace

Result<PollFlag> PollFlag::make(bool nonblocking, const Calls& calls) {
  Fd fd(calls.eventfd(0, EFD_CLOEXEC | (nonblocking ? EFD_NONBLOCK : 0)));
  if (!fd.valid()) return fail_errno(errno, "cannot create an eventfd");
  return PollFlag(std::move(fd));
}

// The file blocks if the program wants it to, so both ask first.
void PollFlag::raise() const {
  const std::uint64_t one = 1;
  if (!ready(fd_.get(), POLLOUT)) return;
  [[maybe_unused]] const ssize_t sent = ::write(fd_.get(), &one, sizeof one);
}

void PollFlag::clear() const {
  std::uint64_t count = 0;
  if (!ready(fd_.get(), POLLIN)) return;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
}

bool PollFlag::nonblocking() const {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

bool PollFlag::wait(std::int64_t limit_ns) const {
  pollfd one{fd_.get(), POLLIN, 0};
  const timespec limit{limit_ns / 1'000'000'000, limit_ns % 1'000'000'000};
  return ::ppoll(&one, 1, limit_ns < 0 ? nullptr : &limit, nullptr) == 1;
}

}  // namespace strait::sys
