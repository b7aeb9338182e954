// SPDX-License-Identifier: Apache-2.0
// The handler runs at any time in any thread: it takes no lock and allocates nothing. Ranges and notes lie in fixed
// arrays of atomics.
#include "sys/guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

namespace strait::sys {
namespace {

constexpr std::size_t kRanges = 64;
constexpr std::size_t kNotes = 64;
constexpr std::uint32_t kLateFaults = 1000;

// A range that was let go keeps its numbers until the slot is needed again: a thread may have faulted just before, and
// its handler runs just after.
struct GuardedRange {
  std::atomic<bool> active{false};
  std::atomic<std::uint64_t> begin{0};  // of the pages; 0: never used
  std::atomic<std::uint64_t> end{0};
  std::atomic<std::uint64_t> address{0};  // of the whole
  std::atomic<std::uint64_t> length{0};
  std::atomic<std::uint64_t> tag{0};
  std::atomic<const void*> owner{nullptr};
  std::atomic<std::uint32_t> late{0};  // faults since it was let go
};
struct Note {
  std::atomic<std::uint32_t> state{0};  // 0 free, 1 being written or taken, 2 full
  const void* owner = nullptr;
  GuardedRead read{};
};

std::array<GuardedRange, kRanges> ranges;
std::array<Note, kNotes> notes;
std::atomic<std::uint32_t> in_use{0};  // ranges that are active; most of the time there is nothing to search
std::mutex changing;                   // who guards and lets go; never the handler
std::size_t next_slot = 0;             // slots are used in turn, so that a range let go is remembered long
struct sigaction previous;

void write_down(const void* owner, const GuardedRead& read) {
  for (Note& note : notes) {
    std::uint32_t expected = 0;
    if (!note.state.compare_exchange_strong(expected, 1)) continue;
    note.owner = owner;
    note.read = read;
    note.state.store(2, std::memory_order_release);
    return;
  }
}

bool open_pages(std::uint64_t begin, std::uint64_t end) {
  return ::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) == 0;
}

// True: the access may be made again, and will work.
bool was_ours(std::uint64_t at) {
  bool late = false;
  for (GuardedRange& range : ranges) {
    const bool active = range.active.load(std::memory_order_acquire);
    const std::uint64_t begin = range.begin.load(std::memory_order_acquire);
    const std::uint64_t end = range.end.load(std::memory_order_relaxed);
    if (begin == 0 || at < begin || at >= end) continue;
    if (!active) {
      // Let go between the fault and this. If it is the program's own mistake it comes again, and not without end.
      late = late || range.late.fetch_add(1, std::memory_order_relaxed) < kLateFaults;
      continue;
    }
    const std::uint64_t address = range.address.load(std::memory_order_relaxed);
    if (!open_pages(begin, end)) return false;  // unmapped under the NIC: the program's own mistake
    write_down(range.owner.load(std::memory_order_relaxed), {address, range.length.load(std::memory_order_relaxed),
                                                             at - address, range.tag.load(std::memory_order_relaxed)});
    return true;
  }
  return late;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool sent = info->si_code <= 0;  // by a process, not by an access
  const bool ours = !sent && was_ours(reinterpret_cast<std::uint64_t>(info->si_addr));
  errno = saved;
  if (ours) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler == SIG_IGN && sent) return;
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN && previous.sa_handler != nullptr) {
    previous.sa_handler(signal);
    return;
  }
  // As if we had never been here: the access is made again and ends the process; a signal that was sent is sent again.
  ::signal(signal, SIG_DFL);
  if (sent) ::raise(signal);
}

// The ranges stay with their owners, as after a touch.
void open_over(std::uint64_t address, std::uint64_t length, bool noted) {
  if (in_use.load(std::memory_order_relaxed) == 0) return;
  const std::scoped_lock lock(changing);
  for (const GuardedRange& range : ranges) {
    const std::uint64_t begin = range.begin.load(std::memory_order_relaxed);
    const std::uint64_t end = range.end.load(std::memory_order_relaxed);
    if (!range.active.load(std::memory_order_relaxed) || address >= end || begin >= address + length) continue;
    open_pages(begin, end);
    if (!noted) continue;
    const std::uint64_t whole = range.address.load(std::memory_order_relaxed);
    write_down(range.owner.load(std::memory_order_relaxed),
               {whole, range.length.load(std::memory_order_relaxed), std::max(address, begin) - whole,
                range.tag.load(std::memory_order_relaxed)});
  }
}

bool handler_in_place() {
  struct sigaction now {};
  return ::sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
}

}  // namespace

void catch_guarded_reads() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &previous);
  });
}

void guard_pages(const void* owner, std::byte* where, std::uint64_t length, std::uint64_t tag) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uint64_t>(where);
  const std::uint64_t begin = (address + page - 1) / page * page;
  const std::uint64_t end = (address + length) / page * page;
  if (begin >= end || !handler_in_place()) return;
  const std::scoped_lock lock(changing);
  for (std::size_t i = 0; i < kRanges; ++i) {
    GuardedRange& range = ranges[(next_slot + i) % kRanges];
    if (range.active.load(std::memory_order_relaxed)) continue;
    next_slot = (next_slot + i + 1) % kRanges;
    range.begin.store(0, std::memory_order_release);
    range.end.store(end, std::memory_order_relaxed);
    range.address.store(address, std::memory_order_relaxed);
    range.length.store(length, std::memory_order_relaxed);
    range.tag.store(tag, std::memory_order_relaxed);
    range.owner.store(owner, std::memory_order_relaxed);
    range.late.store(0, std::memory_order_relaxed);
    range.begin.store(begin, std::memory_order_release);
    range.active.store(true, std::memory_order_release);
    in_use.fetch_add(1, std::memory_order_relaxed);
    ::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_NONE);
    return;
  }
}

void unguard_pages(const void* owner, std::byte* where, std::uint64_t length) {
  const auto address = reinterpret_cast<std::uint64_t>(where);
  const std::scoped_lock lock(changing);
  for (GuardedRange& range : ranges) {
    if (!range.active.load(std::memory_order_relaxed) || range.owner.load(std::memory_order_relaxed) != owner ||
        range.address.load(std::memory_order_relaxed) != address ||
        range.length.load(std::memory_order_relaxed) != length)
      continue;
    open_pages(range.begin.load(std::memory_order_relaxed), range.end.load(std::memory_order_relaxed));
    range.active.store(false, std::memory_order_release);
    in_use.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void open_guarded_pages(const std::byte* where, std::uint64_t length) {
  open_over(reinterpret_cast<std::uint64_t>(where), length, false);
}

void touch_guarded_pages(const std::byte* where, std::uint64_t length) {
  open_over(reinterpret_cast<std::uint64_t>(where), length, true);
}

bool take_guarded_read(const void* owner, GuardedRead& out) {
  for (Note& note : notes) {
    std::uint32_t expected = 2;
    if (note.state.load(std::memory_order_relaxed) != 2 || !note.state.compare_exchange_strong(expected, 1)) continue;
    const bool mine = note.owner == owner;
    if (mine) out = note.read;
    note.state.store(mine ? 0 : 2, std::memory_order_release);
    if (mine) return true;
  }
  return false;
}

}  // namespace strait::sys
