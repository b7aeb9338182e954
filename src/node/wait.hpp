// SPDX-License-Identifier: Apache-2.0
// Waiting on a lane: poll, drive the engine, look at the clock now and then, and after a while sleep until the NIC has
// something. Bounded by the deadline, whatever the peer does.
#pragma once

#include <algorithm>

#include "node/core.hpp"
#include "node/lane.hpp"
#include "strait/device/order.hpp"
#include "sys/event_set.hpp"

namespace strait::node {

enum class Waited : std::uint8_t { done, timeout };

inline constexpr std::uint32_t kTurnsPerClock = 64;
inline constexpr std::int64_t kLongestNapNs = 1'000'000;
inline constexpr std::int64_t kLookForPeerNs = 20'000'000;

// The part that does not run when the answer comes quickly. Returns false at the deadline.
class Patience {
 public:
  Patience(strait_lane& lane, std::int64_t timeout_ns) : lane_(lane), timeout_ns_(timeout_ns) {}
  [[nodiscard]] bool turn();

 private:
  strait_lane& lane_;
  std::int64_t timeout_ns_;
  std::int64_t started_ns_ = 0;
  std::int64_t deadline_ns_ = 0;
  std::int64_t looked_ns_ = 0;
  std::int64_t nap_ns_ = 20'000;
  bool failed_queue_ = false;
};

// `done` is called with the lane in use (locked if it is shared) and says whether the wait is over.
template <class Done>
Waited wait_on(strait_lane& lane, std::int64_t timeout_ns, Done done) {
  const rail::Queue& queue = lane.core.queue();
  Patience patience(lane, timeout_ns);
  for (std::uint32_t turn = 1;; ++turn) {
    {
      const Using use(lane);
      lane.core.reap();
      if (done()) {
        lane.polls.store(lane.polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return Waited::done;
      }
    }
    queue.drive();
    lane.sleeper->rouse();
    if (turn % kTurnsPerClock != 0) [[likely]]
      continue;
    if (!patience.turn()) {
      const Using use(lane);
      lane.core.reap();
      return done() ? Waited::done : Waited::timeout;
    }
  }
}

}  // namespace strait::node
