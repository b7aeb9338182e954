// SPDX-License-Identifier: Apache-2.0
#include "sys/files.hpp"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/fd.hpp"

namespace strait::sys {

bool is_open_fd(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

bool is_dmabuf(int fd) {
  constexpr long kDmaBufMagic = 0x444d4142;  // "DMAB", linux/magic.h
  struct statfs status {};
  return ::fstatfs(fd, &status) == 0 && status.f_type == kDmaBufMagic;
}

std::int64_t file_bytes(int fd) {
  return ::lseek(fd, 0, SEEK_END);
}

std::string read_small_file(const char* path) {
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::string text(4096, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace strait::sys
