// SPDX-License-Identifier: Apache-2.0
// What `ls -l` and others ask of any path beside its stat: extended attributes, the kind of file system.
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "soft/preload/placed.hpp"
#include "soft/preload/real.hpp"

using namespace strait::preload;

extern "C" {

ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return with_path(AT_FDCWD, path, true, ssize_t{-1},
                   [&](int, const char* at) { return STRAIT_NEXT(getxattr)(at, name, value, size); });
}
ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return with_path(AT_FDCWD, path, false, ssize_t{-1},
                   [&](int, const char* at) { return STRAIT_NEXT(lgetxattr)(at, name, value, size); });
}
ssize_t listxattr(const char* path, char* list, size_t size) noexcept {
  return with_path(AT_FDCWD, path, true, ssize_t{-1},
                   [&](int, const char* at) { return STRAIT_NEXT(listxattr)(at, list, size); });
}
ssize_t llistxattr(const char* path, char* list, size_t size) noexcept {
  return with_path(AT_FDCWD, path, false, ssize_t{-1},
                   [&](int, const char* at) { return STRAIT_NEXT(llistxattr)(at, list, size); });
}
int statfs(const char* path, struct statfs* is) noexcept {
  return with_path(AT_FDCWD, path, true, -1, [&](int, const char* at) { return STRAIT_NEXT(statfs)(at, is); });
}
int statfs64(const char* path, struct statfs64* is) noexcept {
  return with_path(AT_FDCWD, path, true, -1, [&](int, const char* at) { return STRAIT_NEXT(statfs64)(at, is); });
}

}  // extern "C"
