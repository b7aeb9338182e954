// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/carried_files.hpp"

#include <algorithm>
#include <cerrno>

#include "soft/cassini_host/file_memory.hpp"

namespace strait::soft::cassini {

bool part_of(std::uint64_t piece, std::uint64_t length, std::uint64_t start, std::uint64_t bytes, PartOf& out) {
  if (bytes == 0 || start + bytes < start || piece + length < piece) return false;
  const std::uint64_t first = std::max(piece, start), end = std::min(piece + length, start + bytes);
  if (first >= end) return false;
  out = {first - start, first - piece, end - first};
  return true;
}

int CarriedFiles::open(const Piece& piece, const PartOf& part, std::unique_ptr<UserMemory>& out) const {
  const auto& [said, file] = piece;
  if (said.memory != 0) {
    out = std::make_unique<AskedMemory>(asker_, said.memory, part.start - part.gap, part.gap + part.bytes);
    return 0;
  }
  if (said.offset + part.start < said.offset) return EINVAL;
  auto mapped = FileBytes::map(file.get(), said.offset + part.start, part.bytes);
  if (!mapped) return mapped.error().sys_errno != 0 ? mapped.error().sys_errno : EINVAL;
  out = std::make_unique<FileMemory>(std::move(*mapped), part.gap);
  return 0;
}

int CarriedFiles::dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) {
  for (const Piece& piece : pieces_) {
    const protocol::Carried& said = piece.first;
    if (said.by_address != 0 || said.fd != fd) continue;
    if (said.error != 0) return said.error;
    if (offset + bytes < offset) return EINVAL;
    if (offset + bytes > said.bytes) return EFAULT;
    return open(piece, {0, offset, bytes}, out);
  }
  return EBADF;
}

int CarriedFiles::device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) {
  for (const Piece& piece : pieces_) {
    const protocol::Carried& said = piece.first;
    if (said.by_address == 0) continue;
    if (said.error != 0) return said.error;
    // Pages of the device are larger than ours: what surrounds the memory in them is asked for as well.
    PartOf part;
    if (part_of(said.address, said.bytes, address, bytes, part)) return open(piece, part, out);
  }
  return EOPNOTSUPP;
}

}  // namespace strait::soft::cassini
