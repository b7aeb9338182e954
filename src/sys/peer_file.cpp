// SPDX-License-Identifier: Apache-2.0
#include "sys/peer_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace strait::sys {
namespace {

Status add_seals(int fd, int seals) {
  if (::fcntl(fd, F_ADD_SEALS, seals) == 0) return {};
  return fail_errno(errno, fmt::format("cannot seal the memory file of fd {}", fd));
}

}  // namespace

Result<Fd> make_grantable_memfd(const char* name, std::size_t length_bytes, const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot make a memory file of 0 bytes");
  Fd fd(calls.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot create the memory file \"{}\"", name));
  if (calls.ftruncate(fd.get(), static_cast<off_t>(length_bytes)) != 0)
    return fail_errno(errno, fmt::format("cannot size the memory file \"{}\" to {} bytes", name, length_bytes));
  STRAIT_CHECK(add_seals(fd.get(), F_SEAL_SHRINK | F_SEAL_GROW));
  return fd;
}

Status seal_for_peers(int fd, bool writable) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return fail_errno(errno, fmt::format("cannot read the seals of fd {}", fd));
  const bool read_only = (seals & F_SEAL_FUTURE_WRITE) != 0;
  if ((seals & F_SEAL_SEAL) != 0) {
    if (read_only != writable) return {};
    return fail(Code::denied, "its pages were given to peers {} before",
                writable ? "for reading only" : "for writing too");
  }
  return add_seals(fd, writable ? F_SEAL_SEAL : F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

bool is_writable_for_peers(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)) == 0;
}

bool holds_exactly(int fd, std::uint64_t length_bytes) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == round_up(length_bytes, page_bytes());
}

Result<PublishedFile> make_published_file(const char* name, std::size_t length_bytes, const Calls& calls) {
  PublishedFile out;
  STRAIT_TRY(out.fd, make_grantable_memfd(name, length_bytes, calls));
  STRAIT_TRY(out.memory, map_file(out.fd.get(), 0, length_bytes, Protect::read_write, calls));
  STRAIT_CHECK(seal_for_peers(out.fd.get(), false));
  return out;
}

// A private mapping of the file has the bytes that are in it at the first write to each page, and a copy of its own
// from then on. Exchanging a word for itself is such a write, and loses no other thread's. (An addition of nothing is
// one only until a compiler makes it a load.)
Status leave_file(std::uint64_t address, std::size_t length_bytes, int fd, const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "0 bytes have no pages");
  if (calls.mmap(reinterpret_cast<void*>(address), length_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                 0) == MAP_FAILED)
    return fail_errno(errno, fmt::format("cannot give {} bytes at {:#x} pages of their own", length_bytes, address));
  for (std::uint64_t at = address; at < address + length_bytes; at += page_bytes()) {
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(at));
    std::uint64_t value = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(value, value, std::memory_order_relaxed)) {
    }
  }
  return {};
}

}  // namespace strait::sys
