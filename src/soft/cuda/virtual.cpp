// SPDX-License-Identifier: Apache-2.0
// Memory: reserved addresses, and handles of device memory that are mapped into them, several side by side.
#include <algorithm>

#include "soft/cuda/announce.hpp"
#include "soft/cuda/memory.hpp"

namespace strait::soft::cuda {
namespace {

bool whole_steps(std::uint64_t address, std::uint64_t length_bytes) {
  return length_bytes != 0 && address % kGranularity == 0 && length_bytes % kGranularity == 0 &&
         length_bytes <= UINT64_MAX - address;
}

}  // namespace

CUresult Memory::reserve(std::uint64_t length_bytes, std::uint64_t alignment, std::uint64_t wanted,
                         std::uint64_t& address) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46;
  if (length_bytes == 0 || length_bytes % kGranularity != 0 || length_bytes > kMost || alignment > kMost ||
      (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  alignment = std::max(alignment, kGranularity);
  // The address that was asked for is a wish, as there; the alignment is not.
  const std::uint64_t hint = wanted % alignment == 0 ? wanted : 0;
  auto room = sys::map_anonymous(length_bytes, sys::Protect::none, reinterpret_cast<void*>(hint));
  if (room && reinterpret_cast<std::uint64_t>(room->data()) % alignment != 0)
    room = sys::map_anonymous(length_bytes + alignment, sys::Protect::none);
  if (!room) return CUDA_ERROR_OUT_OF_MEMORY;
  auto range = std::make_shared<Range>();
  range->sort = Sort::reserved;
  range->base = sys::round_up(reinterpret_cast<std::uint64_t>(room->data()), alignment);
  range->length_bytes = length_bytes;
  range->room = std::move(*room);
  const std::unique_lock lock(mutex_);
  range->buffer_id = ++last_id_;
  address = range->base;
  ranges_.emplace(range->base, std::move(range));
  return CUDA_SUCCESS;
}

CUresult Memory::unreserve(std::uint64_t address, std::uint64_t length_bytes) {
  std::shared_ptr<Range> range;
  const std::unique_lock lock(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second->sort != Sort::reserved || found->second->length_bytes != length_bytes ||
      !found->second->pieces.empty())
    return CUDA_ERROR_INVALID_VALUE;
  range = std::move(found->second);  // its addresses go after the lock
  ranges_.erase(found);
  return CUDA_SUCCESS;
}

CUresult Memory::map(std::uint64_t address, std::uint64_t length_bytes, std::shared_ptr<Physical> physical) {
  // One handle, whole: parts of one cannot be mapped there either.
  if (!whole_steps(address, length_bytes) || length_bytes != physical->block->length_bytes())
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Range> range;
  Piece piece;
  {
    const std::unique_lock lock(mutex_);
    range = find_locked(address);
    if (!range || range->sort != Sort::reserved || length_bytes > range->end() - address)
      return CUDA_ERROR_INVALID_VALUE;
    for (const Piece& other : range->pieces) {
      if (other.base < address + length_bytes && address < other.base + other.length_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (range->pieces.empty()) range->device = physical->prop.location.id;
    piece = {address, length_bytes, physical->block, 0, std::move(physical), ++last_id_, 0, 0};
    const auto where = std::ranges::find_if(range->pieces, [&](const Piece& each) { return each.base > address; });
    range->pieces.insert(where, piece);
  }
  if (announce(*range, piece)) return CUDA_SUCCESS;
  const std::unique_lock lock(mutex_);
  std::erase_if(range->pieces, [&](const Piece& each) { return each.base == address; });
  return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult Memory::unmap(std::uint64_t address, std::uint64_t length_bytes) {
  if (!whole_steps(address, length_bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Range> range;
  std::vector<Piece> going;  // dropped after the lock
  {
    const std::unique_lock lock(mutex_);
    range = find_locked(address);
    if (!range || range->sort != Sort::reserved || length_bytes > range->end() - address)
      return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t covered = 0;
    for (const Piece& piece : range->pieces) {
      const bool inside = piece.base >= address && piece.base + piece.length_bytes <= address + length_bytes;
      const bool touches = piece.base < address + length_bytes && address < piece.base + piece.length_bytes;
      if (touches && !inside) return CUDA_ERROR_INVALID_VALUE;
      if (!inside) continue;
      going.push_back(piece);
      covered += piece.length_bytes;
    }
    if (covered != length_bytes) return CUDA_ERROR_INVALID_VALUE;
  }
  for (Piece& piece : going) retract(piece);
  const std::unique_lock lock(mutex_);
  std::erase_if(range->pieces, [&](const Piece& piece) {
    return std::ranges::any_of(going, [&](const Piece& each) { return each.base == piece.base; });
  });
  return CUDA_SUCCESS;
}

CUresult Memory::set_access(std::uint64_t address, std::uint64_t length_bytes, const CUmemAccessDesc* access,
                            std::size_t count, int devices) {
  if (!whole_steps(address, length_bytes) || access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
        access[i].location.id >= devices ||
        (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const std::unique_lock lock(mutex_);
  const std::shared_ptr<Range> range = find_locked(address);
  if (!range || range->sort != Sort::reserved || length_bytes > range->end() - address) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Piece*> pieces;
  std::uint64_t covered = 0;
  for (Piece& piece : range->pieces) {
    if (piece.base < address || piece.base + piece.length_bytes > address + length_bytes) continue;
    pieces.push_back(&piece);
    covered += piece.length_bytes;
  }
  if (covered != length_bytes) return CUDA_ERROR_INVALID_VALUE;
  for (Piece* const piece : pieces) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << access[i].location.id;
      piece->readers = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE ? piece->readers | bit : piece->readers & ~bit;
      piece->writers =
          access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? piece->writers | bit : piece->writers & ~bit;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace strait::soft::cuda
