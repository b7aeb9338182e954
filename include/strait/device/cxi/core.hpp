// SPDX-License-Identifier: Apache-2.0
// What one thread does on a CXI queue: rings, counts and waits. lane.hpp makes calls of groups of it; the functions
// here are rank 0's alone, arguments were checked before, and whoever posts rings.
#pragma once

#include <cstdint>
#include <type_traits>

#include "strait/device/cxi/command.hpp"
#include "strait/device/cxi/outcome.hpp"
#include "strait/device/cxi/own_ring.hpp"
#include "strait/device/cxi/queue.hpp"
#include "strait/device/cxi/shared_ring.hpp"

namespace strait::device::cxi {

// 64-bit addition. A function, since nvcc takes no reference to a constant of the host.
STRAIT_HD_INLINE constexpr AtomicKind add_words() {
  return {wire::cxi::AtomicOp::sum, wire::cxi::AtomicType::uint64};
}
// Only failures make events: whoever wants to know of success has a counter.
inline constexpr std::uint32_t kQuiet = wire::cxi::kEventSendDisable | wire::cxi::kEventSuccessDisable;

template <Sharing S>
class Core {
 public:
  static constexpr bool kShared = S != Sharing::one_thread;
  using Transmit = std::conditional_t<kShared, SharedCommands<S, RingKind::transmit>, OwnCommands<RingKind::transmit>>;
  using Triggered =
      std::conditional_t<kShared, SharedCommands<S, RingKind::triggered>, OwnCommands<RingKind::triggered>>;

  STRAIT_HD_INLINE void open(QueueState& state) {
    state_ = &state;
    counters_ = state.counter;
    abort_ = state.abort;
    transmit_.open(state.transmit);
    triggered_.open(state.triggered);
    told_ = told_by_event(state.event_queue);
    initiator_ = state.initiator;
    if constexpr (!kShared) signalled_ = state.signalled;
    use_counter(0);
  }
  STRAIT_HD_INLINE void give_back() {
    if constexpr (!kShared) {
      settle();
      unwatch();
      transmit_.give_back();
      triggered_.give_back();
      state_->signalled = signalled_;
    }
  }

  // What ends a wait that nothing else ends.
  STRAIT_HD_INLINE Limit limit(Deadline deadline) const { return {deadline, abort_}; }

  // Tries until `once` succeeds or the time is up. ok, full, or failed if the device has given up a ring.
  template <class Try>
  STRAIT_HD_INLINE Posted within(std::uint64_t room_ns, Try&& once) {
    if (once()) return Posted::ok;
    if (room_ns != 0 && wait_bounded(limit(Deadline::after_ns(room_ns)),
                                     [&] { return once() ? Turn::finished : Turn::idle; }) == Waited::ok)
      return Posted::ok;
    return stopped() == wire::cxi::ReturnCode::ok ? Posted::full : Posted::failed;
  }

  // ---- Commands. False: no room, and nothing has changed. Where threads share, an operation is counted before the
  // device can see it: otherwise another thread might take its success for that of one it waits for.

  STRAIT_HD_INLINE Telling telling(std::uint32_t when, const How& how) {
    use_counter(how.counter);
    return tell(when, how);
  }

  // One owner, a command of 64 bytes, in three steps: is everything as the last one left it, make it so, write it. Then
  // the usual put is one test and a straight way. A thread of a GPU pays a dozen cycles for every branch, also for
  // those that it goes past; hence no && here, nor in what this is part of.
  STRAIT_HD_INLINE bool ready(const How& how) const {
    const bool block = transmit_.block_ready();
    return (how.counter == counter_) & block;
  }
  STRAIT_HD_SELDOM Posted make_ready(std::uint32_t counter, std::uint64_t room_ns) {
    use_counter(counter);
    return within(room_ns, [&] { return transmit_.make_block_ready(); });
  }
  STRAIT_HD_INLINE Telling tell(std::uint32_t when, const How& how) const {
    return how.silent ? Telling{kQuiet, initiator_, told_by_counter(told_, 0)}
                      : Telling{kQuiet | when, initiator_, told_};
  }
  STRAIT_HD_INLINE void write_block(const std::uint64_t (&words)[8], const How& how) {
    store_command(transmit_.take_block(), words);
    add_posted(how, 1);
  }

