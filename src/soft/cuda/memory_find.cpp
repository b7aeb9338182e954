// SPDX-License-Identifier: Apache-2.0
// Memory: what is at an address, where its bytes are for a copy, and a descriptor of them.
#include <algorithm>

#include "soft/accel/window.hpp"
#include "soft/cuda/memory.hpp"
#include "sys/file_hold.hpp"

namespace strait::soft::cuda {
namespace {

const Piece* piece_at(const Range& range, std::uint64_t address) {
  for (const Piece& piece : range.pieces) {
    if (address - piece.base < piece.length_bytes) return &piece;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<Range> Memory::find_locked(std::uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const std::shared_ptr<Range>& range = std::prev(after)->second;
  return address - range->base < range->length_bytes && !range->dying ? range : nullptr;
}

bool Memory::find(std::uint64_t address, Known& out) const {
  const std::shared_lock lock(mutex_);
  out.range = find_locked(address);
  if (!out.range) return false;
  const Piece* piece = piece_at(*out.range, address);
  out.mapped = piece != nullptr;
  if (piece != nullptr) out.piece = *piece;
  out.sync_memops = out.range->sync_memops;
  return true;
}

std::shared_ptr<Range> Memory::range_at(std::uint64_t address) const {
  const auto found = ranges_.find(address);
  return found == ranges_.end() || found->second->dying ? nullptr : found->second;
}

bool Memory::touches_device_locked(std::uint64_t address, std::uint64_t length_bytes) const {
  const auto overlaps = [&](std::uint64_t base, std::uint64_t bytes) {
    return base < address + length_bytes && address < base + bytes;
  };
  for (const Device& device : devices_) {
    if (overlaps(reinterpret_cast<std::uint64_t>(device.room.data()), device.room.size())) return true;
  }
  return std::ranges::any_of(ranges_, [&](const auto& each) {
    return each.second->on_device() && overlaps(each.first, each.second->length_bytes);
  });
}

CUresult Memory::side(std::uint64_t address, std::uint64_t length_bytes, bool writes, Side& out) const {
  if (address == 0 || length_bytes > UINT64_MAX - address) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::shared_lock lock(mutex_);
    if (const std::shared_ptr<Range> range = find_locked(address)) {
      if (length_bytes > range->end() - address) return CUDA_ERROR_INVALID_VALUE;
      out.held.push_back(range);
      out.device = range->on_device();
      out.sync_memops = range->sync_memops;
      if (!range->on_device()) {  // the CPU's addresses are good
        out.spans.push_back({reinterpret_cast<std::byte*>(address), length_bytes});
        return CUDA_SUCCESS;
      }
      while (length_bytes != 0) {
        const Piece* piece = piece_at(*range, address);
        if (piece == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (piece->physical && (writes ? piece->writers : piece->readers) == 0) return CUDA_ERROR_INVALID_VALUE;
        const std::uint64_t into = address - piece->base;
        const std::uint64_t bytes = std::min(length_bytes, piece->length_bytes - into);
        out.spans.push_back({piece->block->bytes() + piece->block_offset + into, bytes});
        out.held.push_back(piece->block);
        address += bytes;
        length_bytes -= bytes;
      }
      return CUDA_SUCCESS;
    }
    if (touches_device_locked(address, length_bytes)) return CUDA_ERROR_INVALID_VALUE;
  }
  const auto kind = address_space_.look(address, length_bytes).kind;
  if (kind != sys::RangeAccess::Kind::read_write && (writes || kind != sys::RangeAccess::Kind::read_only))
    return CUDA_ERROR_INVALID_VALUE;
  out.pageable = true;
  out.spans.push_back({reinterpret_cast<std::byte*>(address), length_bytes});
  return CUDA_SUCCESS;
}

CUresult Memory::export_range(std::uint64_t address, std::uint64_t length_bytes, int& fd) {
  const std::uint64_t page = sys::page_bytes();
  if (length_bytes == 0 || address % page != 0 || length_bytes % page != 0 || length_bytes > UINT64_MAX - address)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::shared_ptr<accel::Block>> blocks;
  std::vector<accel::WindowPiece> pieces;
  {
    const std::shared_lock lock(mutex_);
    std::shared_ptr<Range> range = find_locked(address);
    // Carved memory begins at any step of a page, and the page is asked for.
    if (!range) {
      auto after = ranges_.lower_bound(address);
      while (after != ranges_.end() && after->first - address < page && after->second->dying) ++after;
      if (after != ranges_.end() && after->first - address < page) range = after->second;
    }
    if (!range || !range->on_device()) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t left = length_bytes;
    std::uint64_t at = address;
    while (left != 0) {
      const Piece* piece = range->sort == Sort::reserved ? piece_at(*range, at) : &range->pieces.front();
      if (piece == nullptr) return CUDA_ERROR_INVALID_VALUE;
      // The block is what limits an export, not the allocation: the real driver gives a neighbour's bytes away too.
      const std::uint64_t block_base = piece->base - piece->block_offset;
      const std::uint64_t block_bytes = piece->block->length_bytes();
      if (at < block_base || at - block_base >= block_bytes) return CUDA_ERROR_INVALID_VALUE;
      const std::uint64_t room =
          range->sort == Sort::reserved ? piece->base + piece->length_bytes - at : block_base + block_bytes - at;
      const std::uint64_t bytes = std::min(left, room);
      if (range->sort != Sort::reserved && bytes < left) return CUDA_ERROR_INVALID_VALUE;
      pieces.push_back({piece->block->file(), at - block_base, bytes});
      blocks.push_back(piece->block);
      at += bytes;
      left -= bytes;
    }
  }
  const bool whole = pieces.size() == 1 && pieces[0].offset == 0 && pieces[0].length_bytes == blocks[0]->length_bytes();
  if (whole) {
    auto file = blocks[0]->open_file();
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    fd = file->release();
    return CUDA_SUCCESS;
  }
  auto window = accel::make_window(pieces);
  if (!window) return CUDA_ERROR_OPERATING_SYSTEM;
  auto given = sys::open_again(window->get());
  if (!given || !sys::hold_file(given->get())) return CUDA_ERROR_OPERATING_SYSTEM;
  const auto mine = std::make_shared<sys::Fd>(std::move(*window));
  for (const auto& block : blocks) block->hold_while_open(mine);
  fd = given->release();
  return CUDA_SUCCESS;
}

}  // namespace strait::soft::cuda
