// SPDX-License-Identifier: Apache-2.0
// One handler per process, installed with the first mark.
#include "sys/fork_mark.hpp"

#include <pthread.h>

#include <mutex>

namespace strait::sys {

namespace detail {
std::atomic<std::uint32_t> forks{1};
}

ForkMark::ForkMark() {
  static std::once_flag once;
  std::call_once(
      once, [] { ::pthread_atfork(nullptr, nullptr, [] { detail::forks.fetch_add(1, std::memory_order_relaxed); }); });
  made_at_ = detail::forks.load(std::memory_order_relaxed);
}

}  // namespace strait::sys