  template <std::size_t Words>
  STRAIT_HD_INLINE bool transmit(const std::uint64_t (&words)[Words], const How& how) {
    return emit<(Words + 7) / 8>(transmit_, [&](std::uint8_t* at) {
      store_command(at, words);
      add_posted(how, 1);
    });
  }
  // An immediate command of 32 bytes under `state`.
  STRAIT_HD_INLINE bool immediate(const wire::cxi::CStateCmd& state, const std::uint64_t (&words)[4], const How& how) {
    if constexpr (kShared) {
      // Another thread's state may lie between ours and our command, unless they are one claim.
      return emit<1>(transmit_, [&](std::uint8_t* at) {
        store_command(at, state.words);
        store_command(at + wire::cxi::kSlotBytes, words);
        add_posted(how, 1);
      });
    } else {
      if (!set_state(state)) return false;
      std::uint8_t* const at = transmit_.template claim<1>();
      if (at == nullptr) return false;
      store_command(at, words);
      add_posted(how, 1);
      return true;
    }
  }
  // One of 64 bytes.
  STRAIT_HD_INLINE bool immediate(const wire::cxi::CStateCmd& state, const std::uint64_t (&words)[8], const How& how) {
    if constexpr (kShared) {
      typename Transmit::Claim claim;
      if (!transmit_.claim(2, 1, claim)) return false;
      std::uint8_t* const first = transmit_.at_block(claim.block);
      store_command(first, state.words);
      fill_slot(first + wire::cxi::kSlotBytes);
      store_command(transmit_.at_block(transmit_.block_after(claim.block, 1)), words);
      add_posted(how, 1);
      transmit_.commit(claim);
      return true;
    } else {
      if (!set_state(state)) return false;
      std::uint8_t* const to = transmit_.template claim<2>();
      if (to == nullptr) return false;
      store_command(to, words);
      add_posted(how, 1);
      return true;
    }
  }
  // A counter command, shown at once.
  STRAIT_HD_INLINE bool ask(const wire::cxi::CtCmd& command) {
    if (!emit<1>(triggered_, [&](std::uint8_t* at) { store_ct(at, command); })) return false;
    if constexpr (kShared)
      triggered_.ring();
    else
      triggered_.ring_whole();
    return true;
  }
  STRAIT_HD_INLINE void ring() {
    transmit_.ring();
    triggered_.ring();
  }
  // What was posted, with the event of a wait for it ahead of it if that is asked for. `Whole`: it was whole blocks.
  template <bool Whole = false>
  STRAIT_HD_INLINE void show(const How& how) {
    const bool arms = how.arm && !how.silent;
    if (arms) arm_ahead(how.counter, how.arm_ahead);
    if (!how.ring_later) {
      if constexpr (Whole && !kShared)
        transmit_.ring_whole();
      else
        transmit_.ring();
    }
    if (arms) arm_later_ones(how.arm_ahead);
  }
  STRAIT_HD_INLINE bool drained() { return transmit_.drained() && triggered_.drained(); }

  // ---- Many blocks at once: a place that members fill

  struct Spot {
    typename SharedCommands<S, RingKind::transmit>::Claim claim;
    Posted posted;
  };
  STRAIT_HD_INLINE Spot claim_blocks(std::uint32_t blocks, std::uint64_t room_ns) {
    Spot spot{};
    spot.posted = within(room_ns, [&] { return try_blocks(blocks, spot); });
    return spot;
  }
  STRAIT_HD_INLINE void commit(const Spot& spot) {
    if constexpr (kShared) transmit_.commit(spot.claim);
  }
  STRAIT_HD_INLINE std::uint8_t* block_at(const Spot& spot, std::uint32_t rank) const {
    return transmit_.at_block(transmit_.block_after(spot.claim.block, rank));
  }

