// SPDX-License-Identifier: Apache-2.0
// EventThread: a thread that sleeps until one of several descriptors is readable.
//
// Make it the last member of its owner, so that the thread has ended before anything it uses does. In a forked child
// there is no such thread, and nothing is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "sys/event.hpp"
#include "sys/event_set.hpp"
#include "sys/fork.hpp"

namespace strait::sys {

class EventThread {
 public:
  // Called when a descriptor is readable. Returns in how many nanoseconds it wants to be called in any case; negative:
  // not before one is readable.
  using Body = std::function<std::int64_t()>;

  EventThread() = default;
  ~EventThread();
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

  // `first_ns`: as if a call had returned it.
  [[nodiscard]] Status start(Body body, std::int64_t first_ns = -1);
  // From any thread, once started. The descriptor stays open until it is removed or the thread has ended.
  [[nodiscard]] Status add(int fd) { return events_.add(fd); }
  void remove(int fd) { events_.remove(fd); }

 private:
  ForkMark mark_;
  Event stop_;
  EventSet events_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace strait::sys
