// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/file_memory.hpp"

#include <cstring>

namespace strait::soft::cassini {

Result<FileBytes> FileBytes::map(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t skip = offset % sys::page_bytes();
  if (bytes == 0 || offset + bytes < offset || offset + bytes > static_cast<std::uint64_t>(INT64_MAX))
    return fail(Code::invalid, "{} bytes from {} on are no part of a file", bytes, offset);
  STRAIT_CHECK(sys::check_sealed(fd, static_cast<std::size_t>(offset + bytes)));
  STRAIT_TRY(sys::Mapping mapping, sys::map_file(fd, offset - skip, sys::round_up(skip + bytes, sys::page_bytes()),
                                                 sys::Protect::read_write));
  return FileBytes(std::move(mapping), skip, bytes);
}

bool FileMemory::read(std::uint64_t address, void* into, std::size_t bytes) {
  const std::byte* from = direct(address, bytes);
  if (from == nullptr) return false;
  if (bytes != 0) std::memcpy(into, from, bytes);
  return true;
}

bool FileMemory::write(std::uint64_t address, const void* from, std::size_t bytes) {
  std::byte* to = direct(address, bytes);
  if (to == nullptr) return false;
  if (bytes != 0) std::memcpy(to, from, bytes);
  return true;
}

}  // namespace strait::soft::cassini
