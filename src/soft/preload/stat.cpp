// SPDX-License-Identifier: Apache-2.0
// The stat family and access(). A device node looks like one: a character device with its number.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "soft/preload/place.hpp"
#include "soft/preload/real.hpp"
#include "soft/preload/table.hpp"

namespace strait::preload {
namespace {

void dress(struct stat* is, std::uint64_t number) {
  is->st_mode = S_IFCHR | 0666;
  is->st_rdev = number;
  is->st_size = 0;
  is->st_blocks = 0;
  is->st_nlink = 1;
}

void dress(struct statx* is, std::uint64_t number) {
  is->stx_mode = S_IFCHR | 0666;
  is->stx_rdev_major = major(number);
  is->stx_rdev_minor = minor(number);
  is->stx_size = 0;
  is->stx_blocks = 0;
  is->stx_nlink = 1;
}

// `call(folder, path, is)` asks the kernel. Is this a path of ours, ask for the file in the root.
template <class Stat, class Call>
__attribute__((noinline)) long stat_placed(int folder, const char* path, int flags, Stat* is, Call call) {
  Place where;
  switch (place(folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, where)) {
    case Placed::unchanged: return call(folder, path);
    case Placed::failed: return -where.error;
    case Placed::moved: break;
  }
  const long result = call(AT_FDCWD, where.path);
  std::uint64_t number = 0;
  if (result == 0 && is_node(where, &number)) dress(is, number);
  return result;
}

template <class Stat, class Call>
int stat_any(int folder, const char* path, int flags, Stat* is, Call call) {
  if (concerned(folder, path)) return static_cast<int>(answer(stat_placed(folder, path, flags, is, call)));
  const long result = call(folder, path);
  if (result == 0 && (flags & AT_EMPTY_PATH) != 0 && path != nullptr && path[0] == '\0' && folder >= 0) {
    if (const Loan loan(folder); loan) dress(is, loan.number());
  }
  return static_cast<int>(answer(result));
}

int stat_at(int folder, const char* path, struct stat* is, int flags) {
  return stat_any(folder, path, flags, is,
                  [&](int at, const char* name) { return kernel(SYS_newfstatat, at, name, is, flags); });
}

int stat_fd(int fd, struct stat* is) {
  const long result = kernel(SYS_fstat, fd, is);
  if (result == 0) {
    if (const Loan loan(fd); loan) dress(is, loan.number());
  }
  return static_cast<int>(answer(result));
}

__attribute__((noinline)) int access_placed(int folder, const char* path, int mode, int flags) {
  Place where;
  switch (place(folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, where)) {
    case Placed::unchanged: return STRAIT_NEXT(faccessat)(folder, path, mode, flags);
    case Placed::failed: return static_cast<int>(answer(-where.error));
    case Placed::moved: break;
  }
  return STRAIT_NEXT(faccessat)(AT_FDCWD, where.path, mode, flags);
}

int access_any(int folder, const char* path, int mode, int flags) {
  return concerned(folder, path) ? access_placed(folder, path, mode, flags)
                                 : STRAIT_NEXT(faccessat)(folder, path, mode, flags);
}

// On 64-bit machines both are one struct.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
struct stat* plain(struct stat64* is) {
  return reinterpret_cast<struct stat*>(is);
}

}  // namespace
}  // namespace strait::preload

using namespace strait::preload;

extern "C" {

int stat(const char* path, struct stat* is) noexcept {
  return stat_at(AT_FDCWD, path, is, 0);
}
int stat64(const char* path, struct stat64* is) noexcept {
  return stat_at(AT_FDCWD, path, plain(is), 0);
}
int lstat(const char* path, struct stat* is) noexcept {
  return stat_at(AT_FDCWD, path, is, AT_SYMLINK_NOFOLLOW);
}
int lstat64(const char* path, struct stat64* is) noexcept {
  return stat_at(AT_FDCWD, path, plain(is), AT_SYMLINK_NOFOLLOW);
}
int fstatat(int folder, const char* path, struct stat* is, int flags) noexcept {
  return stat_at(folder, path, is, flags);
}
int fstatat64(int folder, const char* path, struct stat64* is, int flags) noexcept {
  return stat_at(folder, path, plain(is), flags);
}
int fstat(int fd, struct stat* is) noexcept {
  return stat_fd(fd, is);
}
int fstat64(int fd, struct stat64* is) noexcept {
  return stat_fd(fd, plain(is));
}
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* is) noexcept {
  return stat_any(folder, path, flags, is,
                  [&](int at, const char* name) { return kernel(SYS_statx, at, name, flags, mask, is); });
}

// What programs call that were built against a C library before 2.33. The version is that of the struct; there is one.
int __xstat(int, const char* path, struct stat* is) noexcept {
  return stat_at(AT_FDCWD, path, is, 0);
}
int __xstat64(int, const char* path, struct stat64* is) noexcept {
  return stat_at(AT_FDCWD, path, plain(is), 0);
}
int __lxstat(int, const char* path, struct stat* is) noexcept {
  return stat_at(AT_FDCWD, path, is, AT_SYMLINK_NOFOLLOW);
}
int __lxstat64(int, const char* path, struct stat64* is) noexcept {
  return stat_at(AT_FDCWD, path, plain(is), AT_SYMLINK_NOFOLLOW);
}
int __fxstat(int, int fd, struct stat* is) noexcept {
  return stat_fd(fd, is);
}
int __fxstat64(int, int fd, struct stat64* is) noexcept {
  return stat_fd(fd, plain(is));
}
int __fxstatat(int, int folder, const char* path, struct stat* is, int flags) noexcept {
  return stat_at(folder, path, is, flags);
}
int __fxstatat64(int, int folder, const char* path, struct stat64* is, int flags) noexcept {
  return stat_at(folder, path, plain(is), flags);
}

int access(const char* path, int mode) noexcept {
  return access_any(AT_FDCWD, path, mode, 0);
}
int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return access_any(folder, path, mode, flags);
}
int euidaccess(const char* path, int mode) noexcept {
  return access_any(AT_FDCWD, path, mode, AT_EACCESS);
}
int eaccess(const char* path, int mode) noexcept {
  return access_any(AT_FDCWD, path, mode, AT_EACCESS);
}

}  // extern "C"
