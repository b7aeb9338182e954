// SPDX-License-Identifier: Apache-2.0
// Links between all pairs of devices, also of different processes: what is at their ends, and what went over them.
#include "soft/gaudi/driver.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"

namespace strait::soft::gaudi {
namespace {

constexpr std::int64_t kLinkPatience = 10'000'000'000;

}  // namespace

void Driver::show_mapped(std::uint32_t slot, std::uint32_t segment, std::uint64_t base, std::uint64_t length_bytes) {
  LinkWords::Mapped& mapped = view_.links().mapped[slot][segment];
  const std::uint64_t version = mapped.version.load() | 1;  // odd already: an owner died while he wrote
  mapped.version.store(version);
  mapped.base.store(base);
  mapped.length_bytes.store(length_bytes);
  mapped.version.store(version + 1);
}

void Driver::show_nothing(std::uint32_t slot) {
  for (std::uint32_t segment = 0; segment < kSegments; ++segment) show_mapped(slot, segment, 0, 0);
}

bool Driver::reach_far(std::uint64_t address, std::uint64_t length_bytes, FarBytes& out) {
  if (address < kDeviceSpace || length_bytes == 0) return false;
  const std::uint64_t number = (address - kDeviceSpace) / kDeviceStride;
  const std::uint64_t segment = (address - kDeviceSpace) % kDeviceStride / kSegmentStride;
  if (number >= devices() || segment >= kSegments) return false;
  const auto slot = static_cast<std::uint32_t>(number);
  const LinkWords::Mapped& mapped = view_.links().mapped[slot][segment];
  const std::uint64_t version = mapped.version.load();
  const std::uint64_t from = address - mapped.base.load(), whole = mapped.length_bytes.load();
  if (version % 2 != 0 || from >= whole || length_bytes > whole - from || whole > view_.segment_bytes()) return false;

  const std::lock_guard lock(mutex_);
  if (contexts_.contains(slot)) return false;  // ours: reach() knows
  auto files = view_.device(slot);
  // An owner who died has left his words behind.
  if (!files || !sys::is_held_elsewhere(files->compute.get())) return false;
  out.held = std::move(files->hbm[segment]);
  if (!sys::hold_file_before(out.held.get(), sys::Deadline::after_ns(kLinkPatience))) return false;
  if (mapped.version.load() != version) return false;  // it went while we took hold
  const std::uint64_t first = from / sys::page_bytes() * sys::page_bytes();
  auto window = sys::map_file(out.held.get(), first, sys::round_up(from + length_bytes - first, sys::page_bytes()),
                              sys::Protect::read_write);
  if (!window) return false;
  out.at = window->data() + (from - first);
  out.window = std::move(*window);
  out.slot = slot;
  return true;
}

void Driver::count_link(std::uint32_t from, std::uint32_t to, std::uint64_t length_bytes) {
  LinkWords::Pair& pair = view_.links().pairs[from][to];
  pair.bytes.fetch_add(length_bytes);
  pair.transfers.fetch_add(1);
  counts_.link_bytes.add(length_bytes);
}

}  // namespace strait::soft::gaudi
