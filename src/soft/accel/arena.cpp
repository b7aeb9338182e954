// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/arena.hpp"

#include <algorithm>
#include <mutex>

#include "sys/aligned.hpp"
#include "sys/peer_file.hpp"

namespace strait::soft::accel {
namespace {

// Room for alignment, guard pages and holes: addresses cost nothing.
constexpr std::uint64_t kRoomFactor = 4;

// Of the whole process, so that two accelerators never hand out the same number either.
std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t alignment_for(std::uint64_t file_bytes) {
  return file_bytes >= sys::kHugePageBytes ? sys::kHugePageBytes : sys::page_bytes();
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::reserve(std::string name, std::uint64_t memory_bytes, const sys::Calls& calls) {
  const std::size_t room_bytes =
      sys::round_up(memory_bytes * kRoomFactor, sys::kHugePageBytes) + 2 * sys::kHugePageBytes;
  STRAIT_TRY(sys::Mapping room, sys::map_anonymous(room_bytes, sys::Protect::none, nullptr, calls));
  return std::unique_ptr<Arena>(new Arena(std::move(name), memory_bytes, std::move(room), calls));
}

bool Arena::touches(std::uint64_t address, std::uint64_t length_bytes) const {
  return address < start() + room_.size() && start() - std::min(start(), address) < length_bytes;
}

const Arena::Entry* Arena::find_locked(std::uint64_t address) const {
  auto after = std::upper_bound(entries_.begin(), entries_.end(), address,
                                [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.base; });
  if (after == entries_.begin()) return nullptr;
  const Entry& entry = *std::prev(after);
  return address - entry.base < entry.length_bytes ? &entry : nullptr;
}

bool Arena::find(std::uint64_t address, Found& out) const {
  if (!contains(address)) return false;
  const std::shared_lock lock(mutex_);
  const Entry* entry = find_locked(address);
  if (entry == nullptr) return false;
  out = {entry->base, entry->length_bytes, entry->identity};
  return true;
}

std::shared_ptr<Allocation> Arena::hold(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const Entry* entry = find_locked(address);
  return entry == nullptr ? nullptr : entry->allocation;
}

Status Arena::take_from_pool(std::uint64_t file_bytes) {
  std::uint64_t used = pool_->used_bytes.load(std::memory_order_relaxed);
  do {
    if (file_bytes > memory_bytes_ - used) {
      return fail(Code::limit, "{} has {} of its {} bytes left, {} were asked for", name_, memory_bytes_ - used,
                  memory_bytes_, file_bytes);
    }
  } while (!pool_->used_bytes.compare_exchange_weak(used, used + file_bytes, std::memory_order_relaxed));
  return {};
}

// First fit, with at least one page that belongs to nobody behind every allocation.
Result<std::uint64_t> Arena::place_locked(std::uint64_t file_bytes) const {
  const std::uint64_t align = alignment_for(file_bytes);
  const std::uint64_t page = sys::page_bytes();
  std::uint64_t at = sys::round_up(start(), align);
  for (const Entry& entry : entries_) {
    if (at + file_bytes + page <= entry.base) return at;
    at = std::max(at, sys::round_up(entry.base + sys::round_up(entry.length_bytes, page) + page, align));
  }
  if (at + file_bytes + page <= start() + room_.size()) return at;
  return fail(Code::limit, "the address space of {} is too fragmented for {} bytes", name_, file_bytes);
}

Result<std::uint64_t> Arena::allocate(std::uint64_t length_bytes) {
  if (length_bytes == 0) return fail(Code::invalid, "{} cannot allocate 0 bytes", name_);
  // Checked before rounding, which could wrap around.
  if (length_bytes > memory_bytes_) STRAIT_CHECK(take_from_pool(length_bytes));
  const std::uint64_t file_bytes = sys::round_up(length_bytes, sys::page_bytes());
  auto allocation = std::make_shared<Allocation>();
  STRAIT_CHECK(take_from_pool(file_bytes));
  auto made = [&]() -> Status {
    STRAIT_TRY(allocation->memfd, sys::make_grantable_memfd("strait soft device memory", file_bytes, *calls_));
    STRAIT_TRY(allocation->alias,
               sys::map_file_aligned(allocation->memfd.get(), file_bytes, sys::Protect::read_write, *calls_));
    return {};
  }();
  if (!made) {
    pool_->used_bytes.fetch_sub(file_bytes, std::memory_order_relaxed);
    return std::move(made).error();
  }
  allocation->pool = pool_;  // from here on its destructor gives the bytes back
  allocation->length_bytes = length_bytes;
  allocation->identity = next_identity();

  const std::unique_lock lock(mutex_);
  STRAIT_TRY(allocation->base, place_locked(file_bytes));
  const auto where = std::upper_bound(entries_.begin(), entries_.end(), allocation->base,
                                      [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.base; });
  const std::uint64_t base = allocation->base;
  entries_.insert(where, Entry{base, length_bytes, allocation->identity, std::move(allocation)});
  return base;
}

Status Arena::free(std::uint64_t address) {
  std::shared_ptr<Allocation> last;  // destroyed after the lock: unmapping is slow
  const std::unique_lock lock(mutex_);
  const Entry* entry = find_locked(address);
  if (entry == nullptr) {
    return fail(Code::invalid, "{:#x} is not a live allocation of {}: it was freed already, or never allocated",
                address, name_);
  }
  if (entry->base != address) {
    return fail(Code::invalid, "{:#x} is inside the allocation at {:#x} of {}: free takes the first byte", address,
                entry->base, name_);
  }
  const auto where = entries_.begin() + (entry - entries_.data());
  last = std::move(where->allocation);
  entries_.erase(where);
  return {};
}

std::uint64_t Arena::live() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

std::vector<Found> Arena::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<Found> out;
  for (const Entry& entry : entries_) out.push_back({entry.base, entry.length_bytes, entry.identity});
  return out;
}

}  // namespace strait::soft::accel
