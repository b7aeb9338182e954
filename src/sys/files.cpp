// SPDX-License-Identifier: Apache-2.0
#include "sys/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
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

std::optional<FileId> file_id(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return {};
  return FileId{about.st_dev, about.st_ino};
}

bool may_create(std::uint32_t open_flags) {
  return (open_flags & O_CREAT) != 0;
}

bool must_create(std::uint32_t open_flags) {
  return (open_flags & O_EXCL) != 0;
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
