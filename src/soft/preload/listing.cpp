// SPDX-License-Identifier: Apache-2.0
// Folders, listed. One in the root lists itself; in one above a claim (/sys/class above /sys/class/infiniband) the
// names that claims bring follow those that are really there.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "soft/preload/placed.hpp"
#include "soft/preload/real.hpp"

namespace strait::preload {
namespace {

constexpr std::size_t kListings = 32;  // open at once; further ones show what is really there

struct Listing {
  std::atomic<DIR*> folder{nullptr};
  bool at_claims = false;  // what is really there has been listed
  std::size_t next = 0;
  char name[256];
  dirent entry;
};
constinit Listing listings[kListings]{};
constinit std::atomic<int> listed{0};

Listing* listing_of(DIR* folder) {
  if (listed.load(std::memory_order_acquire) == 0) return nullptr;
  for (Listing& listing : listings) {
    if (listing.folder.load(std::memory_order_acquire) == folder) return &listing;
  }
  return nullptr;
}

// Remembers a folder that claims bring names to.
__attribute__((noinline)) void watch(DIR* folder) {
  char name[soft::host::kPathBytes];
  std::size_t length = 0;
  if (!folder_name(dirfd(folder), name, sizeof name) || map().name_below(name, 0, &length) == nullptr) return;
  if (strlen(name) >= sizeof Listing::name) return;
  for (Listing& listing : listings) {
    DIR* nobody = nullptr;
    if (!listing.folder.compare_exchange_strong(nobody, folder, std::memory_order_acq_rel)) continue;
    listing.at_claims = false;
    listing.next = 0;
    memcpy(listing.name, name, strlen(name) + 1);
    listed.fetch_add(1, std::memory_order_release);
    return;
  }
}

bool is_new(const Listing& listing, std::size_t n, const char* name, std::size_t length) {
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t other = 0;
    const char* earlier = map().name_below(listing.name, i, &other);
    if (other == length && memcmp(earlier, name, length) == 0) return false;
  }
  char path[sizeof Listing::name * 2 + 2];
  const std::size_t folder = strcmp(listing.name, "/") == 0 ? 0 : strlen(listing.name);
  memcpy(path, listing.name, folder);
  path[folder] = '/';
  memcpy(path + folder + 1, name, length);
  path[folder + 1 + length] = '\0';
  return kernel(SYS_faccessat, AT_FDCWD, path, F_OK) < 0;  // else it was among the real ones
}

dirent* next_claim(Listing& listing) {
  for (;;) {
    std::size_t length = 0;
    const std::size_t n = listing.next;
    const char* name = map().name_below(listing.name, n, &length);
    if (name == nullptr) return nullptr;
    ++listing.next;
    if (length >= sizeof listing.entry.d_name || !is_new(listing, n, name, length)) continue;
    listing.entry.d_ino = 1;
    listing.entry.d_off = 0;
    listing.entry.d_reclen = sizeof listing.entry;
    listing.entry.d_type = DT_UNKNOWN;  // who wants to know asks stat
    memcpy(listing.entry.d_name, name, length);
    listing.entry.d_name[length] = '\0';
    return &listing.entry;
  }
}

static_assert(sizeof(dirent) == sizeof(dirent64));
template <class Entry>
Entry* read_any(DIR* folder, Entry* (*call)(DIR*)) {
  Listing* listing = listing_of(folder);
  if (listing == nullptr) return call(folder);
  if (!listing->at_claims) {
    const int before = errno;
    errno = 0;
    Entry* entry = call(folder);
    if (entry == nullptr && errno != 0) return nullptr;
    errno = before;
    if (entry != nullptr) return entry;
    listing->at_claims = true;
  }
  return reinterpret_cast<Entry*>(next_claim(*listing));
}

// scandir and its relatives, by our own readdir: the C library's would ask its own, to which claims are unknown.
template <class Entry>
int list_all(int at, const char* path, Entry*** list, int (*select)(const Entry*),
             int (*compare)(const Entry**, const Entry**), Entry* (*read)(DIR*)) {
  const int before = errno;
  const int fd = ::openat(at, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  DIR* const folder = ::fdopendir(fd);
  if (folder == nullptr) {
    const int failure = errno;
    ::close(fd);
    errno = failure;
    return -1;
  }
  Entry** found = nullptr;
  std::size_t count = 0, room = 0;
  for (;;) {
    errno = 0;
    const Entry* const entry = read(folder);
    if (entry == nullptr) break;
    if (select != nullptr && select(entry) == 0) continue;
    if (count == room) {
      room = room == 0 ? 16 : room * 2;
      void* const more = ::realloc(found, room * sizeof(Entry*));
      if (more == nullptr) break;
      found = static_cast<Entry**>(more);
    }
    found[count] = static_cast<Entry*>(::malloc(entry->d_reclen));  // the caller frees each by itself
    if (found[count] == nullptr) break;
    memcpy(static_cast<void*>(found[count]), entry, entry->d_reclen);
    ++count;
  }
  const int failure = errno;
  ::closedir(folder);
  if (failure != 0) {
    while (count > 0) ::free(found[--count]);
    ::free(found);
    errno = failure;
    return -1;
  }
  if (compare != nullptr && count > 1)
    ::qsort(found, count, sizeof *found, reinterpret_cast<int (*)(const void*, const void*)>(compare));
  *list = found;
  errno = before;
  return static_cast<int>(count);
}

}  // namespace
}  // namespace strait::preload

