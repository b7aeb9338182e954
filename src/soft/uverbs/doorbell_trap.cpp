// SPDX-License-Identifier: Apache-2.0
// The handler may run in any thread, but only where the program stores to a doorbell: not within an allocation and not
// with a lock of ours. So it may do what a hooked call does, unless it is on a small stack.
#include "soft/uverbs/doorbell_trap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "soft/host/store.hpp"
#include "soft/uverbs/pages.hpp"
#include "sys/file_mappings.hpp"
#include "sys/mapping.hpp"
#include "sys/pause.hpp"
#include "sys/store_fault.hpp"

namespace strait::soft::uverbs {
namespace {

// Two registers of a page are of completion queues and event queues; those of queue pairs begin behind.
constexpr std::uint64_t kFirstSendRegister = 0x800;

struct TrappedPage {
  std::atomic<std::uint64_t> at{0};  // 0: a free entry
  std::atomic<Progress*> progress{nullptr};
  const void* owner = nullptr;  // under g_changing_pages
};
// A program has one or a few pages per context; those beyond this are not trapped.
std::array<TrappedPage, 512> g_pages;
std::atomic<std::size_t> g_used_pages{0};  // none is used behind
std::atomic<std::uint32_t> g_handlers{0};  // that look or ring
std::mutex g_changing_pages;
thread_local int t_rings_itself = 0;

Progress* owner_of(std::uint64_t page) {
  const std::size_t used = g_used_pages.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    if (g_pages[i].at.load(std::memory_order_acquire) == page) return g_pages[i].progress.load();
  }
  return nullptr;
}

void ring(Progress& progress, std::uint64_t offset, std::uint64_t stored) {
  if (progress.in_child() || t_rings_itself != 0) return;
  progress.count_trapped();
  // Who arms a completion queue is going to sleep.
  if (offset < kFirstSendRegister || sys::on_alternate_stack()) return progress.wake();
  progress.rang(queue_in_doorbell(stored));
}

bool on_doorbell_store(std::uint64_t address, sys::ProcessorState& state) {
  const std::uint64_t page_size = sys::page_bytes();
  const std::uint64_t page = address / page_size * page_size;
  g_handlers.fetch_add(1, std::memory_order_seq_cst);
  Progress* const progress = owner_of(page);
  if (progress != nullptr) {
    std::uint8_t code[16];
    const std::size_t bytes = sys::read_instruction(state.at, code, sizeof code);
    if (const auto store = host::decode_store({code, bytes}, state); store && store->address == address) {
      state.at += store->length;
      if (store->base >= 0) state.registers[store->base] = store->base_after;
      ring(*progress, address - page, store->width == 8 ? store->values[0] : 0);
    } else if (const auto length = host::wide_store({code, bytes})) {
      state.at += *length;
      ring(*progress, address - page, 0);
    } else {
      // The program goes on as it would without the trap.
      sys::say_in_handler("strait: a store to a doorbell cannot be decoded; its page is not trapped any more\n");
      (void)sys::set_writable(page, page_size, true);
      progress->wake();
    }
  }
  g_handlers.fetch_sub(1, std::memory_order_seq_cst);
  return progress != nullptr;
}

bool holds_doorbells(const sys::FileMapping& mapping) {
  const std::uint64_t first = mapping.offset / sys::page_bytes();
  // Those that are shared out by number, in all kinds of memory, and those that were asked for one by one.
  return first < pages::kClock || (first >= pages::kFirstDoorbell && first < pages::kFirstDoorbell + pages::kDoorbells);
}

bool is_mapped(const std::vector<sys::FileMapping>& mappings, std::uint64_t page) {
  return std::ranges::any_of(mappings, [&](const sys::FileMapping& mapping) {
    return page >= mapping.address && page - mapping.address < mapping.length_bytes;
  });
}

// Free or this page's. Null: the table is full.
TrappedPage* entry_for(std::uint64_t page) {
  TrappedPage* free = nullptr;
  for (TrappedPage& each : g_pages) {
    const std::uint64_t at = each.at.load(std::memory_order_relaxed);
    if (at == page) return &each;
    if (at == 0 && free == nullptr) free = &each;
  }
  return free;
}

void forget(TrappedPage& entry) {
  entry.at.store(0, std::memory_order_seq_cst);
  entry.progress.store(nullptr, std::memory_order_seq_cst);
  entry.owner = nullptr;
}

void await_handlers() {
  for (std::uint32_t turn = 0; g_handlers.load(std::memory_order_seq_cst) != 0; ++turn) sys::pause_turn(turn);
}

}  // namespace

void trap_doorbells(int file, Progress& progress, const void* owner) {
  const std::uint64_t page_size = sys::page_bytes();
  const std::scoped_lock lock(g_changing_pages);
  const auto mappings = sys::mappings_of(file);
  for (TrappedPage& each : g_pages) {
    const std::uint64_t at = each.at.load(std::memory_order_relaxed);
    if (at == 0 || each.owner != owner) continue;
    if (!is_mapped(mappings, at)) forget(each);
  }
  for (const sys::FileMapping& mapping : mappings) {
    if (!mapping.writable || !holds_doorbells(mapping)) continue;
    for (std::uint64_t page = mapping.address; page < mapping.address + mapping.length_bytes; page += page_size) {
      TrappedPage* const entry = entry_for(page);
      if (entry == nullptr) return;
      entry->owner = owner;
      entry->progress.store(&progress, std::memory_order_release);
      entry->at.store(page, std::memory_order_release);
      const auto behind = static_cast<std::size_t>(entry - g_pages.data()) + 1;
      if (behind > g_used_pages.load(std::memory_order_relaxed)) g_used_pages.store(behind, std::memory_order_release);
      sys::catch_store_faults(on_doorbell_store);
      (void)sys::set_writable(page, page_size, false);
    }
  }
}

void release_doorbells(int file, const void* owner) {
  const std::scoped_lock lock(g_changing_pages);
  std::vector<std::uint64_t> released;
  for (TrappedPage& each : g_pages) {
    const std::uint64_t at = each.at.load(std::memory_order_relaxed);
    if (each.owner != owner || at == 0) continue;
    released.push_back(at);
  }
  if (released.empty()) return;
  const auto mappings = sys::mappings_of(file);
  for (const std::uint64_t page : released) {
    if (is_mapped(mappings, page)) (void)sys::set_writable(page, sys::page_bytes(), true);
  }
  for (TrappedPage& each : g_pages) {
    if (each.owner == owner) forget(each);
  }
  await_handlers();
}

std::uint32_t queue_in_doorbell(std::uint64_t stored) {
  // As it lies in memory, little-endian machines being all there are here: bytes 4 to 6 are the number, big-endian.
  return static_cast<std::uint32_t>(stored >> 32 & 0xff) << 16 | static_cast<std::uint32_t>(stored >> 40 & 0xff) << 8 |
         static_cast<std::uint32_t>(stored >> 48 & 0xff);
}

void RingsItself::change(int by) {
  t_rings_itself += by;
}

}  // namespace strait::soft::uverbs