  // ---- Signalled puts

  // True: it is decided, `out` says how. False: no room, and nothing has changed.
  STRAIT_HD_INLINE bool signalled_put(std::uint64_t local, std::uint32_t lac, const Destination& to,
                                      std::uint32_t bytes, const Destination& word, std::uint64_t value, const How& how,
                                      Pending& out) {
    std::uint64_t ticket = kShared ? load_relaxed<kScope<S>>(&state_->signalled) : signalled_;
    if (!place_free(ticket, out)) return !out.ok();
    if constexpr (kShared) {
      // Counter commands first: a claim that cannot be used has to be filled, and there may be none for the put.
      typename Triggered::Claim triggered;
      typename Transmit::Claim transmit;
      if (!triggered_.claim(3, 2, triggered)) return false;
      const bool have_transmit = transmit_.claim(1, 1, transmit);
      bool have = false;
      for (std::uint32_t i = 0; have_transmit && !have && i < kReserveAttempts; ++i) {
        have = compare_exchange<kScope<S>>(&state_->signalled, ticket, ticket + 1);
        if (!have && !place_free(ticket, out)) break;
      }
      if (have) {
        write_put(transmit_.at_block(transmit.block), ticket, local, lac, to, bytes, how);
        write_signal(triggered_.at_block(triggered.block),
                     triggered_.at_block(triggered_.block_after(triggered.block, 2)), ticket, word, value, how, out);
      } else {
        for (std::uint32_t i = 0; i < 3; ++i)
          fill_block(triggered_.at_block(triggered_.block_after(triggered.block, i)), RingKind::triggered);
        if (have_transmit) fill_block(transmit_.at_block(transmit.block), RingKind::transmit);
      }
      triggered_.commit(triggered);
      if (have_transmit) transmit_.commit(transmit);
      if (!have) ring();
      return have || !out.ok();
    } else {
      if (!triggered_.has_room(kSlotsOfSignal) || !transmit_.has_room(4)) return false;
      write_put(transmit_.template claim<2>(), ticket, local, lac, to, bytes, how);
      std::uint8_t* const dma = triggered_.template claim<4>();
      write_signal(dma, triggered_.template claim<2>(), ticket, word, value, how, out);
      signalled_ = ticket + 1;
      return true;
    }
  }
  // ---- Waiting

