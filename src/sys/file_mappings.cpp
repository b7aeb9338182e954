// SPDX-License-Identifier: Apache-2.0
// /proc/self/maps and mprotect.
#include "sys/file_mappings.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>

namespace strait::sys {

std::vector<FileMapping> mappings_of(int fd) {
  std::vector<FileMapping> out;
  struct stat file {};
  if (::fstat(fd, &file) != 0) return out;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return out;
  // A line has the path at its end, which nobody looks at here; a long one is read in parts that do not parse.
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    std::uint64_t first = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char access[5] = {};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4c %" SCNx64 " %x:%x %" SCNu64, &first, &end, access, &offset,
                    &major, &minor, &inode) != 7)
      continue;
    if (inode != file.st_ino || makedev(major, minor) != file.st_dev || access[3] != 's') continue;
    out.push_back({first, end - first, offset, access[1] == 'w'});
  }
  std::fclose(maps);
  return out;
}

bool set_writable(std::uint64_t address, std::uint64_t length_bytes, bool writable) {
  return ::mprotect(reinterpret_cast<void*>(address), length_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

}  // namespace strait::sys
