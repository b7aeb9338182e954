// SPDX-License-Identifier: Apache-2.0
// The handler runs at any time in any thread: it takes no lock and allocates nothing. Ranges and notes lie in fixed
// arrays of atomics.
#include "sys/guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

namespace strait::sys {
namespace {

constexpr std::size_t kRanges = 64;
constexpr std::size_t kNotes = 64;

struct GuardedRange {
  std::atomic<std::uint64_t> begin{0};  // 0: free. Of the pages
  std::atomic<std::uint64_t> end{0};
  std::atomic<std::uint64_t> address{0};  // of the whole
  std::atomic<std::uint64_t> length{0};
  std::atomic<std::uint32_t> tag{0};
};
struct Note {
  std::atomic<std::uint32_t> state{0};  // 0 free, 1 being written, 2 full
  GuardedRead read{};
};

std::array<GuardedRange, kRanges> ranges;
std::array<Note, kNotes> notes;
struct sigaction previous;

void write_down(const GuardedRead& read) {
  for (Note& note : notes) {
    std::uint32_t expected = 0;
    if (!note.state.compare_exchange_strong(expected, 1)) continue;
    note.read = read;
    note.state.store(2, std::memory_order_release);
    return;
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uint64_t>(info->si_addr);
  for (GuardedRange& range : ranges) {
    const std::uint64_t begin = range.begin.load(std::memory_order_acquire);
    const std::uint64_t end = range.end.load(std::memory_order_relaxed);
    if (begin == 0 || at < begin || at >= end) continue;
    const std::uint64_t address = range.address.load(std::memory_order_relaxed);
    write_down({address, range.length.load(std::memory_order_relaxed), at - address,
                range.tag.load(std::memory_order_relaxed)});
    ::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE);
    return;  // the access is made again, and works
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN && previous.sa_handler != nullptr) {
    previous.sa_handler(signal);
    return;
  }
  // Perhaps another thread has just let the page go: the second fault at this place is the program's own.
  static std::atomic<std::uint64_t> last{0};
  if (last.exchange(at) == at) ::signal(signal, SIG_DFL);
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

void guard_pages(std::byte* where, std::uint64_t length, std::uint32_t tag) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uint64_t>(where);
  const std::uint64_t begin = (address + page - 1) / page * page;
  const std::uint64_t end = (address + length) / page * page;
  if (begin >= end) return;
  for (GuardedRange& range : ranges) {
    if (range.begin.load(std::memory_order_relaxed) != 0) continue;
    range.end.store(end, std::memory_order_relaxed);
    range.address.store(address, std::memory_order_relaxed);
    range.length.store(length, std::memory_order_relaxed);
    range.tag.store(tag, std::memory_order_relaxed);
    range.begin.store(begin, std::memory_order_release);
    ::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_NONE);
    return;
  }
}

void unguard_pages(std::byte* where, std::uint64_t length) {
  const auto address = reinterpret_cast<std::uint64_t>(where);
  for (GuardedRange& range : ranges) {
    const std::uint64_t begin = range.begin.load(std::memory_order_relaxed);
    if (begin == 0 || range.address.load(std::memory_order_relaxed) != address ||
        range.length.load(std::memory_order_relaxed) != length)
      continue;
    ::mprotect(reinterpret_cast<void*>(begin), range.end.load(std::memory_order_relaxed) - begin,
               PROT_READ | PROT_WRITE);
    range.begin.store(0, std::memory_order_release);
    return;
  }
}

bool take_guarded_read(GuardedRead& out) {
  for (Note& note : notes) {
    if (note.state.load(std::memory_order_acquire) != 2) continue;
    out = note.read;
    note.state.store(0, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace strait::sys
