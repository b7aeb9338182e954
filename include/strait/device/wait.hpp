// SPDX-License-Identifier: Apache-2.0
// Waits, all with a deadline. They serve a completion ring that belongs to one send ring; whoever shares a completion
// ring among queues polls it and dispatches by qpn.
#pragma once

#include <cstdint>

#include "strait/device/clock.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/send_ring.hpp"

namespace strait::device {

enum class Waited : std::uint8_t {
  ok,
  timeout,  // the operation is still under way and still owns its memory
  error,    // `completion` says which WQE failed and why
  other,    // `completion` belongs to something else than this send ring; deal with it and wait again
};

enum class CompletionMode { normal, collapsed };

// One look at the completion ring on behalf of `send`. normal mode: the calling thread must be the ring's only poller.
template <Sharing S, CompletionMode M>
STRAIT_HD inline Polled reap(SendRing& send, CompletionRing& cq, Completion& completion, bool& other) {
  other = false;
  if constexpr (M == CompletionMode::collapsed) {
    return poll_collapsed<S>(send, cq, completion);
  } else {
    const Polled polled = poll(cq, completion);
    if (polled == Polled::empty) return polled;
    other = completion.qpn != qpn_of(send) || !completion.is_requester();
    // An error too ends its WQE: the blocks up to it are free, and the caller learns of it.
    if (!other) other = !complete_up_to<S>(send, completion.wqe_counter).known;
    return polled;
  }
}

// Polls until `enough()` holds.
template <Sharing S, CompletionMode M, class Enough>
STRAIT_HD inline Waited wait_until(SendRing& send, CompletionRing& cq, Deadline deadline, Completion& completion,
                                   Enough&& enough) {
  PacedDeadline paced{deadline};
  while (!enough()) {
    bool other = false;
    const Polled polled = reap<S, M>(send, cq, completion, other);
    if (other) return Waited::other;
    if (polled == Polled::error) return Waited::error;
    // Also while completions keep coming: they may be everybody's but ours.
    if (polled == Polled::empty ? paced.pause() : paced.passed()) return enough() ? Waited::ok : Waited::timeout;
  }
  return Waited::ok;
}

// Until the WQE that starts at `start` has completed. It must have been rung; it completes with the next signaled WQE.
template <Sharing S, CompletionMode M>
STRAIT_HD inline Waited wait_until_done(SendRing& send, CompletionRing& cq, std::uint64_t start, Deadline deadline,
                                        Completion& completion) {
  return wait_until<S, M>(send, cq, deadline, completion, [&] { return is_done<S>(send, start); });
}

// Until `blocks` could be posted; another poster may still be faster.
template <Sharing S, CompletionMode M>
STRAIT_HD inline Waited wait_for_space(SendRing& send, CompletionRing& cq, std::uint64_t blocks, Deadline deadline,
                                       Completion& completion) {
  return wait_until<S, M>(send, cq, deadline, completion, [&] { return free_blocks<S>(send) >= blocks; });
}

// The next completion, whosever it is.
STRAIT_HD inline Waited wait_for_completion(CompletionRing& cq, Deadline deadline, Completion& completion) {
  PacedDeadline paced{deadline};
  for (;;) {
    const Polled polled = poll(cq, completion);
    if (polled != Polled::empty) return polled == Polled::done ? Waited::ok : Waited::error;
    if (paced.pause()) return Waited::timeout;
  }
}

}  // namespace strait::device