  STRAIT_HD_INLINE static void note(Outcome& out, const wire::cxi::CtWriteback& now) {
    out.success = now.success();
    out.failures = now.failure();
  }
  // The event may come a little behind the count: it is given a millisecond.
  STRAIT_HD_INLINE void fail(Outcome& out, Deadline deadline) const {
    Cause told = cause();
    if (told.code == wire::cxi::ReturnCode::ok && state_->events != nullptr) {
      const Deadline patience = Deadline::after_ns(1'000'000);
      (void)wait_bounded(limit(patience.at_ns < deadline.at_ns ? patience : deadline), [&] {
        told = cause();
        return told.code != wire::cxi::ReturnCode::ok ? Turn::finished : Turn::idle;
      });
    }
    out.waited = Waited::error;
    out.code = told.code;
    out.tag = told.user_ptr;
  }
  // What failed first, as far as the event queue or a ring's status tells.
  STRAIT_HD_INLINE Cause cause() const {
    const Cause told = first_cause(state_->events, state_->event_bytes);
    return told.code != wire::cxi::ReturnCode::ok ? told : Cause{stopped(), 0};
  }
  // Of a ring that the device has given up: it takes no more commands.
  STRAIT_HD_INLINE wire::cxi::ReturnCode stopped() const {
    const wire::cxi::ReturnCode a = transmit_.status().return_code();
    if (a != wire::cxi::ReturnCode::ok && a != wire::cxi::ReturnCode::no_event) return a;
    const wire::cxi::ReturnCode b = triggered_.status().return_code();
    return b != wire::cxi::ReturnCode::no_event ? b : wire::cxi::ReturnCode::ok;
  }
  STRAIT_HD_INLINE Outcome wait_alone(std::uint32_t counter, std::uint64_t goal, Deadline deadline) {
    watch(counter);
    goal &= wire::cxi::kCtSuccessMask;
    Outcome out{};
    wire::cxi::CtWriteback now{};
    std::uint32_t turns = 0;
    bool failed = false;
    bool asked = false;
    // Where a look costs more than a command, it is not waited for. Threads that share would arm for what has come.
    bool armed = kHostIsFar && !kShared && arm(counter, goal, 0);
    out.waited = wait_bounded(limit(deadline), [&] {
      now = look(counter);
      if (reached(now.success(), goal)) return Turn::finished;
      failed = now.failure() != 0 || given_up(turns);
      if (failed) return Turn::finished;
      if (ask_beyond_wrap(counters_[counter].counter, now, goal, asked)) {
        armed = false;
        forget_armed(counter);  // one that was armed for it has come, or comes at once
      } else if (!armed) {
        armed = arm(counter, goal, now.success());
      }
      return kLookAgain;
    });
    order_cqe_reads();
    note(out, now);
    if (failed) fail(out, deadline);
    return out;
  }
  // Everything that was told to count on it so far. A counter does not say which operations have ended, so others'
  // later ones might stand in for ours: it is over only when as many have ended as were counted. An operation is
  // counted before the device sees it, so those that have ended are never more. Threads that go on posting to a counter
  // keep each other waiting: who does not want that has one of its own.
  STRAIT_HD_INLINE Outcome wait_all(std::uint32_t counter, Deadline deadline) {
    if constexpr (!kShared) return wait_alone(counter, posted_on(counter), deadline);
    Outcome out{};
    const Waited waited = wait_bounded(limit(deadline), [&] {
      const std::uint64_t goal = posted_on(counter);
      out = wait_alone(counter, goal, deadline);
      return out.waited != Waited::ok || posted_on(counter) == goal ? Turn::finished : Turn::busy;
    });
    if (waited != Waited::ok) out.waited = waited;
    return out;
  }
  // The event was armed when the put was posted.
  STRAIT_HD_INLINE Outcome wait_place(const Pending& pending, Deadline deadline) {
    const Counter& c = state_->places[pending.counter].counter;
    Outcome out{};
    wire::cxi::CtWriteback now{};
    std::uint32_t turns = 0;
    bool failed = false;
    bool asked = true;
    out.waited = wait_bounded(limit(deadline), [&] {
      now = look_at(c);
      if (reached(now.success(), pending.goal)) return Turn::finished;
      failed = now.failure() != 0 || given_up(turns);
      if (failed) return Turn::finished;
      (void)ask_beyond_wrap(c, now, pending.goal, asked);
      return kLookAgain;
    });
    order_cqe_reads();
    note(out, now);
    if (failed) fail(out, deadline);
    return out;
  }

  // ---- How many count on what

  STRAIT_HD_INLINE void add_posted(const How& how, std::uint32_t n) {
    if (how.silent) return;
    if constexpr (kShared)
      add_relaxed<kScope<S>>(&counters_[how.counter].posted, n);
    else
      since_ += n;  // its counter is in use
  }
  STRAIT_HD_INLINE std::uint64_t posted_on(std::uint32_t counter) const {
    if (!kShared && counter == counter_) return posted_ + since_;
    return load_relaxed<kScope<S>>(&counters_[counter].posted);
  }
  STRAIT_HD_INLINE void forget_posted(std::uint32_t counter) {
    if (!kShared && counter == counter_) posted_ = since_ = 0;
    ahead_ = 0;
    store_relaxed<kScope<S>>(&counters_[counter].posted, 0);
    watch(counter);
    forget_armed(counter);
  }

