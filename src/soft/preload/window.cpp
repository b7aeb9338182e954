// SPDX-License-Identifier: Apache-2.0
// What a driver's mmap of its dma-bufs does, from CUDA 13.3 on: the memory files behind a window are mapped in its
// place. In runs with cuda:N@map only; elsewhere a window refuses, as that of an older driver.
#include "soft/preload/window.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "soft/accel/window_list.hpp"
#include "soft/preload/real.hpp"

namespace strait::preload {
namespace {

using soft::accel::ListedPiece;
using soft::accel::PieceList;

constexpr std::uint64_t kWindowPage = 4096;
bool windows_map = false;

__attribute__((constructor(103))) void read_variant() {
  const char* const said = getenv("STRAIT_SOFT_ACCELERATORS");
  const char* const cuda = said == nullptr ? nullptr : strstr(said, "cuda:");
  if (cuda == nullptr) return;
  const std::size_t part = strcspn(cuda, ",");
  const char* const at = static_cast<const char*>(memchr(cuda, '@', part));
  constexpr std::size_t kLength = sizeof soft::accel::kMapVariant - 1;
  windows_map = at != nullptr && static_cast<std::size_t>(cuda + part - at - 1) == kLength &&
                memcmp(at + 1, soft::accel::kMapVariant, kLength) == 0;
}

// "/proc/PID/fd/N"; without stdio, which maps memory itself.
struct FdPath {
  char text[48];
  FdPath(unsigned process, unsigned fd) {
    char* at = put(text, "/proc/");
    at = process == 0 ? put(at, "self") : put_number(at, process);
    at = put_number(put(at, "/fd/"), fd);
    *at = 0;
  }

 private:
  static char* put(char* at, const char* what) {
    while (*what != 0) *at++ = *what++;
    return at;
  }
  static char* put_number(char* at, unsigned number) {
    char digits[12];
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
    } while ((number /= 10) != 0);
    while (count != 0) *at++ = digits[--count];
    return at;
  }
};

bool is_window(int fd) {
  constexpr char kPrefix[] = "/memfd:";
  constexpr std::size_t kPrefixLength = sizeof kPrefix - 1, kNameLength = sizeof soft::accel::kWindowName - 1;
  char name[64];
  const FdPath path(0, static_cast<unsigned>(fd));
  const long length = kernel(SYS_readlinkat, AT_FDCWD, path.text, name, sizeof name);
  return length >= static_cast<long>(kPrefixLength + kNameLength) && memcmp(name, kPrefix, kPrefixLength) == 0 &&
         memcmp(name + kPrefixLength, soft::accel::kWindowName, kNameLength) == 0;
}

// [skip, skip + length) of one piece, over addresses that are taken already. 0, or -errno.
long map_piece(const ListedPiece& piece, std::uint64_t skip, std::uint64_t length, std::uint64_t at, int protect,
               int flags) {
  const FdPath path(piece.process, static_cast<unsigned>(piece.file));
  const long file = kernel(SYS_openat, AT_FDCWD, path.text, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return file;
  const long mapped = kernel(SYS_mmap, at, length, protect, flags | MAP_FIXED, file, piece.offset + skip);
  (void)kernel(SYS_close, file);
  return mapped < 0 && mapped > -4096 ? mapped : 0;
}

long map_pieces(const PieceList& list, std::uint64_t offset, std::uint64_t length, std::uint64_t at, int protect,
                int flags) {
  for (std::uint64_t i = 0; i < list.count && length != 0; ++i) {
    const ListedPiece& piece = list.pieces[i];
    if (offset >= piece.length_bytes) {
      offset -= piece.length_bytes;
      continue;
    }
    const std::uint64_t part = piece.length_bytes - offset < length ? piece.length_bytes - offset : length;
    if (const long failed = map_piece(piece, offset, part, at, protect, flags); failed != 0) return failed;
    offset = 0;
    at += part;
    length -= part;
  }
  return length == 0 ? 0 : -EINVAL;
}

}  // namespace

__attribute__((noinline)) long map_window(int fd, void* address, std::size_t length, int protect, int flags,
                                          off64_t offset) {
  if (!windows_map || (flags & MAP_TYPE) == MAP_PRIVATE || !is_window(fd)) return -ENOSYS;
  PieceList list;
  if (kernel(SYS_pread64, fd, &list, sizeof list, 0L) != static_cast<long>(sizeof list) ||
      list.magic != soft::accel::kWindowMagic || list.count > soft::accel::kMostPieces)
    return -ENOSYS;
  const std::uint64_t whole = (length + kWindowPage - 1) / kWindowPage * kWindowPage;
  const auto from = static_cast<std::uint64_t>(offset);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < list.count; ++i) total += list.pieces[i].length_bytes;
  if (length == 0 || whole < length || from % kWindowPage != 0 || from > total || whole > total - from) return -EINVAL;
  const int kept = MAP_FIXED | MAP_FIXED_NOREPLACE;
  const long at =
      kernel(SYS_mmap, address, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (flags & kept), -1, 0L);
  if (at < 0 && at > -4096) return at;
  const long failed =
      map_pieces(list, from, whole, static_cast<std::uint64_t>(at), protect, flags & ~(MAP_FIXED_NOREPLACE));
  if (failed == 0) return at;
  (void)kernel(SYS_munmap, at, whole);
  return failed;
}

}  // namespace strait::preload
