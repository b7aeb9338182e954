// SPDX-License-Identifier: Apache-2.0
#include "sys/event_thread.hpp"

#include <utility>

#include "sys/quiet_thread.hpp"

namespace strait::sys {

Status EventThread::start(Body body, std::int64_t first_ns) {
  STRAIT_TRY(stop_, Event::make());
  STRAIT_TRY(events_, EventSet::make());
  STRAIT_CHECK(events_.add(stop_.fd()));
  STRAIT_TRY(thread_, start_quiet_thread([this, body = std::move(body), limit_ns = first_ns]() mutable {
               for (;;) {
                 (void)events_.wait_ns(limit_ns);
                 if (stopping_.load()) return;
                 limit_ns = body();
               }
             }));
  return {};
}

EventThread::~EventThread() {
  if (!thread_.joinable()) return;
  if (mark_.in_child()) {
    thread_.detach();
    return;
  }
  stopping_.store(true);
  stop_.raise();
  thread_.join();
}

}  // namespace strait::sys