 private:
  // In a wait that has had `turns`: has the device stopped a ring? What is behind a bad command is never carried out
  // and counts nowhere. Seldom looked at: it does not happen to correct programs.
  STRAIT_HD_INLINE bool given_up(std::uint32_t& turns) const {
    return ++turns % kTurnsPerStatus == 0 && stopped() != wire::cxi::ReturnCode::ok;
  }
  static constexpr std::uint32_t kTurnsPerStatus = 256;
  // A look across a bus is rest enough.
  static constexpr Turn kLookAgain = kHostIsFar ? Turn::busy : Turn::idle;

  // One owner: the device keeps the state until it meets another, so an equal one is not sent again. False: no room.
  STRAIT_HD_INLINE bool set_state(const wire::cxi::CStateCmd& state) {
    if (state.words[0] == c_state_[0] && state.words[1] == c_state_[1] && state.words[2] == c_state_[2] &&
        state.words[3] == c_state_[3])
      return true;
    std::uint8_t* const at = transmit_.template claim<1>();
    if (at == nullptr) return false;
    store_command(at, state.words);
    for (unsigned i = 0; i < 4; ++i) c_state_[i] = state.words[i];
    return true;
  }

  // A command of `Blocks` blocks, aligned to its size: it never lies on both sides of a wrap.
  template <std::uint32_t Blocks, class Ring, class Write>
  STRAIT_HD_INLINE static bool emit(Ring& ring, Write&& write) {
    if constexpr (kShared) {
      typename Ring::Claim claim;
      if (!ring.claim(Blocks, Blocks, claim)) return false;
      write(ring.at(claim.block));
      ring.commit(claim);
    } else if constexpr (Blocks == 1) {
      if (!ring.block_ready() && !ring.make_block_ready()) return false;
      write(ring.take_block());
    } else {
      std::uint8_t* const at = ring.template claim<Blocks * 2>();
      if (at == nullptr) return false;
      write(at);
    }
    return true;
  }

  STRAIT_HD_INLINE bool try_blocks(std::uint32_t blocks, Spot& spot) {
    if constexpr (kShared)
      return transmit_.claim(blocks, 1, spot.claim);
    else
      return transmit_.claim_blocks(blocks, spot.claim.block);
  }
  static constexpr std::uint32_t kSlotsOfSignal = 2 + 4 + 2;  // a gap, the atomic, the event

