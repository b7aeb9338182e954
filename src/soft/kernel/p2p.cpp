// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/p2p.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace strait::soft::kernel {
namespace {

using State = P2pPageTable::State;

constexpr std::uint64_t p2p_round_down(std::uint64_t value) {
  return value / kP2pPageBytes * kP2pPageBytes;
}

// Memory takes whole pages of the GPU: what surrounds it up to the next one belongs to it.
bool in_pages_of(const DeviceMemory& memory, std::uint64_t first, std::uint64_t length_bytes) {
  return first >= p2p_round_down(memory.said().base) &&
         first + length_bytes <= p2p_round_down(memory.end() + kP2pPageBytes - 1);
}

}  // namespace

Segment P2pDmaMapping::segment(std::uint64_t address, std::uint64_t length_bytes) const {
  if (gone || address < backed_first || address - backed_first > bytes.size()) return {};
  const std::uint64_t skip = address - backed_first;
  return {bytes.data() + skip, std::min<std::uint64_t>(length_bytes, bytes.size() - skip)};
}

int P2p::take_pages(std::uint64_t token, std::uint64_t va, std::uint64_t length_bytes, P2pTable& out) {
  if (const int failed = faults_.on(Step::p2p_get)) return failed;
  if (length_bytes == 0 || va % kP2pPageBytes != 0 || length_bytes % kP2pPageBytes != 0) return -EINVAL;
  if (va + length_bytes < va) return -EINVAL;
  auto memory = token != 0 ? drivers_.find(token) : drivers_.find_overlap(va, va + length_bytes);
  if (!memory || !in_pages_of(*memory, va, length_bytes)) return -EINVAL;
  const strait_soft_driver_memory& said = memory->said();
  const bool nvidia = said.vendor == STRAIT_SOFT_VENDOR_CUDA || said.vendor == STRAIT_SOFT_VENDOR_SOFT;
  if (!nvidia || (said.flags & STRAIT_SOFT_P2P_CAPABLE) == 0) return -EINVAL;
  if (faults_.topology || faults_.no_p2p) return -kNotSupported524;
  if (!bar_.take(BarSpace::of(said.vendor, said.device), length_bytes, faults_.bar_bytes)) return -ENOMEM;
  auto made = std::make_shared<P2pPageTable>();
  made->first = va;
  made->length_bytes = length_bytes;
  for (std::uint64_t at = 0; at < length_bytes; at += kP2pPageBytes)
    made->pages.push_back((said.identity << 36) + (va + at - p2p_round_down(said.base)));
  made->memory = std::move(memory);
  out = std::move(made);
  return 0;
}

int P2p::get_pages(std::uint64_t token, std::uint32_t, std::uint64_t va, std::uint64_t length_bytes, P2pTable& out,
                   std::function<void()> free_callback) {
  if (!free_callback) return -EINVAL;
  P2pTable made;
  if (const int failed = take_pages(token, va, length_bytes, made)) return failed;
  made->free_callback = std::move(free_callback);
  // The callback may come before this returns: the caller's table must be in place by then.
  const P2pTable before = std::exchange(out, made);
  const std::uint64_t watch =
      made->memory->watch([this, made] { call_back(made); });  // put_pages or the free takes it back
  if (watch == 0) {
    out = before;
    give_bar_back(*made);
    return -EINVAL;  // freed between the look and the watch
  }
  {
    const std::lock_guard lock(mutex_);
    made->watch = watch;
  }
  counters_.get("p2p_get").add();
  return 0;
}

void P2p::call_back(const P2pTable& table) {
  {
    const std::lock_guard lock(mutex_);
    if (table->state != State::live) return;
    table->state = State::calling_back;
  }
  counters_.get("p2p_callback").add();
  // Taken out: what it holds may hold this table.
  const std::function<void()> callback = std::move(table->free_callback);
  callback();
  const std::lock_guard lock(mutex_);
  if (table->state == State::calling_back) {
    table->state = State::called_back;  // it forgot free_page_table
    counters_.get("p2p_forgotten").add();
  }
  give_bar_back(*table);
}

void P2p::provoke(const P2pTable& table) {
  std::uint64_t watch = 0;
  {
    const std::lock_guard lock(mutex_);
    if (table->persistent || table->state != State::live) return;
    watch = table->watch;
  }
  if (table->memory->unwatch(watch)) call_back(table);
}

