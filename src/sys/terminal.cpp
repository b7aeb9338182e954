// SPDX-License-Identifier: Apache-2.0
// isatty and signal handlers.
#include "sys/terminal.hpp"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace strait::sys {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void note_interrupt(int) {
  raised.store(true, std::memory_order_relaxed);
}

}  // namespace

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

bool wants_colour(int fd) {
  const char* no_colour = ::getenv("NO_COLOR");
  const char* term = ::getenv("TERM");
  if (no_colour != nullptr && no_colour[0] != '\0') return false;
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return is_terminal(fd);
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second Ctrl-C is not up for discussion
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return raised.load(std::memory_order_relaxed);
}

}  // namespace strait::sys
