// SPDX-License-Identifier: Apache-2.0
// Links and names: glob, readlink, realpath, the working folder. What they answer is what the program
// believes in, never a path of the root.
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "soft/preload/placed.hpp"
#include "soft/preload/real.hpp"

namespace strait::preload {
namespace {

ssize_t read_link(int folder, const char* path, char* into, size_t capacity) {
  const long length = with_path(folder, path, false, -1L, [&](int at, const char* name) {
    return answer(kernel(SYS_readlinkat, at, name, into, capacity));
  });
  // /proc/self/fd and /proc/self/cwd tell where a file really is.
  if (length > 0 && into[0] == '/' && root() != nullptr && static_cast<std::size_t>(length) < capacity &&
      static_cast<std::size_t>(length) > map().root_length() && memcmp(into, root(), map().root_length()) == 0) {
    into[length] = '\0';
    if (map().to_logical(into)) return static_cast<ssize_t>(strlen(into));
  }
  return length;
}

char* real_path(const char* path, char* into) {
  char* found = with_path(AT_FDCWD, path, true, static_cast<char*>(nullptr),
                          [&](int, const char* name) { return STRAIT_NEXT(realpath)(name, into); });
  if (found != nullptr && root() != nullptr) map().to_logical(found);
  return found;
}

// glob() lists folders with functions inside the C library, unless it is given others.
void* open_folder(const char* path) {
  return opendir(path);
}
dirent* next_in_folder(void* folder) {
  return readdir(static_cast<DIR*>(folder));
}
void close_folder(void* folder) {
  closedir(static_cast<DIR*>(folder));
}

template <class Glob, class Call>
int glob_any(const char* pattern, int flags, Glob* found, Call call) {
  if ((flags & GLOB_ALTDIRFUNC) != 0 || !concerned(AT_FDCWD, pattern)) return call(flags);
  found->gl_opendir = open_folder;
  found->gl_readdir = reinterpret_cast<decltype(found->gl_readdir)>(next_in_folder);
  found->gl_closedir = close_folder;
  found->gl_stat = reinterpret_cast<decltype(found->gl_stat)>(stat);
  found->gl_lstat = reinterpret_cast<decltype(found->gl_lstat)>(lstat);
  return call(flags | GLOB_ALTDIRFUNC);
}

}  // namespace
}  // namespace strait::preload

using namespace strait::preload;

extern "C" {

int glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* found) noexcept {
  return glob_any(pattern, flags, found, [&](int with) { return STRAIT_NEXT(glob)(pattern, with, error, found); });
}

int glob64(const char* pattern, int flags, int (*error)(const char*, int), glob64_t* found) noexcept {
  return glob_any(pattern, flags, found, [&](int with) { return STRAIT_NEXT(glob64)(pattern, with, error, found); });
}

ssize_t readlink(const char* path, char* into, size_t capacity) noexcept {
  return read_link(AT_FDCWD, path, into, capacity);
}
ssize_t readlinkat(int folder, const char* path, char* into, size_t capacity) noexcept {
  return read_link(folder, path, into, capacity);
}
ssize_t __readlink_chk(const char* path, char* into, size_t capacity, size_t room) {
  if (capacity > room) __builtin_trap();
  return read_link(AT_FDCWD, path, into, capacity);
}
ssize_t __readlinkat_chk(int folder, const char* path, char* into, size_t capacity, size_t room) {
  if (capacity > room) __builtin_trap();
  return read_link(folder, path, into, capacity);
}

char* realpath(const char* path, char* into) noexcept {
  return real_path(path, into);
}
char* __realpath_chk(const char* path, char* into, size_t room) {
  if (room < PATH_MAX) __builtin_trap();
  return real_path(path, into);
}
char* canonicalize_file_name(const char* path) noexcept {
  return real_path(path, nullptr);
}

int chdir(const char* path) noexcept {
  return with_path(AT_FDCWD, path, true, -1, [](int, const char* name) { return STRAIT_NEXT(chdir)(name); });
}

char* getcwd(char* into, size_t capacity) noexcept {
  char* found = STRAIT_NEXT(getcwd)(into, capacity);
  if (found != nullptr && root() != nullptr) map().to_logical(found);
  return found;
}
char* get_current_dir_name() noexcept {
  char* found = STRAIT_NEXT(get_current_dir_name)();
  if (found != nullptr && root() != nullptr) map().to_logical(found);
  return found;
}

}  // extern "C"
