// SPDX-License-Identifier: Apache-2.0
#include "sys/char_device.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace strait::sys {

Result<Fd> open_char_device(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.valid()) return fd;
  const int why = errno;
  if (why == ENOENT || why == ENODEV || why == ENXIO) {
    Error error = fail(Code::unsupported, "there is no device {}: {}", path, errno_text(why));
    error.sys_errno = why;
    return error;
  }
  return fail_errno(why, fmt::format("cannot open {}", path));
}

int write_command(int fd, std::span<const std::byte> command) {
  ssize_t wrote = 0;
  do {
    wrote = ::write(fd, command.data(), command.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote < 0) return errno;
  return static_cast<std::size_t>(wrote) == command.size() ? 0 : EIO;
}

Result<Fd> open_notifier(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot open {}", path));
  return fd;
}

void clear_notifier(int fd) {
  char byte = 0;
  if (::pread(fd, &byte, 1, 0) >= 0 || errno != ESPIPE) return;
  // A stand-in that is no file: a socket that is told by out-of-band bytes, or an eventfd-like thing.
  if (::recv(fd, &byte, 1, MSG_OOB | MSG_DONTWAIT) >= 0) return;
  while (::recv(fd, &byte, 1, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace strait::sys
