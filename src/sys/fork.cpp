// SPDX-License-Identifier: Apache-2.0
#include "sys/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace strait::sys {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<int> fds;
};

// Never destroyed: a ProcessFd may live in a static object of the application.
Table& table() {
  static Table* const one = new Table;
  return *one;
}

}  // namespace

namespace detail {

std::atomic<std::uint64_t> forks{1};

// The lock is held across fork(), so the child sees a whole table and the lock in a state it can release.
void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); },
                     [] {
                       Table& child = table();
                       for (const int fd : child.fds) ::close(fd);
                       child.fds.clear();
                       forks.fetch_add(1, std::memory_order_relaxed);
                       child.mutex.unlock();
                     });
  });
}

}  // namespace detail

ProcessFd::ProcessFd(Fd fd) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (!fd.valid()) return;
  all.fds.push_back(fd.get());
  fd_ = fd.release();
}

void ProcessFd::reset() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (mark_.in_child()) return;
  // Closed under the lock: after it the number may be somebody else's, and a fork would close that one in the child.
  std::erase(all.fds, fd);
  ::close(fd);
}

}  // namespace strait::sys
