// SPDX-License-Identifier: Apache-2.0
// The functions that stand behind ours: the C library's, or another preloaded library's.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace strait::preload {

template <std::size_t n>
struct Name {
  char text[n]{};
  constexpr Name(const char (&given)[n]) {  // NOLINT: implicit on purpose
    for (std::size_t i = 0; i < n; ++i) text[i] = given[i];
  }
};

template <Name name, class Function>
inline constinit std::atomic<Function*> kept{nullptr};

// next<"open", decltype(::open)>(). Looked up once; null where the C library is too old to have it. Cancellation points
// stay what they are, which plain system calls would not.
template <Name name, class Function>
Function* next() {
  Function* found = kept<name, Function>.load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name.text));
  kept<name, Function>.store(found, std::memory_order_relaxed);
  return found;
}
#define STRAIT_NEXT(function) (strait::preload::next<#function, decltype(::function)>())

// A system call that leaves errno alone: its result, or -errno.
template <class... Arguments>
long kernel(long number, Arguments... arguments) {
  const int before = errno;
  const long result = ::syscall(number, arguments...);
  const long answer = result == -1 ? -errno : result;
  errno = before;
  return answer;
}

// The other way round: as a function of the C library answers.
inline long answer(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace strait::preload
