// SPDX-License-Identifier: Apache-2.0
#include "sys/aligned.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace strait::sys {

Result<Mapping> map_file_aligned(int fd, std::size_t length_bytes, Protect protect, const Calls& calls) {
  if (length_bytes < kHugePageBytes) return map_file(fd, 0, length_bytes, protect, calls);
  const std::size_t page_rounded = round_up(length_bytes, page_bytes());
  const std::size_t room_bytes = page_rounded + kHugePageBytes;
  void* room = calls.mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return fail_errno(errno, fmt::format("cannot reserve {} bytes of addresses", room_bytes));
  const auto start = reinterpret_cast<std::uintptr_t>(room);
  const std::uintptr_t aligned = round_up(start, kHugePageBytes);
  const int rights = protect == Protect::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* base = calls.mmap(reinterpret_cast<void*>(aligned), length_bytes, rights, MAP_SHARED | MAP_FIXED, fd, 0);
  if (base == MAP_FAILED) {
    const int why = errno;
    ::munmap(room, room_bytes);
    return fail_errno(why, fmt::format("cannot map {} bytes of fd {}", length_bytes, fd));
  }
  // The reservation shrinks to what the file covers.
  const std::size_t front = aligned - start;
  const std::size_t back = room_bytes - front - page_rounded;
  if (front != 0) ::munmap(room, front);
  if (back != 0) ::munmap(reinterpret_cast<void*>(aligned + page_rounded), back);
  ::madvise(base, length_bytes, MADV_HUGEPAGE);
  return Mapping(base, length_bytes);
}

void prefer_huge_pages(void* base, std::size_t length_bytes) {
  ::madvise(base, length_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

}  // namespace strait::sys
