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
  aborted,  // the host raised the abort word; as after a timeout
};

// What ends a wait that nothing else ends.
struct Limit {
  Deadline deadline;
  const std::uint32_t* abort = nullptr;  // a word the host may raise; null: none
};

enum class Turn : std::uint8_t {
  finished,
  idle,  // nothing happened: rest a little
  busy,  // something did: go on at once
};

// Every wait of this folder is this loop: turns until one is the last, the deadline passes or the host raises its word.
// Clock and word are looked at every 16th time and not the first, since either costs more than a turn and most waits
// are short.
template <class Body>
STRAIT_HD_INLINE Waited wait_bounded(const Limit& limit, Body&& turn) {
  std::uint32_t idle = 0;
  for (std::uint32_t turns = 0;; ++turns) {
    const Turn now = turn();
    if (now == Turn::finished) return Waited::ok;
    if (turns % 16 == 15) {
      const bool aborted = limit.abort != nullptr && peek(limit.abort) != 0;
      if (aborted || limit.deadline.passed()) {
        if (turn() == Turn::finished) return Waited::ok;
        return aborted ? Waited::aborted : Waited::timeout;
      }
    }
    if (now == Turn::busy) {
      idle = 0;
    } else if (++idle < kTurnsBeforeSleep) {
      relax();
    } else {
      sleep_a_little();
    }
  }
}

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
STRAIT_HD inline Waited wait_until(SendRing& send, CompletionRing& cq, const Limit& limit, Completion& completion,
                                   Enough&& enough) {
  Waited said = Waited::ok;
  const Waited waited = wait_bounded(limit, [&] {
    if (said != Waited::ok || enough()) return Turn::finished;
    bool other = false;
    const Polled polled = reap<S, M>(send, cq, completion, other);
    if (other)
      said = Waited::other;
    else if (polled == Polled::error)
      said = Waited::error;
    if (said != Waited::ok) return Turn::finished;
    return polled == Polled::empty ? Turn::idle : Turn::busy;
  });
  return waited == Waited::ok ? said : waited;
}

// These take an abort word too, as in Limit.
//
// Until the WQE that starts at `start` has completed. It must have been rung; it completes with the next signaled WQE.
template <Sharing S, CompletionMode M>
STRAIT_HD inline Waited wait_until_done(SendRing& send, CompletionRing& cq, std::uint64_t start, Deadline deadline,
                                        Completion& completion, const std::uint32_t* abort = nullptr) {
  return wait_until<S, M>(send, cq, {deadline, abort}, completion, [&] { return is_done<S>(send, start); });
}

// Until `blocks` could be posted; another poster may still be faster.
template <Sharing S, CompletionMode M>
STRAIT_HD inline Waited wait_for_space(SendRing& send, CompletionRing& cq, std::uint64_t blocks, Deadline deadline,
                                       Completion& completion, const std::uint32_t* abort = nullptr) {
  return wait_until<S, M>(send, cq, {deadline, abort}, completion, [&] { return free_blocks<S>(send) >= blocks; });
}

// The next completion, whosever it is.
STRAIT_HD inline Waited wait_for_completion(CompletionRing& cq, Deadline deadline, Completion& completion,
                                            const std::uint32_t* abort = nullptr) {
  Polled polled = Polled::empty;
  const Waited waited = wait_bounded({deadline, abort}, [&] {
    if (polled == Polled::empty) polled = poll(cq, completion);
    return polled == Polled::empty ? Turn::idle : Turn::finished;
  });
  return polled == Polled::error ? Waited::error : waited;
}

}  // namespace strait::device
