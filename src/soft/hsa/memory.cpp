// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/memory.hpp"

#include <algorithm>

namespace strait::soft::hsa {

Result<std::shared_ptr<Pages>> Pages::of_file(sys::Fd file, std::uint64_t length_bytes) {
  STRAIT_TRY(sys::Mapping alias, sys::map_file(file.get(), 0, length_bytes, sys::Protect::read_write));
  return std::make_shared<Pages>(std::move(file), std::move(alias));
}

Range* Ranges::at(std::uint64_t base) {
  const auto found = ranges_.find(base);
  return found == ranges_.end() ? nullptr : &found->second;
}

Range* Ranges::around(std::uint64_t address) {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  --after;
  return after->second.holds(address) ? &after->second : nullptr;
}

bool Ranges::overlaps(std::uint64_t base, std::uint64_t length_bytes) const {
  const auto after = ranges_.lower_bound(base);
  if (after != ranges_.end() && after->first - base < length_bytes) return true;
  return after != ranges_.begin() && std::prev(after)->second.holds(base);
}

Range& Ranges::add(Range range) {
  const std::uint64_t base = range.base;
  return ranges_.insert_or_assign(base, std::move(range)).first->second;
}

Range Ranges::take(std::uint64_t base) {
  auto node = ranges_.extract(base);
  return node ? std::move(node.mapped()) : Range{};
}

Result<Blocks::Piece> Blocks::new_block(std::size_t pages) {
  STRAIT_TRY(const std::uint64_t base, arena_->allocate(kBlockBytes));
  Block block;
  block.pages = std::make_shared<Pages>(arena_->hold(base));
  block.taken.resize(kBlockBytes / sys::page_bytes());
  std::fill_n(block.taken.begin(), 1 + pages, true);
  block.pieces = 1;
  Piece piece{block.pages, base + sys::page_bytes(), sys::page_bytes()};
  blocks_.emplace(base, std::move(block));
  return piece;
}

Result<Blocks::Piece> Blocks::allocate(std::uint64_t length_bytes) {
  const std::size_t wanted = length_bytes / sys::page_bytes();
  for (auto& [base, block] : blocks_) {
    const auto free_run =
        std::search_n(block.taken.begin(), block.taken.end(), static_cast<std::ptrdiff_t>(wanted), false);
    if (free_run == block.taken.end()) continue;
    std::fill_n(free_run, wanted, true);
    ++block.pieces;
    const std::uint64_t offset = static_cast<std::uint64_t>(free_run - block.taken.begin()) * sys::page_bytes();
    return Piece{block.pages, base + offset, offset};
  }
  return new_block(wanted);
}

void Blocks::free(std::uint64_t base, std::uint64_t length_bytes) {
  auto after = blocks_.upper_bound(base);
  if (after == blocks_.begin()) return;
  --after;
  Block& block = after->second;
  const std::size_t first = (base - after->first) / sys::page_bytes();
  std::fill_n(block.taken.begin() + static_cast<std::ptrdiff_t>(first), length_bytes / sys::page_bytes(), false);
  if (--block.pieces != 0) return;
  const std::uint64_t gone = after->first;
  blocks_.erase(after);
  (void)arena_->free(gone);
}

}  // namespace strait::soft::hsa
