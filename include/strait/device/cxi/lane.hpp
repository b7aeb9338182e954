// SPDX-License-Identifier: Apache-2.0
// Lane: what a thread, a warp or a block holds while it works on a CXI queue. One source for GPU kernels and CPU
// threads.
//
//   __global__ void tell(cxi::Queue queue, cxi::LocalMemory from, cxi::RemoteMemory to) {
//     cxi::Lane<Sharing::one_thread> lane(queue);
//     const cxi::Pending put = lane.put_signal(from, 0, to, 0, 4096, 0, 1);
//     if (lane.wait(put, Deadline::after_ns(1'000'000)).waited != Waited::ok) ...
//   }
//
// Every call is made by all members of the group with the same arguments (but for put_each); rank 0 acts, and all get
// the answer. Stores that members made before a put are part of what it sends. Posting never waits, unless How says for
// how long; each wait has a deadline and also ends when the host raises the queue's abort word. A queue that was made
// for one_thread has one Lane at a time, which keeps its rings in registers and gives them back when it goes.
//
// Two ways for a peer to learn that data came. A: its host appended the memory with a counter, and the peer waits for
// that (wait_counter). B: put_signal() adds to a word of the peer behind the data, and the peer polls it (wait_signal).
#pragma once

#include <cstdint>

#include "strait/device/cxi/command.hpp"
#include "strait/device/cxi/core.hpp"
#include "strait/device/cxi/outcome.hpp"
#include "strait/device/cxi/queue.hpp"
#include "strait/device/group.hpp"

