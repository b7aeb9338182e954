// SPDX-License-Identifier: Apache-2.0
#include "sys/program_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace strait::sys {
namespace {

bool gets_other_rights(int fd) {
  struct stat is;
  struct statvfs on;
  if (::fstat(fd, &is) != 0) return false;
  if (::fstatvfs(fd, &on) == 0 && (on.f_flag & ST_NOSUID) != 0) return false;
  if ((is.st_mode & S_ISUID) != 0 && is.st_uid != ::getuid()) return true;
  if ((is.st_mode & S_ISGID) != 0 && (is.st_mode & S_IXGRP) != 0 && is.st_gid != ::getgid()) return true;
  return ::getuid() != 0 && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

}  // namespace

Result<ProgramFile> ProgramFile::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return fail(Code::gone, "there is no program {}", path);
  if (!fd.valid()) return fail_errno(errno, fmt::format("looking at {}", path));
  const bool other_rights = gets_other_rights(fd.get());
  return ProgramFile(std::move(fd), other_rights);
}

std::size_t ProgramFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > static_cast<std::uint64_t>(LLONG_MAX)) return 0;
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t more = ::pread(fd_.get(), into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<std::size_t>(more);
  }
  return got;
}

}  // namespace strait::sys
