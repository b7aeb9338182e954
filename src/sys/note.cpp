// SPDX-License-Identifier: Apache-2.0
#include "sys/note.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace strait::sys {
std::string memfd_name(int fd) {
  constexpr std::string_view kBegin = "/memfd:";
  constexpr std::string_view kEnd = " (deleted)";
  std::array<char, 512> text{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), text.data(), text.size());
  if (length <= 0) return {};
  std::string_view link(text.data(), static_cast<std::size_t>(length));
  if (!link.starts_with(kBegin) || !link.ends_with(kEnd)) return {};
  link.remove_prefix(kBegin.size());
  link.remove_suffix(kEnd.size());
  return std::string(link);
}

std::size_t read_start(int fd, void* into, std::size_t capacity) {
  ssize_t got = -1;
  do {
    got = ::pread(fd, into, capacity, 0);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

Result<Fd> make_note(const char* name, std::size_t length_bytes, const void* start, std::size_t start_bytes) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return fail_errno(errno, "cannot make a memory file");
  if (::ftruncate(file.get(), static_cast<off_t>(length_bytes)) != 0)
    return fail_errno(errno, fmt::format("cannot make a memory file of {} bytes", length_bytes));
  ssize_t put = -1;
  do {
    put = ::pwrite(file.get(), start, start_bytes, 0);
  } while (put < 0 && errno == EINTR);
  if (put < 0) return fail_errno(errno, "cannot write to a memory file");
  if (static_cast<std::size_t>(put) != start_bytes) return fail(Code::limit, "a memory file took {} bytes", put);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return fail_errno(errno, "cannot seal a memory file");
  return file;
}

}  // namespace strait::sys
