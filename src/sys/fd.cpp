// SPDX-License-Identifier: Apache-2.0
#include "sys/fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace strait::sys {

void Fd::reset() {
  if (fd_ < 0) return;
  // Linux releases the descriptor even when close reports EINTR; retrying would close somebody else's.
  ::close(fd_);
  fd_ = -1;
}

Result<Fd> Fd::duplicate() const {
  return copy_of(fd_);
}

Result<Fd> Fd::copy_of(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno(errno, "cannot duplicate a file descriptor");
  return Fd(copy);
}

void close_on_exec(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags >= 0) (void)::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

int count_open_fds() {
  struct Close {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  const std::unique_ptr<DIR, Close> dir(::opendir("/proc/self/fd"));
  if (!dir) return -1;
  int count = -3;  // ".", ".." and the descriptor of the directory itself
  while (::readdir(dir.get()) != nullptr) ++count;
  return count;
}

}  // namespace strait::sys