namespace strait::device::cxi {

template <Sharing S, class G = Thread>
class Lane {
 public:
  STRAIT_HD_INLINE explicit Lane(const Queue& queue, G group = G{}) : state_(queue.state), group_(group) {
    usable_ = fits(queue) && queue.sharing == S && state_ != nullptr && fits(*state_);
    if (!usable_) return;
    core_.open(*state_);
    counters_ = state_->counters;
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  STRAIT_HD_INLINE ~Lane() { give_back(); }

  // False: the queue was made for another kind of sharing or by another version. Every call then answers invalid.
  STRAIT_HD_INLINE bool usable() const { return usable_; }

  // ---- Operations ---------------------------------------------------------------------------------------------------

  STRAIT_HD_INLINE Pending put(const LocalMemory& from, std::uint64_t from_offset, const RemoteMemory& to,
                               std::uint64_t to_offset, std::uint64_t bytes, const How& how = {}) {
    return dma(wire::cxi::DmaOp::put, wire::cxi::kEventCtAck, from, from_offset, to, to_offset, bytes, how);
  }
  STRAIT_HD_INLINE Pending get(const LocalMemory& into, std::uint64_t into_offset, const RemoteMemory& from,
                               std::uint64_t from_offset, std::uint64_t bytes, const How& how = {}) {
    return dma(wire::cxi::DmaOp::get, wire::cxi::kEventCtReply, into, into_offset, from, from_offset, bytes, how);
  }

  // Up to 8 bytes that travel in the ring itself: no local memory is read.
  template <class T>
  STRAIT_HD_INLINE Pending put_value(const T& value, const RemoteMemory& to, std::uint64_t to_offset,
                                     const How& how = {}) {
    static_assert(sizeof(T) <= 8);
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return immediate(check(inside(to, to_offset, sizeof(T)), how), to.index_ext, how,
                     immediate_put({to.dfa, to.index_ext, to.offset + to_offset}, bits, 0, sizeof(T)).words);
  }

  // Adds to 8 bytes of the peer; nothing comes back.
  STRAIT_HD_INLINE Pending add(const RemoteMemory& to, std::uint64_t offset, std::uint64_t value, const How& how = {}) {
    return immediate(check(inside(to, offset, 8), how), to.index_ext, how,
                     immediate_atomic({to.dfa, to.index_ext, to.offset + offset}, add_words(), value).words);
  }
  // The same onto signal `index`.
  STRAIT_HD_INLINE Pending signal(const RemoteMemory& to, std::uint32_t index, std::uint64_t value,
                                  const How& how = {}) {
    return immediate(check(fits(to) && index < to.signals, how), to.signal_index_ext, how,
                     immediate_atomic(signal_word(to, index), add_words(), value).words);
  }

  // The old value arrives in the 8 bytes at `result`, readable once the operation is waited for.
  STRAIT_HD_INLINE Pending fetch_add(const RemoteMemory& at, std::uint64_t offset, std::uint64_t value,
                                     const LocalMemory& result, std::uint64_t result_offset, const How& how = {}) {
    return fetching(at, offset, add_words(), value, 0, result, result_offset, how);
  }
  STRAIT_HD_INLINE Pending compare_swap(const RemoteMemory& at, std::uint64_t offset, std::uint64_t expected,
                                        std::uint64_t desired, const LocalMemory& result, std::uint64_t result_offset,
                                        const How& how = {}) {
    return fetching(at, offset, {wire::cxi::AtomicOp::cswap, wire::cxi::AtomicType::uint64}, desired, expected, result,
                    result_offset, how);
  }
  // Any atomic with its operand in memory; with `result` null nothing comes back.
  STRAIT_HD_INLINE Pending atomic(const AtomicKind& kind, const LocalMemory& operand, std::uint64_t operand_offset,
                                  const RemoteMemory& at, std::uint64_t offset, const LocalMemory* result,
                                  std::uint64_t result_offset, const How& how = {}) {
    const std::uint32_t bytes = wire::cxi::bytes_of(kind.type);
    const bool fine = bytes != 0 && inside(operand, operand_offset, bytes) && inside(at, offset, bytes) &&
                      (result == nullptr || inside(*result, result_offset, bytes));
    Pending out = check(fine, how);
    if (!out.ok()) return out;
    const bool fetches = result != nullptr;
    const AtomicResult into = fetches ? AtomicResult{result->iova + result_offset, result->lac} : AtomicResult{};
    return alone(out, how, [&] {
      const Telling tell = core_.telling(fetches ? wire::cxi::kEventCtReply : wire::cxi::kEventCtAck, how);
      return core_.transmit(amo_dma(fetches, {at.dfa, at.index_ext, at.offset + offset}, operand.iova + operand_offset,
                                    operand.lac, kind, into, tell, how.match_bits, how.tag)
                                .words,
                            how);
    });
  }

  // The data, and behind it `value` onto signal `signal` of the target. The addition is triggered by the counter that
  // the put counts on. How.counter is not used. No more are under way than the queue has places.
  STRAIT_HD_INLINE Pending put_signal(const LocalMemory& from, std::uint64_t from_offset, const RemoteMemory& to,
                                      std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t signal,
                                      std::uint64_t value, const How& how = {}) {
    const bool fine = usable_ && state_->has_places != 0 && inside(from, from_offset, bytes) &&
                      inside(to, to_offset, bytes) && signal < to.signals;
    Pending out{0, 0, true, fine ? Posted::ok : Posted::invalid};
    if (fine && bytes > kLongest) out.posted = Posted::too_long;
    if (!out.ok()) return out;
    group_.sync();
    if (group_.rank() == 0) {
      const Posted posted = core_.within(how.room_ns, [&] {
        return core_.signalled_put(from.iova + from_offset, from.lac, {to.dfa, to.index_ext, to.offset + to_offset},
                                   static_cast<std::uint32_t>(bytes), signal_word(to, signal), value, how, out);
      });
      if (out.ok()) out.posted = posted;
      if (out.ok() && !how.ring_later) core_.ring();
    }
    return group_.share(out);
  }

  // One put per member, each with its own arguments, one claim and one ring. A member that has none passes bytes 0.
  // Wrong arguments of one member refuse those of that member only. How must be the same for all.
  STRAIT_HD_INLINE Pending put_each(const LocalMemory& from, std::uint64_t from_offset, const RemoteMemory& to,
                                    std::uint64_t to_offset, std::uint64_t bytes, const How& how = {}) {
    Pending mine = check(inside(from, from_offset, bytes) && inside(to, to_offset, bytes), how);
    if (mine.ok() && bytes > kLongest) mine.posted = Posted::too_long;
    if (how.counter >= counters_) return mine;  // so do all
    typename Core<S>::Spot spot{};
    group_.sync();
    if (group_.rank() == 0) spot = core_.claim_blocks(group_.size(), how.room_ns);
    spot = group_.share(spot);
    if (spot.posted != Posted::ok) {
      if (mine.ok()) mine.posted = spot.posted;
      return mine;
    }
    const Telling tell = core_.telling(wire::cxi::kEventCtAck, how);
    std::uint8_t* const at = core_.block_at(spot, group_.rank());
    const bool some = mine.ok() && bytes != 0;
    if (some) {
      store_command(
          at, full_dma(wire::cxi::DmaOp::put, {to.dfa, to.index_ext, to.offset + to_offset}, from.iova + from_offset,
                       from.lac, static_cast<std::uint32_t>(bytes), tell, how.match_bits, how.tag)
                  .words);
    } else {
      fill_block(at, RingKind::transmit);
    }
    const unsigned all = group_.count(some);
    group_.sync();
    if (group_.rank() == 0) {
      core_.add_posted(how, all);
      core_.commit(spot);
      core_.show(how);
    }
    return mine;
  }

  // ---- Order and end ------------------------------------------------------------------------------------------------

  // Shows the device everything posted with ring_later.
  STRAIT_HD_INLINE void ring() {
    group_.sync();
    if (usable_ && group_.rank() == 0) core_.ring();
    group_.sync();
  }

  // A signalled put: until its addition is done. Any other: until everything that was posted so far on its counter is.
  STRAIT_HD_INLINE Outcome wait(const Pending& pending, Deadline deadline) {
    // put_each may have refused those of some members only: they wait together or not at all, since one that stays away
    // from the barrier leaves the others in it.
    if (!usable_ || (kAlone<G> ? !pending.ok() : group_.count(pending.ok()) == 0)) return refusal();
    if (!pending.signalled) {
      if constexpr (kAlone<G>)
        return flush(deadline, pending.counter);
      else
        return of_mine(pending, flush(deadline, pending.counter));
    }
    Outcome out{};
    if (group_.rank() == 0) out = core_.wait_place(pending, deadline);
    group_.sync();
    return of_mine(pending, group_.share(out));
  }
  // Everything that was posted so far on this counter, by whomever, is complete at the target. Threads that share a
  // counter and go on posting keep each other waiting; each may have its own.
  STRAIT_HD_INLINE Outcome flush(Deadline deadline, std::uint32_t counter = 0) {
    if (counter >= counters_) return refusal();
    group_.sync();
    Outcome out{};
    if (group_.rank() == 0) {
      core_.ring();
      out = core_.wait_all(counter, deadline);
    }
    group_.sync();
    return group_.share(out);
  }
  // The device has taken all commands that were posted: it holds copies of them, and whether they succeed is not known.
  STRAIT_HD_INLINE Outcome drain(Deadline deadline) {
    if (!usable_) return refusal();
    group_.sync();
    Outcome out{};
    if (group_.rank() == 0) {
      core_.ring();
      out.waited = wait_bounded(core_.limit(deadline), [&] {
        if (core_.stopped() != wire::cxi::ReturnCode::ok) return Turn::finished;
        return core_.drained() ? Turn::finished : Turn::idle;
      });
      if (core_.stopped() != wire::cxi::ReturnCode::ok) core_.fail(out, deadline);
    }
    group_.sync();
    return group_.share(out);
  }

  // ---- Counters: ours, and those that a peer's puts count on --------------------------------------------------------

  // The counter has seen `at_least` (modulo 2^48) succeed; error as soon as one has failed.
  STRAIT_HD_INLINE Outcome wait_counter(std::uint32_t counter, std::uint64_t at_least, Deadline deadline) {
    if (counter >= counters_) return refusal();
    group_.sync();
    Outcome out{};
    if (group_.rank() == 0) out = core_.wait_alone(counter, at_least, deadline);
    group_.sync();
    return group_.share(out);
  }
  // What it shows now: the device is asked to write it back, and waited for. Also tells failures, without an error.
  STRAIT_HD_INLINE Outcome read_counter(std::uint32_t counter, Deadline deadline) {
    if (counter >= counters_) return refusal();
    Outcome out{};
    if (group_.rank() == 0) {
      const Counter& c = state_->counter[counter].counter;
      bool asked = false;
      out.waited = wait_bounded(core_.limit(deadline), [&] {
        if (!asked) {
          forget_written(c);
          asked = core_.ask(ct_get(c.number));
        } else if (look_at(c).written()) {
          return Turn::finished;
        }
        return Turn::idle;
      });
      order_cqe_reads();
      Core<S>::note(out, look_at(c));
    }
    group_.sync();
    return group_.share(out);
  }
  // What it showed when the device last wrote it back, without asking: it may be old.
  STRAIT_HD_INLINE Count counter(std::uint32_t counter) const {
    if (counter >= counters_) return {0, 0};
    const wire::cxi::CtWriteback now = look_at(state_->counter[counter].counter);
    return {now.success(), now.failure()};
  }
  // Both counts to 0, and the software count with them. Nothing that counts on it may be under way.
  STRAIT_HD_INLINE Outcome reset_counter(std::uint32_t counter, Deadline deadline) {
    if (counter >= counters_ || state_->counter[counter].counter.doorbell == nullptr) return refusal();
    Outcome out{};
    if (group_.rank() == 0) {
      CounterState& c = state_->counter[counter];
      core_.forget_posted(counter);
      reset_success(c.counter);
      reset_failure(c.counter);
      out.waited = wait_bounded(core_.limit(deadline), [&] {
        const wire::cxi::CtWriteback now = look_at(c.counter);
        return now.success() == 0 && now.failure() == 0 ? Turn::finished : Turn::idle;
      });
      Core<S>::note(out, look_at(c.counter));
    }
    group_.sync();
    return group_.share(out);
  }
  // By its doorbell: releases triggered operations that wait for the count. False: the counter has none.
  STRAIT_HD_INLINE bool raise_counter(std::uint32_t counter, std::uint64_t count) {
    if (counter >= counters_ || state_->counter[counter].counter.doorbell == nullptr) return false;
    group_.sync();
    if (group_.rank() == 0) inc_success(state_->counter[counter].counter, count);
    return true;
  }

  // A signal of ours has reached `at_least`: what the peer put before it is visible to the group.
  STRAIT_HD_INLINE Seen wait_signal(const Signal& signal, std::uint64_t at_least, Deadline deadline) {
    if (!usable_ || !fits(signal)) return {Waited::error, 0};
    Seen out{};
    if (group_.rank() == 0) {
      out.waited = wait_bounded(core_.limit(deadline), [&] {
        out.value = peek(signal.word);
        return out.value >= at_least ? Turn::finished : Turn::idle;
      });
      order_cqe_reads();
    }
    group_.sync();
    return group_.share(out);
  }

  // What failed first, as far as the event queue tells.
  STRAIT_HD_INLINE Cause cause() const { return usable_ ? core_.cause() : Cause{wire::cxi::ReturnCode::ok, 0}; }

  // The rings go back into the queue, for the next Lane. After it this one is not usable.
  STRAIT_HD_INLINE void give_back() {
    if (usable_ && S == Sharing::one_thread) {
      group_.sync();
      if (group_.rank() == 0) core_.give_back();
      group_.sync();
    }
    usable_ = false;
    counters_ = 0;
  }

 private:
  static constexpr std::uint64_t kLongest = 0xffffffffu;

  template <class Memory>
  STRAIT_HD_INLINE static bool inside(const Memory& memory, std::uint64_t offset, std::uint64_t bytes) {
    return fits(memory) && bytes <= memory.length_bytes && offset <= memory.length_bytes - bytes;
  }
  STRAIT_HD_INLINE static Destination signal_word(const RemoteMemory& to, std::uint32_t index) {
    return {to.signal_dfa, to.signal_index_ext, to.signal_offset + std::uint64_t{index} * 8};
  }
  STRAIT_HD_INLINE Pending check(bool fine, const How& how) const {
    fine = fine && how.counter < counters_;
    return {0, how.counter, false, fine ? Posted::ok : Posted::invalid};
  }
  STRAIT_HD_INLINE Pending check_length(bool fine, std::uint64_t bytes, const How& how) const {
    Pending out = check(fine, how);
    if (out.ok() && bytes > kLongest) out.posted = Posted::too_long;
    return out;
  }
  STRAIT_HD_INLINE static Outcome of_mine(const Pending& pending, const Outcome& all) {
    return kAlone<G> || pending.ok() ? all : refusal();
  }
  STRAIT_HD_INLINE static Outcome refusal() {
    Outcome out{};
    out.waited = Waited::error;
    out.code = wire::cxi::ReturnCode::cmd_invalid_arg;
    return out;
  }

  STRAIT_HD_INLINE Pending dma(wire::cxi::DmaOp op, std::uint32_t when, const LocalMemory& local,
                               std::uint64_t local_offset, const RemoteMemory& remote, std::uint64_t remote_offset,
                               std::uint64_t bytes, const How& how) {
    const bool fine = inside(local, local_offset, bytes) && inside(remote, remote_offset, bytes);
    const auto command = [&](const Telling& tell) {
      return full_dma(op, {remote.dfa, remote.index_ext, remote.offset + remote_offset}, local.iova + local_offset,
                      local.lac, static_cast<std::uint32_t>(bytes), tell, how.match_bits, how.tag);
    };
    if constexpr (Core<S>::kShared) {
      const Pending out = check_length(fine, bytes, how);
      if (!out.ok()) return out;
      return alone(out, how, [&] { return core_.transmit(command(core_.telling(when, how)).words, how); });
    } else {
      Pending out{0, how.counter, false, Posted::ok};
      group_.sync();
      if (group_.rank() == 0) {
        bool ready = core_.ready(how);
        ready = fine & ready & (bytes <= kLongest);
        if (!ready) {
          out = check_length(fine, bytes, how);
          if (out.ok()) out.posted = core_.make_ready(how.counter, how.room_ns);
          ready = out.ok();
        }
        if (ready) {
          core_.write_block(command(core_.tell(when, how)).words, how);
          core_.template show<true>(how);
          out.posted = Posted::ok;
        }
      }
      return group_.share(out);
    }
  }
  STRAIT_HD_INLINE Pending immediate(const Pending& checked, std::uint32_t index_ext, const How& how,
                                     const std::uint64_t (&words)[4]) {
    if (!checked.ok()) return checked;
    return alone(checked, how, [&] {
      return core_.immediate(c_state(index_ext, 0, core_.telling(wire::cxi::kEventCtAck, how), how.tag), words, how);
    });
  }
  STRAIT_HD_INLINE Pending fetching(const RemoteMemory& at, std::uint64_t offset, const AtomicKind& kind,
                                    std::uint64_t operand, std::uint64_t compare, const LocalMemory& result,
                                    std::uint64_t result_offset, const How& how) {
    const Pending checked = check(inside(at, offset, 8) && inside(result, result_offset, 8), how);
    if (!checked.ok()) return checked;
    return alone(checked, how, [&] {
      return core_.immediate(c_state(at.index_ext, result.lac, core_.telling(wire::cxi::kEventCtReply, how), how.tag),
                             immediate_fetching({at.dfa, at.index_ext, at.offset + offset}, kind, operand, compare,
                                                result.iova + result_offset)
                                 .words,
                             how);
    });
  }

  // Rank 0 tries until there is room or the time is up, and rings.
  template <class Try>
  STRAIT_HD_INLINE Pending alone(Pending out, const How& how, Try&& once) {
    group_.sync();
    if (group_.rank() == 0) {
      out.posted = core_.within(how.room_ns, once);
      if (out.ok()) core_.show(how);
    }
    return group_.share(out);
  }

  QueueState* state_;
  G group_;
  Core<S> core_;
  bool usable_ = false;
  std::uint32_t counters_ = 0;  // none of one that is not usable; here, since a fence makes a GPU fetch state_ anew
};

}  // namespace strait::device::cxi
