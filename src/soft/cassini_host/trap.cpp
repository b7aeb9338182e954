// SPDX-License-Identifier: Apache-2.0
// The handler runs at any time in any thread: it takes no lock and allocates nothing. Pages lie in a table of atomics,
// by their number.
#include "soft/cassini_host/trap.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "soft/host/store.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"
#include "sys/store_fault.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kEntries = 16384;  // power of two; at most half of them are used
constexpr std::uint64_t kLeft = 1;       // was used: a search goes on behind it
constexpr std::int64_t kTakenWithinNs = 200'000'000;

struct TrapEntry {
  std::atomic<std::uint64_t> page{0};  // of the program; 0 never used
  std::atomic<std::byte*> writable{nullptr};
};
std::array<TrapEntry, kEntries> trap_entries;
std::atomic<std::uint32_t> inside{0};  // handlers that look or store
std::mutex changing_traps;
std::size_t live_traps = 0;

std::size_t first_entry(std::uint64_t page) {
  return static_cast<std::size_t>(page / kPage * 0x9e3779b97f4a7c15ull >> 40) % kEntries;
}

TrapEntry* find_entry(std::uint64_t page) {
  std::size_t at = first_entry(page);
  for (std::size_t i = 0; i < kEntries; ++i, at = (at + 1) % kEntries) {
    const std::uint64_t seen = trap_entries[at].page.load(std::memory_order_acquire);
    if (seen == page) return &trap_entries[at];
    if (seen == 0) return nullptr;
  }
  return nullptr;
}

std::atomic_ref<std::uint64_t> word(std::byte* page, std::uint64_t offset) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page + offset));
}

// Until the device has taken what is there. It looks every millisecond at the least; if it is gone, nobody waits for
// it.
void wait_taken(std::byte* page, std::uint64_t offset, std::uint64_t at_rest) {
  if (word(page, offset).load(std::memory_order_acquire) == at_rest) return;
  const auto deadline = sys::Deadline::after_ns(kTakenWithinNs);
  for (std::uint32_t turn = 0; word(page, offset).load(std::memory_order_acquire) != at_rest; ++turn) {
    if (turn % 64 == 63 && deadline.passed()) return;
    sys::pause_turn(turn);
  }
}

bool on_doorbell(std::uint64_t address, sys::ProcessorState& state) {
  inside.fetch_add(1, std::memory_order_seq_cst);
  bool done = false;
  if (TrapEntry* const entry = find_entry(address / kPage * kPage)) {
    std::byte* const page = entry->writable.load(std::memory_order_acquire);
    std::uint8_t code[16];
    const std::size_t bytes = sys::read_instruction(state.at, code, sizeof code);
    const auto store = host::decode_store({code, bytes}, state);
    // A store that begins on the page before would have been told so.
    if (page != nullptr && store && store->address == address) {
      for (std::uint32_t i = 0; i < store->count; ++i) {
        const std::uint64_t at = address % kPage + i * store->width;
        if (at < kPage) store_doorbell(page, at, store->values[i]);
      }
      state.at += store->length;
      if (store->base >= 0) state.registers[store->base] = store->base_after;
      done = true;
    } else if (page != nullptr) {
      sys::say_in_handler(
          "strait: this store to a counter's doorbell cannot be decoded; a store of 8 bytes from a register can\n");
    }
  }
  inside.fetch_sub(1, std::memory_order_seq_cst);
  return done;
}

}  // namespace

void store_doorbell(std::byte* page, std::uint64_t offset, std::uint64_t value) {
  switch (offset) {
    case kAddSuccess:
      wait_taken(page, kAddFailure, 0);
      word(page, kAddSuccess).fetch_add(value, std::memory_order_seq_cst);
      return;
    case kAddFailure:
      wait_taken(page, kAddSuccess, 0);
      word(page, kAddFailure).fetch_add(value, std::memory_order_seq_cst);
      return;
    case kResetSuccess:
    case kResetFailure:
      wait_taken(page, kAddSuccess, 0);
      wait_taken(page, kAddFailure, 0);
      word(page, offset).store(0, std::memory_order_seq_cst);
      wait_taken(page, offset, kResetAtRest);
      return;
    default: return;  // the rest of the page is nothing
  }
}

Status add_doorbell(const void* shown, std::byte* page) {
  const auto number = reinterpret_cast<std::uint64_t>(shown);
  const std::lock_guard lock(changing_traps);
  if (live_traps >= kEntries / 2) return fail(Code::limit, "too many counters' doorbells are mapped");
  TrapEntry* entry = find_entry(number);
  if (entry == nullptr) {
    std::size_t at = first_entry(number);
    while (trap_entries[at].page.load(std::memory_order_relaxed) > kLeft) at = (at + 1) % kEntries;
    entry = &trap_entries[at];
  }
  entry->writable.store(page, std::memory_order_release);
  entry->page.store(number, std::memory_order_release);
  ++live_traps;
  sys::catch_store_faults(on_doorbell);
  return {};
}

std::byte* drop_doorbell(const void* shown) {
  const std::lock_guard lock(changing_traps);
  TrapEntry* const entry = find_entry(reinterpret_cast<std::uint64_t>(shown));
  if (entry == nullptr) return nullptr;
  std::byte* const page = entry->writable.exchange(nullptr, std::memory_order_acq_rel);
  entry->page.store(kLeft, std::memory_order_release);
  --live_traps;
  if (live_traps == 0) {
    // Nothing is searched for any more: the table is as new.
    for (TrapEntry& each : trap_entries) each.page.store(0, std::memory_order_relaxed);
  }
  for (std::uint32_t turn = 0; inside.load(std::memory_order_seq_cst) != 0; ++turn) sys::pause_turn(turn);
  return page;
}

}  // namespace strait::soft::cassini
