// SPDX-License-Identifier: Apache-2.0
#include "soft/cuda/memory.hpp"

#include <algorithm>

#include "soft/cuda/announce.hpp"

namespace strait::soft::cuda {

Memory::Memory(std::vector<std::shared_ptr<accel::Bank>> banks) : banks_(std::move(banks)) {}

Status Memory::open() {
  constexpr std::uint64_t kRoomFactor = 4;  // for alignment and holes: addresses cost nothing
  for (const auto& bank : banks_) {
    const std::size_t bytes = sys::round_up(bank->memory_bytes() * kRoomFactor, kGranularity) + 2 * kGranularity;
    Device device;
    STRAIT_TRY(device.room, sys::map_anonymous(bytes, sys::Protect::none));
    devices_.push_back(std::move(device));
  }
  return {};
}

std::uint64_t Memory::next_id() {
  const std::unique_lock lock(mutex_);
  return ++last_id_;
}

// First fit in the blocks that are shared already.
bool Memory::carve_locked(Device& device, std::uint64_t bytes, Piece& piece) {
  for (auto& [base, carved] : device.blocks) {
    if (!carved.shared) continue;
    std::uint64_t at = 0;
    for (const auto& [offset, used] : carved.used) {
      if (at + bytes <= offset) break;
      at = offset + used;
    }
    if (at + bytes > carved.length_bytes) continue;
    carved.used.emplace(at, bytes);
    piece.base = base + at;
    piece.block = carved.block;
    piece.block_offset = at;
    return true;
  }
  return false;
}

CUresult Memory::place_locked(Device& device, int index, std::uint64_t length_bytes, Sort sort, Piece& piece) {
  const std::uint64_t steps = sys::round_up(length_bytes, kCarve);
  const bool small = sort == Sort::plain && length_bytes < kCarvedBelow;
  if (small && carve_locked(device, steps, piece)) return CUDA_SUCCESS;

  Carved carved;
  carved.length_bytes = sys::round_up(length_bytes, kGranularity);
  carved.shared = small;
  const auto start = reinterpret_cast<std::uint64_t>(device.room.data());
  std::uint64_t at = sys::round_up(start, kGranularity);
  for (const auto& [base, other] : device.blocks) {
    if (at + carved.length_bytes <= base) break;
    at = base + other.length_bytes;
  }
  if (at + carved.length_bytes > start + device.room.size()) return CUDA_ERROR_OUT_OF_MEMORY;
  // Addresses in whole steps; bytes as many as were asked for, so that an export of the whole is the whole file.
  auto block = banks_[static_cast<std::size_t>(index)]->take(small ? carved.length_bytes : length_bytes);
  if (!block) return block.error().code == Code::limit ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
  carved.block = *block;
  carved.used.emplace(0, small ? steps : carved.length_bytes);
  piece.base = at;
  piece.block = std::move(*block);
  device.blocks.emplace(at, std::move(carved));
  return CUDA_SUCCESS;
}

void Memory::give_back_locked(const Range& range) {
  if (range.sort != Sort::plain && range.sort != Sort::pooled) return;
  auto& blocks = devices_[static_cast<std::size_t>(range.device)].blocks;
  const auto found = std::prev(blocks.upper_bound(range.base));
  found->second.used.erase(range.base - found->first);
  if (found->second.used.empty()) blocks.erase(found);
}

// Tells the kernel, and forgets the range again if that fails.
CUresult Memory::take_range(std::shared_ptr<Range> range, std::uint64_t& address) {
  for (Piece& piece : range->pieces) {
    if (announce(*range, piece)) continue;
    finish_free(range);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  address = range->base;
  return CUDA_SUCCESS;
}

CUresult Memory::allocate(int device, std::uint64_t length_bytes, Sort sort, Context* context, Pool* pool,
                          std::uint64_t& address) {
  if (length_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (length_bytes > bank(device).memory_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  auto range = std::make_shared<Range>();
  range->sort = sort;
  range->length_bytes = length_bytes;
  range->device = device;
  range->context = context;
  range->pool = pool;
  {
    const std::unique_lock lock(mutex_);
    Piece piece;
    if (const CUresult failed =
            place_locked(devices_[static_cast<std::size_t>(device)], device, length_bytes, sort, piece);
        failed != CUDA_SUCCESS)
      return failed;
    piece.length_bytes = length_bytes;
    range->base = piece.base;
    range->buffer_id = ++last_id_;
    piece.identity = range->buffer_id;
    range->pieces.push_back(std::move(piece));
    ranges_.emplace(range->base, range);
  }
  return take_range(std::move(range), address);
}

CUresult Memory::allocate_shared(Sort sort, int device, std::uint64_t length_bytes, Context* context, unsigned flags,
                                 std::uint64_t& address) {
  if (length_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (length_bytes > bank(device).memory_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  // Managed memory is the device's; memory of the host is not.
  static const std::shared_ptr<accel::Bank> of_host =
      accel::Bank::make("strait cuda host memory", std::uint64_t{1} << 46);
  auto block = (sort == Sort::managed ? banks_[static_cast<std::size_t>(device)] : of_host)->take(length_bytes);
  if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  auto room = sys::map_file((*block)->file(), 0, (*block)->length_bytes(), sys::Protect::read_write);
  if (!room) return CUDA_ERROR_OUT_OF_MEMORY;
  auto range = std::make_shared<Range>();
  range->sort = sort;
  range->base = reinterpret_cast<std::uint64_t>(room->data());
  range->length_bytes = length_bytes;
  range->device = device;
  range->context = context;
  range->host_flags = flags;
  range->room = std::move(*room);
  range->pieces.push_back({range->base, length_bytes, std::move(*block), 0, nullptr, 0, 0, 0});
  const std::unique_lock lock(mutex_);
  range->buffer_id = ++last_id_;
  address = range->base;
  ranges_.emplace(range->base, std::move(range));
  return CUDA_SUCCESS;
}

CUresult Memory::register_host(std::uint64_t address, std::uint64_t length_bytes, int device, Context* context,
                               unsigned flags) {
  if (address == 0 || length_bytes == 0 || length_bytes > UINT64_MAX - address - sys::page_bytes())
    return CUDA_ERROR_INVALID_VALUE;
  if (address_space_.look(address, length_bytes).kind != sys::RangeAccess::Kind::read_write)
    return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t first_page = address / sys::page_bytes() * sys::page_bytes();
  const std::uint64_t last_page = sys::round_up(address + length_bytes, sys::page_bytes());
  auto range = std::make_shared<Range>();
  range->sort = Sort::registered;
  range->base = address;
  range->length_bytes = length_bytes;
  range->device = device;
  range->context = context;
  range->host_flags = flags;
  const std::unique_lock lock(mutex_);
  // Whole pages are registered, once.
  auto after = ranges_.lower_bound(last_page);
  if (after != ranges_.begin()) {
    const Range& before = *std::prev(after)->second;
    if (sys::round_up(before.end(), sys::page_bytes()) > first_page)
      // Of memory that the driver allocated itself, driver 580 says no more than this.
      return before.sort == Sort::registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  range->buffer_id = ++last_id_;
  ranges_.emplace(address, std::move(range));
  return CUDA_SUCCESS;
}

CUresult Memory::import(std::shared_ptr<accel::Block> block, std::uint64_t block_offset, std::uint64_t length_bytes,
                        int device, Context* context, Pool* pool, std::uint64_t& address) {
  if (length_bytes == 0 || block_offset > block->length_bytes() || length_bytes > block->length_bytes() - block_offset)
    return CUDA_ERROR_INVALID_VALUE;
  auto room = sys::map_anonymous(block->length_bytes(), sys::Protect::none);
  if (!room) return CUDA_ERROR_MAP_FAILED;
  auto range = std::make_shared<Range>();
  range->sort = Sort::imported;
  range->base = reinterpret_cast<std::uint64_t>(room->data()) + block_offset;
  range->length_bytes = length_bytes;
  range->device = device;
  range->context = context;
  range->pool = pool;
  range->opens = 1;
  range->room = std::move(*room);
  {
    const std::unique_lock lock(mutex_);
    range->buffer_id = ++last_id_;
    range->pieces.push_back(
        {range->base, length_bytes, std::move(block), block_offset, nullptr, range->buffer_id, 0, 0});
    ranges_.emplace(range->base, range);
  }
  return take_range(std::move(range), address);
}

// The kernel is told with no lock held; until it has answered the addresses stay taken.
void Memory::finish_free(const std::shared_ptr<Range>& range) {
  for (Piece& piece : range->pieces) retract(piece);
  const std::unique_lock lock(mutex_);
  give_back_locked(*range);
  ranges_.erase(range->base);
}

CUresult Memory::begin_free(std::uint64_t address, std::initializer_list<Sort> sorts, std::shared_ptr<Range>& out) {
  const std::unique_lock lock(mutex_);
  const std::shared_ptr<Range> range = range_at(address);
  if (!range || std::ranges::find(sorts, range->sort) == sorts.end()) return CUDA_ERROR_INVALID_VALUE;
  if (range->sort == Sort::imported && --range->opens != 0) return CUDA_SUCCESS;
  range->dying = true;
  out = range;
  return CUDA_SUCCESS;
}

CUresult Memory::free(std::uint64_t address, std::initializer_list<Sort> sorts) {
  std::shared_ptr<Range> range;
  const CUresult answer = begin_free(address, sorts, range);
  if (range) finish_free(range);
  return answer;
}

void Memory::free_all_of(const Context& context) {
  std::vector<std::shared_ptr<Range>> dying;
  {
    const std::unique_lock lock(mutex_);
    for (const auto& [base, range] : ranges_) {
      if (range->context != &context || range->dying) continue;
      range->dying = true;
      dying.push_back(range);
    }
  }
  for (const auto& range : dying) finish_free(range);
}

Memory::Left Memory::left() const {
  Left left;
  const std::shared_lock lock(mutex_);
  for (const auto& [base, range] : ranges_) {
    if (range->sort == Sort::registered || range->sort == Sort::imported || range->pieces.empty()) continue;
    ++left.allocations;
    for (const Piece& piece : range->pieces) left.bytes += piece.length_bytes;
  }
  return left;
}

}  // namespace strait::soft::cuda
