// SPDX-License-Identifier: Apache-2.0
#include "sys/mapping.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace strait::sys {
namespace {

int prot_bits(Protect protect) {
  switch (protect) {
    case Protect::none: return PROT_NONE;
    case Protect::read: return PROT_READ;
    case Protect::read_write: return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

}  // namespace

void Mapping::reset() {
  if (base_ == nullptr) return;
  ::munmap(base_, length_bytes_);
  base_ = nullptr;
  length_bytes_ = 0;
}

Result<Mapping> map_file(int fd, std::uint64_t offset, std::size_t length_bytes, Protect protect, const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot map 0 bytes of a file");
  void* base = calls.mmap(nullptr, length_bytes, prot_bits(protect), MAP_SHARED, fd, static_cast<off_t>(offset));
  if (base == MAP_FAILED) return fail_errno(errno, fmt::format("cannot map {} bytes of fd {}", length_bytes, fd));
  return Mapping(base, length_bytes);
}

Result<Mapping> map_anonymous(std::size_t length_bytes, Protect protect, void* hint, const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot map 0 bytes");
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (protect == Protect::none ? MAP_NORESERVE : 0);
  void* base = calls.mmap(hint, length_bytes, prot_bits(protect), flags, -1, 0);
  if (base == MAP_FAILED) return fail_errno(errno, fmt::format("cannot map {} bytes of memory", length_bytes));
  return Mapping(base, length_bytes);
}

Status map_file_over(void* addresses, int fd, std::uint64_t offset, std::size_t length_bytes, Protect protect,
                     const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot map 0 bytes of a file");
  const bool bare = protect == Protect::none;
  const int flags = MAP_FIXED | (bare ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
  if (calls.mmap(addresses, length_bytes, prot_bits(protect), flags, bare ? -1 : fd,
                 bare ? 0 : static_cast<off_t>(offset)) == MAP_FAILED)
    return fail_errno(errno, fmt::format("cannot map {} bytes of fd {} over reserved addresses", length_bytes, fd));
  return {};
}

std::int64_t map_as_asked(void* address, std::size_t length_bytes, int protect, int flags, int fd, std::uint64_t offset,
                          const Calls& calls) {
  void* const at = calls.mmap(address, length_bytes, protect, flags, fd, static_cast<off_t>(offset));
  return at == MAP_FAILED ? -static_cast<std::int64_t>(errno) : reinterpret_cast<std::int64_t>(at);
}

int unmap_as_asked(void* address, std::size_t length_bytes) {
  return ::munmap(address, length_bytes) == 0 ? 0 : -errno;
}

Result<Fd> make_sealed_memfd(const char* name, std::size_t length_bytes, const Calls& calls) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot make a memory file of 0 bytes");
  Fd fd(calls.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot create the memory file \"{}\"", name));
  if (calls.ftruncate(fd.get(), static_cast<off_t>(length_bytes)) != 0) {
    return fail_errno(errno, fmt::format("cannot size the memory file \"{}\" to {} bytes", name, length_bytes));
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail_errno(errno, fmt::format("cannot seal the memory file \"{}\"", name));
  }
  return fd;
}

Status check_sealed(int fd, std::size_t at_least_bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 && errno == EINVAL) {
    return fail(Code::denied,
                "fd {} is not a memory file that can be sealed: its owner could truncate it while it is in use", fd);
  }
  if (seals < 0) return fail_errno(errno, fmt::format("cannot read the seals of fd {}", fd));
  if ((seals & F_SEAL_SHRINK) == 0) {
    return fail(Code::denied, "fd {} is not sealed against shrinking: its owner could truncate it while it is in use",
                fd);
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno(errno, fmt::format("cannot stat fd {}", fd));
  if (static_cast<std::uint64_t>(status.st_size) < at_least_bytes) {
    return fail(Code::invalid, "fd {} holds {} bytes, {} were expected", fd, status.st_size, at_least_bytes);
  }
  return {};
}

void keep_from_children(const Mapping& mapping) {
  ::madvise(mapping.data(), mapping.size(), MADV_DONTFORK);
}

Status will_need(std::uint64_t address, std::uint64_t length_bytes) {
  const std::uint64_t first = address / page_bytes() * page_bytes();
  if (length_bytes > UINT64_MAX - address - page_bytes())
    return fail(Code::invalid, "{} bytes at {:#x} wrap around", length_bytes, address);
  if (::madvise(reinterpret_cast<void*>(first), address + length_bytes - first, MADV_WILLNEED) == 0) return {};
  if (errno == ENOMEM) return fail(Code::invalid, "not all of {} bytes at {:#x} is mapped", length_bytes, address);
  // EAGAIN and EBADF: the kernel had no time for the hint, or the mapping is of no file; nothing is lost.
  return {};
}

std::size_t page_bytes() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace strait::sys
