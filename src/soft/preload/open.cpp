// SPDX-License-Identifier: Apache-2.0
// open() and its relatives. Paths of ours go to the root, device nodes to their family.
#include "soft/preload/open.hpp"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "soft/host/backend.h"
#include "soft/preload/devices.hpp"
#include "soft/preload/place.hpp"
#include "soft/preload/real.hpp"
#include "soft/preload/table.hpp"

namespace strait::preload {
namespace {

int really_open(int folder, const char* path, int flags, mode_t mode) {
  if (auto* call = STRAIT_NEXT(openat)) return call(folder, path, flags, mode);
  return static_cast<int>(answer(kernel(SYS_openat, folder, path, flags, mode)));
}

// Says in the root that this process has devices: `strait run` counts them, whatever becomes of the process.
void leave_mark() {
  static constinit std::atomic<long> marked{0};
  const long process = kernel(SYS_getpid);
  if (marked.exchange(process, std::memory_order_relaxed) == process || root() == nullptr) return;
  char path[soft::host::kPathBytes];
  const int length = snprintf(path, sizeof path, "%s%s/%ld.open", root(), soft::host::kReports, process);
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) return;
  const long fd = kernel(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) (void)kernel(SYS_close, fd);
}

int open_node(const Place& place, int flags, std::uint64_t number) {
  if ((flags & O_DIRECTORY) != 0) return static_cast<int>(answer(-ENOTDIR));
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return static_cast<int>(answer(-EEXIST));
  // A child of vfork has our memory: an engine that it opened would be ours after it is gone.
  if (!in_own_process()) return static_cast<int>(answer(-ENXIO));
  const strait_host_ops* ops = devices();
  if (ops == nullptr) return static_cast<int>(answer(-ENXIO));
  strait_host_file* file = nullptr;
  const int before = errno;
  const int fd = ops->open(logical(place), flags, &file);
  errno = before;
  if (fd < 0) return static_cast<int>(answer(fd));
  (void)kernel(SYS_fcntl, fd, F_SETFD, (flags & O_CLOEXEC) != 0 ? FD_CLOEXEC : 0);
  if ((flags & O_NONBLOCK) != 0) {
    const long set = kernel(SYS_fcntl, fd, F_GETFL, 0);
    if (set >= 0) (void)kernel(SYS_fcntl, fd, F_SETFL, set | O_NONBLOCK);
  }
  if (file == nullptr) return fd;
  if (remember(fd, file, number)) {
    leave_mark();
    return fd;
  }
  ops->close(file);
  (void)kernel(SYS_close, fd);
  return static_cast<int>(answer(-EMFILE));
}

__attribute__((noinline)) int open_placed(int folder, const char* path, int flags, mode_t mode) {
  Place where;
  const bool follow = (flags & O_NOFOLLOW) == 0 && ((flags & O_CREAT) == 0 || (flags & O_EXCL) == 0);
  switch (place(folder, path, follow, where)) {
    case Placed::unchanged: return really_open(folder, path, flags, mode);
    case Placed::failed: return static_cast<int>(answer(-where.error));
    case Placed::moved: break;
  }
  std::uint64_t number = 0;
  if ((flags & O_PATH) == 0 && (is_node(where, &number) || is_live(where))) return open_node(where, flags, number);
  return really_open(AT_FDCWD, where.path, flags, mode);
}

template <class Call>
__attribute__((noinline)) FILE* fopen_placed(const char* path, const char* mode, Call call) {
  Place where;
  switch (place(AT_FDCWD, path, true, where)) {
    case Placed::unchanged: return call(path);
    case Placed::failed: errno = where.error; return nullptr;
    case Placed::moved: break;
  }
  std::uint64_t number = 0;
  if (!is_node(where, &number) && !is_live(where)) return call(where.path);
  const int fd = open_node(where, strchr(mode, 'e') != nullptr ? O_RDWR | O_CLOEXEC : O_RDWR, number);
  return fd < 0 ? nullptr : fdopen(fd, mode);
}

}  // namespace

int open_any(int folder, const char* path, int flags, mode_t mode) {
  return concerned(folder, path) ? open_placed(folder, path, flags, mode) : really_open(folder, path, flags, mode);
}

}  // namespace strait::preload

using namespace strait::preload;

#define MODE_OF(flags)                                         \
  mode_t mode = 0;                                             \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list rest;                                              \
    va_start(rest, flags);                                     \
    mode = va_arg(rest, mode_t);                               \
    va_end(rest);                                              \
  }

extern "C" {

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_any(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_any(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_any(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_any(folder, path, flags, mode);
}
int creat(const char* path, mode_t mode) {
  return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) {
  return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

// What the headers make of open() in fortified programs.
int __open_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, 0);
}
int __openat_2(int folder, const char* path, int flags) {
  return open_any(folder, path, flags, 0);
}
int __openat64_2(int folder, const char* path, int flags) {
  return open_any(folder, path, flags, 0);
}

FILE* fopen(const char* path, const char* mode) {
  const auto call = [&](const char* name) { return STRAIT_NEXT(fopen)(name, mode); };
  return concerned(AT_FDCWD, path) ? fopen_placed(path, mode, call) : call(path);
}
FILE* fopen64(const char* path, const char* mode) {
  const auto call = [&](const char* name) { return STRAIT_NEXT(fopen64)(name, mode); };
  return concerned(AT_FDCWD, path) ? fopen_placed(path, mode, call) : call(path);
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
  const auto call = [&](const char* name) { return STRAIT_NEXT(freopen)(name, mode, stream); };
  return concerned(AT_FDCWD, path) ? fopen_placed(path, mode, call) : call(path);
}
FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  const auto call = [&](const char* name) { return STRAIT_NEXT(freopen64)(name, mode, stream); };
  return concerned(AT_FDCWD, path) ? fopen_placed(path, mode, call) : call(path);
}

}  // extern "C"