using namespace strait::preload;

extern "C" {

DIR* opendir(const char* path) {
  if (!concerned(AT_FDCWD, path)) return STRAIT_NEXT(opendir)(path);
  DIR* folder = with_placed(AT_FDCWD, path, true, static_cast<DIR*>(nullptr),
                            [](int, const char* name) { return STRAIT_NEXT(opendir)(name); });
  if (folder != nullptr) watch(folder);
  return folder;
}

DIR* fdopendir(int fd) {
  DIR* folder = STRAIT_NEXT(fdopendir)(fd);
  if (folder != nullptr && root() != nullptr) watch(folder);
  return folder;
}

dirent* readdir(DIR* folder) {
  return read_any(folder, STRAIT_NEXT(readdir));
}
dirent64* readdir64(DIR* folder) {
  return read_any(folder, STRAIT_NEXT(readdir64));
}

void rewinddir(DIR* folder) noexcept {
  if (Listing* listing = listing_of(folder)) {
    listing->at_claims = false;
    listing->next = 0;
  }
  STRAIT_NEXT(rewinddir)(folder);
}

int closedir(DIR* folder) {
  if (Listing* listing = listing_of(folder)) {
    listing->folder.store(nullptr, std::memory_order_release);
    listed.fetch_sub(1, std::memory_order_release);
  }
  return STRAIT_NEXT(closedir)(folder);
}

int scandir(const char* path, dirent*** list, int (*select)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
  if (!concerned(AT_FDCWD, path)) return STRAIT_NEXT(scandir)(path, list, select, compare);
  return list_all(AT_FDCWD, path, list, select, compare, readdir);
}
int scandir64(const char* path, dirent64*** list, int (*select)(const dirent64*),
              int (*compare)(const dirent64**, const dirent64**)) {
  if (!concerned(AT_FDCWD, path)) return STRAIT_NEXT(scandir64)(path, list, select, compare);
  return list_all(AT_FDCWD, path, list, select, compare, readdir64);
}
int scandirat(int at, const char* path, dirent*** list, int (*select)(const dirent*),
              int (*compare)(const dirent**, const dirent**)) {
  if (!concerned(at, path)) return STRAIT_NEXT(scandirat)(at, path, list, select, compare);
  return list_all(at, path, list, select, compare, readdir);
}
int scandirat64(int at, const char* path, dirent64*** list, int (*select)(const dirent64*),
                int (*compare)(const dirent64**, const dirent64**)) {
  if (!concerned(at, path)) return STRAIT_NEXT(scandirat64)(at, path, list, select, compare);
  return list_all(at, path, list, select, compare, readdir64);
}

}  // extern "C"