  STRAIT_HD_INLINE const SignalPlace& place_of(std::uint64_t ticket) const {
    return state_->places[ticket & ((std::uint64_t{1} << state_->log_places) - 1)];
  }
  // What the place's counter shows before this put: each use has counted 2.
  STRAIT_HD_INLINE std::uint64_t before(std::uint64_t ticket) const {
    return (ticket >> state_->log_places) * 2 & wire::cxi::kCtSuccessMask;
  }
  STRAIT_HD_INLINE bool place_free(std::uint64_t ticket, Pending& out) {
    const Counter& c = place_of(ticket).counter;
    const wire::cxi::CtWriteback now = look_at(c);
    if (now.failure() != 0) {
      out.posted = Posted::failed;
      return false;
    }
    if (reached(now.success(), before(ticket))) return true;
    bool asked = true;
    ask_beyond_wrap(c, now, before(ticket), asked);
    return false;
  }
  // A device compares as numbers. A goal beyond the wrap is smaller than what is there, and an event armed for it comes
  // at once: there the counter is asked for its value, again and again, until it has wrapped too. Is it so?
  STRAIT_HD_INLINE bool ask_beyond_wrap(const Counter& c, const wire::cxi::CtWriteback& now, std::uint64_t goal,
                                        bool& asked) {
    if (goal >= now.success()) return false;
    if (!asked || now.written()) {
      forget_written(c);
      asked = ask(ct_get(c.number));
    }
    return true;
  }
  STRAIT_HD_INLINE void write_put(std::uint8_t* at, std::uint64_t ticket, std::uint64_t local, std::uint32_t lac,
                                  const Destination& to, std::uint32_t bytes, const How& how) {
    const Telling tell{kQuiet | wire::cxi::kEventCtAck, initiator_,
                       told_by_counter(told_, place_of(ticket).counter.number)};
    store_command(at, full_dma(wire::cxi::DmaOp::put, to, local, lac, bytes, tell, how.match_bits, how.tag).words);
  }
  STRAIT_HD_INLINE void write_signal(std::uint8_t* dma_at, std::uint8_t* event_at, std::uint64_t ticket,
                                     const Destination& word, std::uint64_t value, const How& how, Pending& out) {
    const SignalPlace& place = place_of(ticket);
    store_doorbell(place.operand, value);  // the device reads it: a store of its own
    const std::uint32_t number = place.counter.number;
    const Telling tell{kQuiet | wire::cxi::kEventCtAck, initiator_, told_by_counter(told_, number)};
    const std::uint64_t from = before(ticket);
    store_trig_dma(dma_at, number, (from + 1) & wire::cxi::kCtSuccessMask,
                   amo_dma(false, word, place.operand_iova, place.operand_lac, add_words(), {}, tell, 0, how.tag));
    out.goal = (from + 2) & wire::cxi::kCtSuccessMask;
    out.counter = static_cast<std::uint32_t>(ticket & ((std::uint64_t{1} << state_->log_places) - 1));
    store_ct(event_at, trig_event(number, out.goal));
  }
  // Once for each goal: every armed event takes one of the device's 2048 places until it comes. Threads that share have
  // one under way together: who waits for more than it tells arms the next when it has come. `seen`: the count that was
  // looked at last. False: to be tried again, after another look. One owner: the counter is watched.
  STRAIT_HD_INLINE bool arm(std::uint32_t counter, std::uint64_t goal, std::uint64_t seen) {
    if constexpr (kShared) {
      CounterState& c = counters_[counter];
      std::uint64_t armed = load_relaxed<kScope<S>>(&c.armed);
      const bool under_way = armed != 0 && !reached(seen, armed - 1);
      if (under_way && reached(goal, armed - 1)) return false;
      if (!compare_exchange_relaxed<kScope<S>>(&c.armed, armed, goal + 1)) return false;
      if (ask(trig_event(c.counter.number, goal))) return true;
      armed = goal + 1;
      (void)compare_exchange_relaxed<kScope<S>>(&c.armed, armed, 0);
      return false;
    } else {
      if (watched_.armed == goal + 1) return true;
      if (!ask(trig_event(watched_.number, goal))) return false;
      watched_.armed = goal + 1;
      return true;
    }
  }
  STRAIT_HD_INLINE void forget_armed(std::uint32_t counter) {
    if constexpr (kShared)
      store_relaxed<kScope<S>>(&counters_[counter].armed, 0);
    else
      watched_.armed = 0;
  }
  STRAIT_HD_INLINE wire::cxi::CtWriteback look(std::uint32_t counter) const {
    if constexpr (kShared)
      return look_at(counters_[counter].counter);
    else
      return {peek(watched_.word)};
  }
  // For everything posted so far, and for what comes next if How asks for that: several events are one ring and one
  // look of the device. Beyond a wrap an event comes at once; the wait sees to that, and to one that found no room.
  // Threads that share do not: there may be one under way.
  STRAIT_HD_SELDOM void arm_ahead(std::uint32_t counter, std::uint32_t many) {
    if constexpr (!kShared) {
      watch(counter);
      const std::uint64_t goal = posted_on(counter) & wire::cxi::kCtSuccessMask;
      if (goal - ahead_from_ < ahead_) {  // it was, some operations ago
        watched_.armed = goal + 1;
        ahead_ -= static_cast<std::uint32_t>(goal - ahead_from_);
        ahead_from_ = goal;
        return;
      }
      ahead_ = 0;
      if (!arm(counter, goal, 0) || many <= 1) return;
      // Before the wrap those beyond it would come at once, and be gone when they are needed.
      if (look(counter).success() > goal) return;
      ahead_from_ = goal;
      ahead_ = 1;
      while (arm_another(many)) {
      }
      triggered_.ring();
      unshown_ = 0;
    }
  }
  // Behind the operation: one event more, for a later one. Its block was the device's before and takes a while to come,
  // but now there is nothing to do but wait. Rung for when a quarter of all is not shown, or the one that is needed.
  STRAIT_HD_SELDOM void arm_later_ones(std::uint32_t many) {
    if constexpr (!kShared) {
      if (ahead_ == 0) return;
      if (arm_another(many)) ++unshown_;
      if (unshown_ * 4 < ahead_) return;
      triggered_.ring();
      unshown_ = 0;
    }
  }
  // Not shown yet. False: there are enough, or there is no room.
  STRAIT_HD_INLINE bool arm_another(std::uint32_t many) {
    const std::uint64_t threshold = ahead_from_ + ahead_;
    if (ahead_ >= many || threshold > wire::cxi::kCtSuccessMask) return false;
    const auto event = [&](std::uint8_t* at) { store_ct(at, trig_event(watched_.number, threshold)); };
    if (!emit<1>(triggered_, event)) return false;
    ++ahead_;
    return true;
  }
  // One owner keeps in registers what it needs of the counter it posts on and of the one it waits for, mostly the same.
  // A GPU's fences empty its first-level cache: what is fetched behind one is a trip to the second, and these were
  // three of them one behind the other.
  STRAIT_HD_INLINE void use_counter(std::uint32_t counter) {
    if (counter == counter_) return;
    settle();
    ahead_ = 0;  // counted for one counter at a time
    counter_ = counter;
    told_ = told_by_counter(told_, counters_[counter].counter.number);
    if constexpr (!kShared) posted_ = counters_[counter].posted;
  }
  STRAIT_HD_INLINE void settle() {
    if constexpr (!kShared) {
      if (since_ == 0) return;
      posted_ += since_;
      since_ = 0;
      counters_[counter_].posted = posted_;
    }
  }
  STRAIT_HD_INLINE void watch(std::uint32_t counter) {
    if constexpr (!kShared) {
      if (counter == watched_.index) return;
      unwatch();
      const CounterState& c = counters_[counter];
      watched_ = {counter, c.counter.number, c.counter.word, c.armed};
    }
  }
  STRAIT_HD_INLINE void unwatch() {
    if (watched_.index != kNone) counters_[watched_.index].armed = watched_.armed;
  }
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Watched {
    std::uint32_t index = kNone;
    std::uint32_t number = 0;
    std::uint64_t* word = nullptr;
    std::uint64_t armed = 0;
  };

  QueueState* state_ = nullptr;
  CounterState* counters_ = nullptr;
  const std::uint32_t* abort_ = nullptr;
  Transmit transmit_;
  Triggered triggered_;
  std::uint64_t c_state_[4] = {0, 0, 0, 0};
  std::uint64_t signalled_ = 0;
  std::uint32_t counter_ = kNone;
  std::uint64_t told_ = 0;    // by operations: on which counter, in which event queue
  std::uint32_t since_ = 0;   // one owner: so many more were posted on it
  std::uint64_t posted_ = 0;  // than these
  Watched watched_;
  std::uint32_t ahead_ = 0;    // one owner: so many events are armed, for this count and those behind it
  std::uint32_t unshown_ = 0;  // of which the last so many were not rung for
  std::uint64_t ahead_from_ = 0;
  std::uint32_t initiator_ = 0;
};

}  // namespace strait::device::cxi
