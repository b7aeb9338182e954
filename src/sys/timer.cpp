// SPDX-License-Identifier: Apache-2.0
#include "sys/timer.hpp"

#include <sys/timerfd.h>

#include <cerrno>

namespace strait::sys {
namespace {

void set(int fd, std::int64_t ns) {
  itimerspec when{};
  when.it_value.tv_sec = ns / 1'000'000'000;
  when.it_value.tv_nsec = ns % 1'000'000'000;
  ::timerfd_settime(fd, 0, &when, nullptr);
}

}  // namespace

Result<Timer> Timer::make() {
  Fd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return fail_errno(errno, "cannot create a timer descriptor");
  return Timer(std::move(fd));
}

void Timer::fire_after_ns(std::int64_t ns) const {
  set(fd_.get(), ns > 0 ? ns : 1);
}

void Timer::stop() const {
  set(fd_.get(), 0);
}

}  // namespace strait::sys
