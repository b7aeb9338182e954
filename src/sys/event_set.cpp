// SPDX-License-Identifier: Apache-2.0
// epoll and ppoll.
#include "sys/event_set.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>

namespace strait::sys {

Result<EventSet> EventSet::make() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot make an epoll descriptor");
  return EventSet(std::move(fd));
}

Status EventSet::add(int fd) {
  return add_for(fd, EPOLLIN);
}

Status EventSet::add_urgent(int fd) {
  return add_for(fd, EPOLLPRI);
}

Status EventSet::add_for(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno(errno, fmt::format("cannot watch descriptor {}", fd));
  return {};
}

void EventSet::remove(int fd) {
  (void)::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool EventSet::ready() const {
  epoll_event event{};
  return ::epoll_wait(fd_.get(), &event, 1, 0) > 0;
}

bool EventSet::wait_ns(std::int64_t limit_ns) const {
  return nap_on(fd_.get(), limit_ns);
}

bool nap_on(int fd, std::int64_t limit_ns) {
  return nap_on_either(fd, -1, limit_ns);
}

bool nap_on_either(int one, int other, std::int64_t limit_ns) {
  std::array<pollfd, 2> watched = {pollfd{one, POLLIN, 0}, pollfd{other, POLLIN, 0}};
  timespec limit{};
  if (limit_ns >= 0) {
    limit.tv_sec = limit_ns / 1'000'000'000;
    limit.tv_nsec = limit_ns % 1'000'000'000;
  }
  const timespec* const until = limit_ns < 0 ? nullptr : &limit;
  const int ready = ::ppoll(watched.data(), other < 0 ? 1 : 2, until, nullptr);
  if (ready > 0 && ((watched[0].revents | watched[1].revents) & POLLNVAL) != 0) {
    // Somebody closed it under us. Who naps in a loop must not run hot for that.
    (void)::ppoll(nullptr, 0, until, nullptr);
    return false;
  }
  return ready > 0;
}

}  // namespace strait::sys
