// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/port_pieces.hpp"

#include <algorithm>
#include <cstring>

namespace strait::soft::nic {

bool ReadAhead::read(const Registration& from, std::uint64_t tag, std::uint64_t address, std::byte* into,
                     std::uint64_t length_bytes, std::uint64_t left) {
  const bool here = length_bytes_ != 0 && tag_ == tag && key_ == from.key && address >= address_ &&
                    address - address_ <= length_bytes_ && length_bytes <= length_bytes_ - (address - address_);
  if (!here) {
    length_bytes_ = 0;
    if (length_bytes >= left) return read_bytes(from, address, into, length_bytes);
    const std::uint64_t piece = std::max(length_bytes, std::min(left, kPortPieceBytes));
    bytes_.resize(piece);
    if (!read_bytes(from, address, bytes_.data(), piece)) return false;
    tag_ = tag;
    key_ = from.key;
    address_ = address;
    length_bytes_ = piece;
  }
  std::memcpy(into, bytes_.data() + (address - address_), length_bytes);
  if (length_bytes >= left) {
    length_bytes_ = 0;
    bytes_ = {};
  }
  return true;
}

bool WriteBehind::flush(MemoryTable& table) {
  const Registration* const into = table.find(key_);
  const bool written =
      bytes_.empty() || (into != nullptr && into->bytes == nullptr && into->covers(address_, bytes_.size()) &&
                         write_far_bytes(*into, address_, bytes_.data(), bytes_.size()));
  bytes_.clear();
  return written;
}

bool WriteBehind::write(MemoryTable& table, const Registration& into, std::uint64_t address, const std::byte* from,
                        std::uint64_t length_bytes, bool more) {
  if (bytes_.empty() && !more) return write_far_bytes(into, address, from, length_bytes);
  while (length_bytes != 0) {
    if (!bytes_.empty() && (key_ != into.key || address != address_ + bytes_.size()) && !flush(table)) return false;
    if (bytes_.empty()) {
      key_ = into.key;
      address_ = address;
      bytes_.reserve(kPortPieceBytes);
    }
    const std::uint64_t n = std::min(length_bytes, kPortPieceBytes - bytes_.size());
    bytes_.insert(bytes_.end(), from, from + n);
    from += n;
    address += n;
    length_bytes -= n;
    if (bytes_.size() == kPortPieceBytes && !flush(table)) return false;
  }
  if (more) return true;
  const bool written = flush(table);
  bytes_ = {};
  return written;
}

}  // namespace strait::soft::nic
