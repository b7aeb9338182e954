// SPDX-License-Identifier: Apache-2.0
// The slow side of waiting.
#include "node/wait.hpp"

namespace strait::node {

bool Patience::turn() {
  const std::int64_t now = sys::now_ns();
  lane_.polls.fetch_add(1, std::memory_order_relaxed);
  if (started_ns_ == 0) {
    // The first clock reading: the turns before it took about a microsecond, which no deadline notices.
    started_ns_ = looked_ns_ = now;
    const std::int64_t timeout = timeout_ns_ < 0 ? lane_.node->settings().deadline_ns : timeout_ns_;
    deadline_ns_ = timeout > INT64_MAX - now ? INT64_MAX : now + timeout;
  }
  if (now >= deadline_ns_) return false;
  if (now - started_ns_ < lane_.node->settings().spin_ns) return true;
  if (now - looked_ns_ >= kLookForPeerNs) {
    looked_ns_ = now;
    // The rendezvous connection ends with the peer's process, sooner than a NIC runs out of retries.
    if (!failed_queue_ && !peer_alive(lane_)) {
      failed_queue_ = true;
      lane_.core.queue().fail();
      return true;
    }
  }
  const rail::Nic& nic = lane_.core.queue().nic();
  if (!nic.arm()) return true;
  (void)sys::nap_on(nic.event_fd(), std::min(nap_ns_, deadline_ns_ - now));
  nap_ns_ = std::min(nap_ns_ * 2, kLongestNapNs);
  return true;
}

}  // namespace strait::node
