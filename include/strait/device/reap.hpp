// SPDX-License-Identifier: Apache-2.0
// Taking completions and messages of a queue: counts what named a counter, keeps the first failure.
#pragma once

#include <cstdint>

#include "strait/device/queue.hpp"
#include "strait/device/wait.hpp"

namespace strait::device {

// One pass takes so many at most, so that who reaps for others comes back to its own work.
inline constexpr unsigned kReapBatch = 32;

// Counts what ended: WQEs from .. to, of which only the last can be the one that failed.
template <Sharing S>
STRAIT_HD_INLINE void count_ended(const QueueState& state, std::uint64_t mask, std::uint64_t from, std::uint64_t to,
                                  bool failed) {
  if (state.counter_of == nullptr) return;
  for (std::uint64_t i = from; i < to; ++i) {
    const std::uint32_t counter = state.counter_of[i & mask];
    if (counter == 0 || counter > state.counters) continue;
    CounterWords& words = state.counter_words[counter - 1];
    std::uint64_t* const word = failed && i + 1 == to ? &words.failed : &words.succeeded;
    if constexpr (S == Sharing::one_thread)
      ++*word;
    else
      (void)fetch_add<kScope<S>>(word, 1);
  }
}

// Takes the completions that are there; how many. The caller is the only one at it. `ended(from, to, failed)` is told
// what each completes, `keep` the first failure, before that.
template <class FirstFailure, class Completed, class Rung, class Ended, class Keep>
STRAIT_HD_INLINE unsigned take_completions(CompletionRing& sends, FirstFailure&& failure, Completed&& completed,
                                           Rung&& rung, Ended&& ended, Keep&& keep) {
  unsigned taken = 0;
  for (; taken < kReapBatch; ++taken) {
    const Entry entry = next_entry(sends);
    if (entry.cqe == nullptr) break;
    ++sends.consumed;
    const std::uint64_t from = completed();
    const std::uint64_t start = widen(from, entry.wqe_counter);
    const bool failed = !entry.is_plain_success();
    if (failed && failure() == 0) {
      Completion completion{};
      (void)read_cqe(*entry.cqe, entry.op_own, completion);
      keep(pack({start, completion.syndrome, completion.vendor_syndrome}));
    }
    if (start >= rung()) continue;  // nothing in flight has this number
    ended(from, start + 1, failed);
  }
  return taken;
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
