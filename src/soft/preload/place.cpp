// SPDX-License-Identifier: Apache-2.0
#include "soft/preload/place.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "soft/preload/real.hpp"

namespace strait::preload {
namespace {

constinit soft::host::PathMap kept_map;
constinit const soft::host::PathMap kNothing;
enum class Loaded : int { no, now, yes };
constinit std::atomic<Loaded> loaded{Loaded::no};

long read_whole(const char* path, char* into, std::size_t capacity) {
  const long fd = kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
  if (fd < 0) return fd;
  std::size_t length = 0;
  while (length < capacity - 1) {
    const long got = kernel(SYS_read, fd, into + length, capacity - 1 - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  (void)kernel(SYS_close, fd);
  into[length] = '\0';
  return static_cast<long>(length);
}

__attribute__((noinline)) void load() {
  const char* given = getenv("STRAIT_HOST_ROOT");
  if (given == nullptr || !kept_map.set_root(given)) return;
  char path[soft::host::kPathBytes / 2 + 16];
  const std::size_t length = strlen(given);
  memcpy(path, given, length);
  memcpy(path + length, "/claims", sizeof "/claims");
  char text[4096];
  if (read_whole(path, text, sizeof text) < 0) return;
  for (char *line = text, *end; *line != '\0'; line = end) {
    end = line + strcspn(line, "\n");
    if (*end != '\0') *end++ = '\0';
    if (*line != '\0' && !kept_map.add_claim(line)) return;
  }
}

long read_link(void*, const char* path, char* into, std::size_t capacity) {
  return kernel(SYS_readlinkat, AT_FDCWD, path, into, capacity);
}

__attribute__((noinline)) bool folder_concerned(int folder) {
  char name[soft::host::kPathBytes];
  return folder_name(folder, name, sizeof name) && map().concerns_folder(name);
}

}  // namespace

bool folder_name(int folder, char* into, std::size_t capacity) {
  if (folder == AT_FDCWD) {
    const long length = kernel(SYS_getcwd, into, capacity);
    return length > 0 && into[0] == '/';
  }
  if (folder < 0) return false;
  char link[32] = "/proc/self/fd/";
  char digits[12];
  std::size_t n = 0;
  for (unsigned left = static_cast<unsigned>(folder); n == 0 || left != 0; left /= 10)
    digits[n++] = static_cast<char>('0' + left % 10);
  std::size_t at = strlen(link);
  while (n > 0) link[at++] = digits[--n];
  link[at] = '\0';
  const long length = kernel(SYS_readlinkat, AT_FDCWD, link, into, capacity - 1);
  if (length <= 0 || into[0] != '/') return false;
  into[length] = '\0';
  return true;
}

const soft::host::PathMap& map() {
  Loaded seen = loaded.load(std::memory_order_acquire);
  if (seen == Loaded::no && loaded.compare_exchange_strong(seen, Loaded::now, std::memory_order_acq_rel)) {
    load();
    loaded.store(Loaded::yes, std::memory_order_release);
    return kept_map;
  }
  // Somebody else's very first moment: a constructor loads it before there are threads.
  return seen == Loaded::yes ? kept_map : kNothing;
}

const char* root() {
  return map().empty() ? nullptr : map().root();
}

bool concerned(int folder, const char* path) {
  if (path == nullptr || path[0] == '\0' || map().empty()) return false;
  if (map().may_concern(path)) return true;
  return path[0] != '/' && folder_concerned(folder);
}

Placed place(int folder, const char* path, bool follow, Place& out) {
  char name[soft::host::kPathBytes] = "";
  if (path[0] != '/' && !folder_name(folder, name, sizeof name)) return Placed::unchanged;
  return map().place(name, path, follow, read_link, nullptr, out);
}

const char* logical(const Place& place) {
  return place.inside ? place.path + map().root_length() : place.path;
}

// A node is a plain file below ROOT/dev that holds "MAJOR:MINOR".
bool is_node(const Place& place, std::uint64_t* number) {
  if (!place.inside || strncmp(logical(place), "/dev/", 5) != 0) return false;
  char text[32];
  if (read_whole(place.path, text, sizeof text) <= 0) return false;
  char* end = nullptr;
  const int before = errno;
  const unsigned long major = strtoul(text, &end, 10);
  const unsigned long minor = *end == ':' ? strtoul(end + 1, nullptr, 10) : 0;
  errno = before;
  *number = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  return true;
}

bool is_live(const Place& place) {
  if (!place.inside || strncmp(logical(place), "/sys/", 5) != 0) return false;
  char text[sizeof soft::host::kLiveMark];
  const long length = read_whole(place.path, text, sizeof text);
  if (length > 0) return strncmp(text, soft::host::kLiveMark, sizeof text - 1) == 0;
  // A name that is not there, in a folder where all are.
  const char* const slash = strrchr(place.path, '/');
  const std::size_t before = static_cast<std::size_t>(slash - place.path);
  char mark[soft::host::kPathBytes];
  if (length == 0 || before + sizeof soft::host::kLiveFolder > sizeof mark) return false;
  memcpy(mark, place.path, before);
  memcpy(mark + before, soft::host::kLiveFolder, sizeof soft::host::kLiveFolder);
  return read_whole(mark, text, sizeof text) > 0;
}

__attribute__((constructor(101))) static void load_early() {
  (void)map();
}

}  // namespace strait::preload