int P2p::put_pages(std::uint64_t, std::uint32_t, std::uint64_t va, const P2pTable& table) {
  if (!table || table->persistent || va != table->first) return -EINVAL;
  std::function<void()> never_called;
  {
    const std::lock_guard lock(mutex_);
    // In its callback, or after it: the teardown is the driver's.
    if (table->state != State::live || !table->memory->unwatch(table->watch)) return -EINVAL;
    table->state = State::gone;
    never_called = std::move(table->free_callback);
  }
  give_bar_back(*table);
  counters_.get("p2p_put").add();
  return 0;
}

int P2p::dma_map_pages(const DmaDevice& device, const P2pTable& table, P2pMapping& out) {
  if (!table) return -EINVAL;
  if (const int failed = faults_.on(Step::p2p_map)) return failed;
  if (!device.peer_path) return -EIO;
  {
    const std::lock_guard lock(mutex_);
    if (table->state != State::live) return -EINVAL;
  }
  const DeviceMemory& memory = *table->memory;
  const std::uint64_t first = std::max(table->first, memory.said().base);
  const std::uint64_t end = std::min(table->first + table->length_bytes, memory.end());
  const std::uint64_t skip = memory.file_offset(first) % sys::page_bytes();
  auto bytes =
      sys::map_file(memory.file(), memory.file_offset(first) - skip, end - first + skip, sys::Protect::read_write);
  if (!bytes) return -ENOMEM;
  auto made = std::make_shared<P2pDmaMapping>();
  made->bytes = std::move(*bytes);
  made->backed_first = first - skip;
  const auto start = reinterpret_cast<std::uint64_t>(made->bytes.data());
  for (std::uint64_t at = 0; at < table->length_bytes; at += kP2pPageBytes)
    made->addresses.push_back(start + (table->first + at - made->backed_first));
  out = std::move(made);
  counters_.get("p2p_map").add();
  return 0;
}

int P2p::dma_unmap_pages(const P2pTable& table, const P2pMapping& mapping) {
  if (!table || !mapping) return -EINVAL;
  sys::Mapping last;
  const std::lock_guard lock(mutex_);
  if (table->state != State::live || mapping->gone) return -EINVAL;
  mapping->gone = true;
  last = std::move(mapping->bytes);
  counters_.get("p2p_unmap").add();
  return 0;
}

int P2p::free_page_table(const P2pTable& table) {
  if (!table) return -EINVAL;
  const std::lock_guard lock(mutex_);
  if (table->state != State::calling_back && table->state != State::called_back) return -EINVAL;
  table->state = State::gone;
  counters_.get("p2p_free_table").add();
  return 0;
}

int P2p::free_dma_mapping(const P2pMapping& mapping) {
  if (!mapping) return -EINVAL;
  sys::Mapping last;
  const std::lock_guard lock(mutex_);
  if (mapping->gone) return -EINVAL;
  mapping->gone = true;
  last = std::move(mapping->bytes);
  counters_.get("p2p_free_mapping").add();
  return 0;
}

int P2p::get_pages_persistent(std::uint64_t va, std::uint64_t length_bytes, P2pTable& out, std::uint32_t flags,
                              std::uint64_t token) {
  if ((flags & ~1u) != 0) return -EINVAL;
  P2pTable made;
  if (const int failed = take_pages(token, va, length_bytes, made)) return failed;
  made->persistent = true;
  out = std::move(made);
  counters_.get("p2p_get").add();
  return 0;
}

int P2p::put_pages_persistent(std::uint64_t va, const P2pTable& table, std::uint32_t flags) {
  if (!table || !table->persistent || va != table->first || (flags & ~1u) != 0) return -EINVAL;
  {
    const std::lock_guard lock(mutex_);
    if (table->state != State::live) return -EINVAL;
    table->state = State::gone;
  }
  give_bar_back(*table);
  counters_.get("p2p_put").add();
  return 0;
}

void P2p::give_bar_back(const P2pPageTable& table) {
  const strait_soft_driver_memory& said = table.memory->said();
  bar_.give_back(BarSpace::of(said.vendor, said.device), table.length_bytes);
}

}  // namespace strait::soft::kernel
