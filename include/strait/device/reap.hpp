// SPDX-License-Identifier: Apache-2.0
// Takes completions for a queue: frees blocks, counts what named a counter, keeps the first failure.
#pragma once

#include <cstdint>

#include "strait/device/queue.hpp"
#include "strait/device/wait.hpp"

namespace strait::device {

// What one owner keeps to itself while it holds a queue; where threads share, these lie in the QueueState.
struct OwnedQueue {
  SendRing send;
  CompletionRing sends;
  std::uint64_t failure;
  std::uint32_t* counter_of;
};

// Field by field: a copy of the structs would take their padding along, in registers.
STRAIT_HD_INLINE void take_over(const QueueState& state, OwnedQueue& own) {
  const Slots& slots = state.send.slots;
  own.send.blocks = state.send.blocks;
  own.send.record = state.send.record;
  own.send.doorbell = state.send.doorbell;
  own.send.qpn_shifted = state.send.qpn_shifted;
  own.send.last_control = state.send.last_control;
  own.send.reach = state.send.reach;
  own.send.slots.capacity = slots.capacity;
  own.send.slots.reserved = slots.reserved;
  own.send.slots.ready = slots.ready;
  own.send.slots.rung = slots.rung;
  own.send.slots.completed = slots.completed;
  own.sends.entries = state.sends.entries;
  own.sends.log_entries = state.sends.log_entries;
  own.sends.log_entry_bytes = state.sends.log_entry_bytes;
  own.sends.consumed = state.sends.consumed;
  own.failure = state.failure;
  own.counter_of = state.counter_of;
}
STRAIT_HD_INLINE void hand_back(const OwnedQueue& own, QueueState& state) {
  Slots& slots = state.send.slots;
  state.send.last_control = own.send.last_control;
  slots.reserved = own.send.slots.reserved;
  slots.ready = own.send.slots.ready;
  slots.rung = own.send.slots.rung;
  slots.completed = own.send.slots.completed;
  state.sends.consumed = own.sends.consumed;
  state.failure = own.failure;
}

// One pass takes so many at most, so that who reaps for others comes back to its own work.
inline constexpr unsigned kReapBatch = 32;

template <Sharing S>
STRAIT_HD_INLINE void count_ended(const QueueState& state, const SendRing& send, std::uint64_t from, std::uint64_t to,
                                  bool failed) {
  if (state.counter_of == nullptr) return;
  for (std::uint64_t i = from; i < to; ++i) {
    const std::uint32_t counter = state.counter_of[i & (send.slots.capacity - 1)];
    if (counter == 0 || counter > state.counters) continue;
    CounterWords& words = state.counter_words[counter - 1];
    // In order, so only the last WQE of a failed completion is the failed one.
    std::uint64_t* const word = failed && i + 1 == to ? &words.failed : &words.succeeded;
    if constexpr (S == Sharing::one_thread)
      ++*word;
    else
      (void)fetch_add<kScope<S>>(word, 1);
  }
}

// Takes what is there; how many. The caller is the only one at it.
template <Sharing S>
STRAIT_HD inline unsigned take_completions(const QueueState& state, SendRing& send, CompletionRing& sends,
                                           std::uint64_t& failure) {
  unsigned taken = 0;
  for (; taken < kReapBatch; ++taken) {
    const Entry entry = next_entry(sends);
    if (entry.cqe == nullptr) break;
    ++sends.consumed;
    const std::uint64_t completed = completed_of<S>(send.slots);
    const std::uint64_t start = widen(completed, entry.wqe_counter);
    const bool failed = !entry.is_plain_success();
    if (failed && failure == 0) {
      Completion completion{};
      (void)read_cqe(*entry.cqe, entry.op_own, completion);
      const std::uint64_t packed = pack({start, completion.syndrome, completion.vendor_syndrome});
      if constexpr (S == Sharing::one_thread)
        failure = packed;
      else
        store_release<kScope<S>>(&failure, packed);
    }
    if (start >= rung_of<S>(send.slots)) continue;  // nothing in flight has this number
    count_ended<S>(state, send, completed, start + 1, failed);
    raise_completed<S>(send.slots, start + 1);  // last: who sees it done sees failure and counters too
  }
  return taken;
}

// One pass on behalf of everybody; 0 also if somebody else is at it.
template <Sharing S>
STRAIT_HD inline unsigned reap(QueueState& state, OwnedQueue* own) {
  if constexpr (S == Sharing::one_thread) {
    return take_completions<S>(state, own->send, own->sends, own->failure);
  } else {
    std::uint64_t nobody = 0;
    if (!compare_exchange<kScope<S>>(&state.send_reaper, nobody, 1)) return 0;
    const unsigned taken = take_completions<S>(state, state.send, state.sends, state.failure);
    store_release<kScope<S>>(&state.send_reaper, 0);
    return taken;
  }
}

struct Received {
  Waited waited;
  bool has_imm;
  wire::mlx5::Syndrome syndrome;  // with Waited::error
  std::uint8_t vendor_syndrome;
  std::uint32_t bytes;
  wire::be32 imm;
  std::uint64_t index;  // of the receive that was used
};

// The next message, if there is one and nobody else is at it.
template <Sharing S>
STRAIT_HD inline bool take_message(QueueState& state, Received& out) {
  if constexpr (S != Sharing::one_thread) {
    std::uint64_t nobody = 0;
    if (!compare_exchange<kScope<S>>(&state.receive_reaper, nobody, 1)) return false;
  }
  Completion completion{};
  const Polled polled = poll(state.receives, completion);
  if (polled != Polled::empty) {
    out.index = take_receive<S>(state.receive, completion.wqe_counter).index;
    out.waited = polled == Polled::done ? Waited::ok : Waited::error;
    out.syndrome = completion.syndrome;
    out.vendor_syndrome = completion.vendor_syndrome;
    out.bytes = completion.byte_count;
    out.imm = completion.imm;
    out.has_imm = completion.opcode == wire::mlx5::CqeOpcode::responder_send_imm ||
                  completion.opcode == wire::mlx5::CqeOpcode::responder_write_imm;
  }
  if constexpr (S != Sharing::one_thread) store_release<kScope<S>>(&state.receive_reaper, 0);
  return polled != Polled::empty;
}

}  // namespace strait::device
