// SPDX-License-Identifier: Apache-2.0
// Lane: what a thread, a warp or a block holds while it works on a queue. One source for GPU kernels and CPU threads.
//
//   __global__ void tell(Queue queue, LocalRegion from, RemoteRegion to) {
//     Lane<Sharing::one_thread> lane(queue);
//     const Pending put = lane.put_signal(from, 0, to, 0, 4096, 0, 1);
//     if (lane.wait(put, Deadline::after_ns(1'000'000)).waited != Waited::ok) ...
//   }
//
// Every call is made by all members of the group with the same arguments (but for put_each); rank 0 acts, and all get
// the answer. Stores that members made before a put are part of what it sends. Posting never waits, unless How says for
// how long; each wait has a deadline and also ends when the host raises the queue's abort word. A queue that was made
// for one_thread has one Lane at a time; the Lane keeps its counters in registers and gives them back when it goes.
#pragma once

#include <cstdint>

#include "strait/device/group.hpp"
#include "strait/device/own_ring.hpp"
#include "strait/device/queue.hpp"
#include "strait/device/reap.hpp"
#include "strait/device/segments.hpp"
#include "strait/device/shared_ring.hpp"
#include "strait/device/wait.hpp"

namespace strait::device {

inline constexpr std::uint32_t kNoCounter = ~std::uint32_t{0};

// How an operation is posted. The default: with a completion, rung at once, refused when the ring is full.
struct How {
  Flags flags = kNoFlags;  // kFenced, kSolicited
  std::uint32_t counter = kNoCounter;
  bool silent = false;        // no completion of its own: done when a later one is. Never ends on a counter in time.
  bool ring_later = false;    // shown to the NIC with the next one that rings, or by ring()
  std::uint64_t room_ns = 0;  // how long to wait for room in a full ring; the host's abort word ends that too
};

// How an operation ended.
struct Outcome {
  Waited waited;
  wire::mlx5::Syndrome syndrome;  // with Waited::error: of this operation; flushed if an earlier one failed
  wire::mlx5::Syndrome cause;     // what the queue failed of first
  std::uint8_t vendor_syndrome;   // of the cause
  std::uint64_t cause_index;      // the WQE that failed first, by its index (40 bits)
};

struct Seen {
  Waited waited;
  std::uint64_t value;
};

template <Sharing S, class G = Thread>
class Lane {
 public:
  STRAIT_HD_INLINE explicit Lane(const Queue& queue, G group = G{}) : state_(queue.state), group_(group) {
    usable_ = fits(queue) && queue.sharing == S && state_ != nullptr && fits(*state_);
    if (usable_) ring_.open(*state_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  STRAIT_HD_INLINE ~Lane() { give_back(); }

  // False: the queue was made for another kind of sharing or by another version. Every call then answers invalid.
  STRAIT_HD_INLINE bool usable() const { return usable_; }

  // ---- One operation, by the group as one ---------------------------------------------------------------------------

  STRAIT_HD_INLINE Pending put(const LocalRegion& from, std::uint64_t from_offset, const RemoteRegion& to,
                               std::uint64_t to_offset, std::uint64_t bytes, const How& how = {}) {
    return one(check(inside(from, from_offset, bytes) && inside(to, to_offset, bytes), bytes), how,
               [&](std::uint64_t at, Flags flags) {
                 return write_rdma(at, wire::mlx5::Opcode::rdma_write, flags, {to.address + to_offset, to.rkey},
                                   from.address + from_offset, static_cast<std::uint32_t>(bytes), from.lkey);
               });
  }

  STRAIT_HD_INLINE Pending get(const LocalRegion& into, std::uint64_t into_offset, const RemoteRegion& from,
                               std::uint64_t from_offset, std::uint64_t bytes, const How& how = {}) {
    return one(check(inside(into, into_offset, bytes) && inside(from, from_offset, bytes), bytes), how,
               [&](std::uint64_t at, Flags flags) {
                 return write_rdma(at, wire::mlx5::Opcode::rdma_read, flags, {from.address + from_offset, from.rkey},
                                   into.address + into_offset, static_cast<std::uint32_t>(bytes), into.lkey);
               });
  }

  // Up to 8 bytes that travel in the ring itself: no local memory is read.
  template <class T>
  STRAIT_HD_INLINE Pending put_value(const T& value, const RemoteRegion& to, std::uint64_t to_offset,
                                     const How& how = {}) {
    static_assert(sizeof(T) <= 8);
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return one(check(inside(to, to_offset, sizeof(T))), how, [&](std::uint64_t at, Flags flags) {
      return write_value(at, flags, {to.address + to_offset, to.rkey}, sizeof(T), bits, true).low;
    });
  }

  // The data, and behind it `add` onto signal `signal` of the target region. The Pending is that of the signal.
  STRAIT_HD_INLINE Pending put_signal(const LocalRegion& from, std::uint64_t from_offset, const RemoteRegion& to,
                                      std::uint64_t to_offset, std::uint64_t bytes, std::uint32_t signal,
                                      std::uint64_t add, const How& how = {}) {
    if (bytes == 0) return this->signal(to, signal, add, how);
    const bool fine = inside(from, from_offset, bytes) && inside(to, to_offset, bytes) && has_signal(to, signal);
    const Remote word = signal_word(to, signal);
    return many(check(fine, bytes), 2, how, [&](std::uint64_t at, Flags flags) {
      // The payload needs no completion of its own: it is done when the signal is.
      (void)write_rdma(at, wire::mlx5::Opcode::rdma_write, static_cast<Flags>(flags & ~kSignaled),
                       {to.address + to_offset, to.rkey}, from.address + from_offset, static_cast<std::uint32_t>(bytes),
                       from.lkey);
      ring_.name_counter(at, 0);
      ring_.name_counter(at + 1, how.counter + 1);
      return write_add(at + 1, static_cast<Flags>(flags & ~kFenced), word, add);
    });
  }

  // Only the signal.
  STRAIT_HD_INLINE Pending signal(const RemoteRegion& to, std::uint32_t index, std::uint64_t add, const How& how = {}) {
    const Remote word = signal_word(to, index);
    return one(check(fits(to) && has_signal(to, index)), how,
               [&](std::uint64_t at, Flags flags) { return write_add(at, flags, word, add); });
  }

  // The old value arrives in the 8 bytes at `result`, readable once the operation is waited for.
  STRAIT_HD_INLINE Pending fetch_add(const RemoteRegion& at, std::uint64_t offset, std::uint64_t add,
                                     const LocalRegion& result, std::uint64_t result_offset, const How& how = {}) {
    return atomic(wire::mlx5::Opcode::atomic_fa, at, offset, result, result_offset, wire::be64{add}.raw(), 0, how);
  }
  STRAIT_HD_INLINE Pending compare_swap(const RemoteRegion& at, std::uint64_t offset, std::uint64_t expected,
                                        std::uint64_t desired, const LocalRegion& result, std::uint64_t result_offset,
                                        const How& how = {}) {
    return atomic(wire::mlx5::Opcode::atomic_cs, at, offset, result, result_offset, wire::be64{desired}.raw(),
                  wire::be64{expected}.raw(), how);
  }

  // A message; it needs a receive at the other end.
  STRAIT_HD_INLINE Pending send(const LocalRegion& from, std::uint64_t offset, std::uint64_t bytes,
                                const How& how = {}) {
    return message(wire::mlx5::Opcode::send, from, offset, bytes, wire::be32{0}, how);
  }
  STRAIT_HD_INLINE Pending send_imm(const LocalRegion& from, std::uint64_t offset, std::uint64_t bytes,
                                    std::uint32_t imm, const How& how = {}) {
    return message(wire::mlx5::Opcode::send_imm, from, offset, bytes, wire::be32{imm}, how);
  }

  // ---- Many at once -------------------------------------------------------------------------------------------------

  // One put per member, each with its own arguments, one reservation and one doorbell. A member that has none passes
  // bytes 0: its place in the ring is filled by a NOP. All get the Pending of the last, which is done when all are.
  STRAIT_HD_INLINE Pending put_each(const LocalRegion& from, std::uint64_t from_offset, const RemoteRegion& to,
                                    std::uint64_t to_offset, std::uint64_t bytes, const How& how = {}) {
    const bool fine =
        inside(from, from_offset, bytes) && inside(to, to_offset, bytes) && bytes <= wire::mlx5::kMaxMessageBytes;
    return each(fine, how, [&](std::uint64_t at, Flags flags) {
      if (bytes == 0) return open(at, wire::mlx5::Opcode::nop, flags, wire::be32{0}, 1);
      return write_rdma(at, wire::mlx5::Opcode::rdma_write, flags, {to.address + to_offset, to.rkey},
                        from.address + from_offset, static_cast<std::uint32_t>(bytes), from.lkey);
    });
  }
  template <class T>
  STRAIT_HD_INLINE Pending put_value_each(const T& value, const RemoteRegion& to, std::uint64_t to_offset,
                                          const How& how = {}) {
    static_assert(sizeof(T) <= 8);
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return each(inside(to, to_offset, sizeof(T)), how, [&](std::uint64_t at, Flags flags) {
      return write_value(at, flags, {to.address + to_offset, to.rkey}, sizeof(T), bits, true).low;
    });
  }

  // Lists: one reservation and one doorbell for many operations, or for half a ring of them at a time if How gives it
  // time to wait for room. The members share the work. An item with wrong arguments becomes a NOP, and the member that
  // had it is told `invalid`. A list of no items is one NOP: done when everything before it is. room_ns is the time of
  // the whole list: once it is over, or the host aborts, the Pending says so, and the parts that had room are under
  // way, from the first item on. flush() waits for them.

  // `count` pieces of `bytes`, each `from_stride` and `to_stride` behind the one before.
  STRAIT_HD_INLINE Pending put_strided(const LocalRegion& from, std::uint64_t from_offset, std::uint64_t from_stride,
                                       const RemoteRegion& to, std::uint64_t to_offset, std::uint64_t to_stride,
                                       std::uint64_t bytes, std::uint64_t count, const How& how = {}) {
    return list(count, how, [&](std::uint64_t i, std::uint64_t at, Flags flags) {
      return write_item(at, flags, from, {from_offset + i * from_stride, to_offset + i * to_stride, bytes}, to);
    });
  }
  struct Item {
    std::uint64_t from_offset, to_offset, bytes;
  };
  STRAIT_HD_INLINE Pending put_batch(const LocalRegion& from, const RemoteRegion& to, const Item* items,
                                     std::uint64_t count, const How& how = {}) {
    return list(count, how, [&](std::uint64_t i, std::uint64_t at, Flags flags) {
      return write_item(at, flags, from, items[i], to);
    });
  }
  // `count` values that travel in the ring: value_of(i) goes to offset_of(i).
  template <class ValueOf, class OffsetOf>
  STRAIT_HD_INLINE Pending put_values(std::uint64_t count, const RemoteRegion& to, ValueOf&& value_of,
                                      OffsetOf&& offset_of, const How& how = {}) {
    return list(count, how, [&](std::uint64_t i, std::uint64_t at, Flags flags) {
      const auto value = value_of(i);
      static_assert(sizeof(value) <= 8);
      const std::uint64_t offset = offset_of(i);
      std::uint64_t bits = 0;
      __builtin_memcpy(&bits, &value, sizeof(value));
      return write_value(at, flags, {to.address + offset, to.rkey}, sizeof(value), bits,
                         inside(to, offset, sizeof(value)));
    });
  }

  // ---- Order and end ------------------------------------------------------------------------------------------------

  // The next operation of this lane starts after all earlier gets and atomics of the queue are complete.
  STRAIT_HD_INLINE void fence() { fence_next_ = true; }
  // Shows the NIC everything posted with ring_later.
  STRAIT_HD_INLINE void ring() {
    group_.sync();
    if (usable_ && group_.rank() == 0) ring_.ring();
    group_.sync();
  }
  // Takes what has completed, without waiting.
  STRAIT_HD_INLINE void progress() {
    if (usable_ && group_.rank() == 0) (void)ring_.reap();
  }

  STRAIT_HD_INLINE Outcome wait(const Pending& pending, Deadline deadline) {
    // Of put_each and of lists some members may have been told `invalid` and others not: they wait together or not at
    // all, since one that stays away from the barrier leaves the others in it.
    if (!usable_ || group_.count(pending.ok()) == 0) return not_posted();
    Outcome out{};
    if (group_.rank() == 0) out = wait_for(pending.start, deadline);
    group_.sync();
    out = group_.share(out);
    if (!kAlone<G> && !pending.ok()) return not_posted();
    return out;
  }
  // Everything this lane posted is complete at the target, silent operations included.
  STRAIT_HD_INLINE Outcome flush(Deadline deadline) {
    if (!usable_) return not_posted();
    group_.sync();
    Outcome out{};
    if (group_.rank() == 0) out = flush_alone(deadline);
    group_.sync();
    return group_.share(out);
  }

  // Counter `index` has seen `at_least` operations succeed; error as soon as one that named it has failed. failure()
  // says of what.
  STRAIT_HD_INLINE Waited wait_counter(std::uint32_t index, std::uint64_t at_least, Deadline deadline) {
    if (!usable_ || index >= state_->counters) return Waited::error;
    Waited out = Waited::ok;
    if (group_.rank() == 0) {
      const CounterWords& words = state_->counter_words[index];
      bool failed = false;
      out = wait_bounded({deadline, state_->abort}, [&] {
        failed = load_acquire<kScope<S>>(&words.failed) != 0;
        if (failed || load_acquire<kScope<S>>(&words.succeeded) >= at_least) return Turn::finished;
        return ring_.reap() != 0 ? Turn::busy : Turn::idle;
      });
      if (failed) out = Waited::error;
    }
    group_.sync();
    return group_.share(out);
  }
  STRAIT_HD_INLINE CounterWords counter(std::uint32_t index) const {
    if (!usable_ || index >= state_->counters) return {0, 0};
    const CounterWords& words = state_->counter_words[index];
    return {load_acquire<kScope<S>>(&words.succeeded), load_acquire<kScope<S>>(&words.failed)};
  }

  // What the queue failed of first, as far as completions were taken; Waited::ok: of nothing. All members call it.
  STRAIT_HD_INLINE Outcome failure() const {
    if (!usable_) return not_posted();
    Outcome out{};
    const std::uint64_t packed = group_.rank() == 0 ? ring_.failure() : 0;
    if (packed != 0) {
      const Failure first = unpack(packed);
      out = {Waited::error, first.syndrome, first.syndrome, first.vendor_syndrome, first.index};
    }
    return group_.share(out);
  }

  // A signal of ours has reached `at_least`: what the peer put before it is visible to the group.
  STRAIT_HD_INLINE Seen wait_signal(const Signal& signal, std::uint64_t at_least, Deadline deadline) {
    if (!usable_ || !fits(signal)) return {Waited::error, 0};
    Seen out{};
    if (group_.rank() == 0) {
      out.waited = wait_bounded({deadline, state_->abort}, [&] {
        out.value = peek(signal.word);
        return out.value >= at_least ? Turn::finished : Turn::idle;
      });
      order_cqe_reads();
    }
    group_.sync();
    return group_.share(out);
  }

  // ---- Receives -----------------------------------------------------------------------------------------------------

  STRAIT_HD_INLINE Pending receive(const LocalRegion& into, std::uint64_t offset, std::uint64_t bytes) {
    if (!usable_ || !fits(into) || state_->receive.entries == nullptr) return {0, Posted::invalid};
    if (offset > into.length_bytes || bytes > into.length_bytes - offset) return {0, Posted::invalid};
    if (bytes > wire::mlx5::kMaxMessageBytes) return {0, Posted::too_long};
    Pending pending{0, Posted::ok};
    if (group_.rank() == 0) {
      const Piece piece{into.address + offset, static_cast<std::uint32_t>(bytes), into.lkey};
      pending = post_receive<S>(state_->receive, &piece, 1);
      if (pending.ok()) publish_receives<S>(state_->receive);
    }
    return group_.share(pending);
  }
  STRAIT_HD_INLINE Received wait_receive(Deadline deadline) {
    Received out{};
    out.waited = Waited::error;
    if (!usable_ || state_->receive.entries == nullptr) return out;
    if (group_.rank() == 0) {
      const Waited waited = wait_bounded({deadline, state_->abort},
                                         [&] { return take_message<S>(*state_, out) ? Turn::finished : Turn::idle; });
      if (waited != Waited::ok) out.waited = waited;
    }
    group_.sync();
    return group_.share(out);
  }

  // The counters go back into the queue, for the next Lane. After it this one is not usable.
  STRAIT_HD_INLINE void give_back() {
    if (usable_ && S == Sharing::one_thread) {
      group_.sync();
      if (group_.rank() == 0) ring_.give_back();
      group_.sync();
    }
    usable_ = false;
  }

 private:
  template <class Region>
  STRAIT_HD_INLINE static bool inside(const Region& region, std::uint64_t offset, std::uint64_t bytes) {
    // In this order a loop over equal pieces has one comparison in it.
    return fits(region) && bytes <= region.length_bytes && offset <= region.length_bytes - bytes;
  }

  // The control segment of the WQE at `at`; its first word as it lies in memory.
  STRAIT_HD_INLINE std::uint64_t open(std::uint64_t at, wire::mlx5::Opcode opcode, Flags flags, wire::be32 imm,
                                      std::uint32_t ds) {
    const std::uint64_t low = control_low(opcode, 0, at, ring_.qpn_shifted(), ds);
    store_segment(ring_.block(at), low, control_high(flags, imm));
    return low;
  }
  STRAIT_HD_INLINE std::uint64_t write_rdma(std::uint64_t at, wire::mlx5::Opcode opcode, Flags flags,
                                            const Remote& remote, std::uint64_t address, std::uint32_t bytes,
                                            std::uint32_t lkey) {
    std::uint8_t* const block = ring_.block(at);
    const std::uint64_t low = open(at, opcode, flags, wire::be32{0}, bytes == 0 ? 2 : 3);
    store_remote(block + 16, remote);
    if (bytes != 0) store_data(block + 32, address, bytes, lkey);
    return low;
  }
  STRAIT_HD_INLINE std::uint64_t write_add(std::uint64_t at, Flags flags, const Remote& word, std::uint64_t add) {
    std::uint8_t* const block = ring_.block(at);
    const std::uint64_t low = open(at, wire::mlx5::Opcode::atomic_fa, flags, wire::be32{0}, 4);
    store_remote(block + 16, word);
    store_segment(block + 32, wire::be64{add}.raw(), 0);
    store_data(block + 48, state_->sink_address, 8, state_->sink_lkey);
    return low;
  }
  STRAIT_HD_INLINE static bool has_signal(const RemoteRegion& to, std::uint32_t index) {
    return index < to.signals && to.signal_address != 0;
  }
  STRAIT_HD_INLINE static Remote signal_word(const RemoteRegion& to, std::uint32_t index) {
    return {to.signal_address + 8 * std::uint64_t{index}, to.signal_rkey};
  }
  STRAIT_HD_INLINE static Outcome not_posted() {
    return {Waited::error, wire::mlx5::Syndrome::local_qp_operation, {}, 0, 0};
  }
  STRAIT_HD_INLINE static Posted check(bool fine, std::uint64_t bytes = 0) {
    if (!fine) return Posted::invalid;
    return bytes > wire::mlx5::kMaxMessageBytes ? Posted::too_long : Posted::ok;
  }

  // For a reservation that did not find room: why, or within how.room_ns it does.
  STRAIT_HD_INLINE Posted wait_for_room(std::uint32_t blocks, const How& how, std::uint64_t& first) {
    if (blocks > ring_.capacity()) return Posted::too_long;
    if (how.room_ns == 0) return Posted::full;
    ring_.ring();  // what is not shown to the NIC never makes room
    return wait_for_room_until(blocks, Deadline::after_ns(how.room_ns), first);
  }
  STRAIT_HD_INLINE Posted wait_for_room_until(std::uint32_t blocks, Deadline deadline, std::uint64_t& first) {
    const Waited waited = wait_bounded({deadline, state_->abort}, [&] {
      const bool busy = ring_.reap() != 0;
      if (ring_.reserve(blocks, first)) return Turn::finished;
      return busy ? Turn::busy : Turn::idle;
    });
    if (waited == Waited::aborted) return Posted::aborted;
    return waited == Waited::ok ? Posted::ok : Posted::full;
  }
  STRAIT_HD_INLINE Posted take(std::uint32_t blocks, const How& how, std::uint64_t& first) {
    return ring_.reserve(blocks, first) ? Posted::ok : wait_for_room(blocks, how, first);
  }
  // Whoever posts takes the fence, once there is room: a refused operation leaves it for the next one.
  STRAIT_HD_INLINE Flags flags_of(const How& how) const {
    return static_cast<Flags>(how.flags | (how.silent ? kNoFlags : kSignaled) | (fence_next_ ? kFenced : kNoFlags));
  }

  // `write` fills `blocks` WQEs of one block each, and gives the last one's control word. `wrong` is what the caller
  // has found out already. One test decides on the way that is usually taken: a branch costs a GPU as much as the
  // stores.
  template <class Write>
  STRAIT_HD_INLINE Pending many(Posted wrong, std::uint32_t blocks, const How& how, Write&& write) {
    group_.sync();
    const Flags flags = flags_of(how);
    Pending pending{0, Posted::ok};
    if (group_.rank() == 0) {
      const bool good = wrong == Posted::ok && usable_ && (how.flags & ~kKnownFlags) == 0;
      std::uint64_t first = 0;
      if (good && ring_.reserve(blocks, first)) {
        pending.start = finish(first, blocks, how, write(first, flags));
      } else {
        pending.posted = good ? wait_for_room(blocks, how, first) : wrong != Posted::ok ? wrong : Posted::invalid;
        if (how.room_ns != 0 && pending.ok()) pending.start = finish(first, blocks, how, write(first, flags));
      }
    }
    return group_.share(pending);
  }
  template <class Write>
  STRAIT_HD_INLINE Pending one(Posted wrong, const How& how, Write&& write) {
    return many(wrong, 1, how, [&](std::uint64_t at, Flags flags) {
      ring_.name_counter(at, how.counter + 1);
      return write(at, flags);
    });
  }
  // A list of no items: its completion is that of what was posted before, and no counter has anything to count.
  STRAIT_HD_INLINE Pending nothing(const How& how) {
    return many(Posted::ok, 1, how, [&](std::uint64_t at, Flags flags) {
      ring_.name_counter(at, 0);
      return open(at, wire::mlx5::Opcode::nop, flags, wire::be32{0}, 1);
    });
  }
  STRAIT_HD_INLINE std::uint64_t finish(std::uint64_t first, std::uint32_t blocks, const How& how, std::uint64_t low) {
    fence_next_ = false;
    ring_.commit(first, blocks, low);
    posted(first + blocks - 1, how);
    return first + blocks - 1;
  }
  // The leader's end of a post: `last` is the newest WQE.
  STRAIT_HD_INLINE void posted(std::uint64_t last, const How& how) {
    last_ = last;
    any_ = true;
    loose_ = how.silent;
    if (!how.ring_later) ring_.ring();
  }

  // One WQE per member. Only the last asks for a completion, and none if the operation is to be silent.
  template <class Write>
  STRAIT_HD_INLINE Pending each(bool fine, const How& how, Write&& write) {
    if (!usable_ || (how.flags & ~kKnownFlags) != 0) return {0, Posted::invalid};
    const unsigned size = group_.size();
    const unsigned rank = group_.rank();
    Flags flags = flags_of(how);
    // A counter counts completions in order, so it needs no more of them either. A fence is for the first.
    if (rank + 1 != size) flags = static_cast<Flags>(flags & ~kSignaled);
    if (rank != 0) flags = static_cast<Flags>(flags & ~kFenced);
    Pending taken{0, Posted::ok};
    if (rank == 0) taken.posted = take(size, how, taken.start);
    taken = group_.share(taken);
    if (!taken.ok()) return taken;
    fence_next_ = false;
    const std::uint64_t at = taken.start + rank;
    // Wrong arguments of one member must not leave a hole in the ring.
    const std::uint64_t low = fine ? write(at, flags) : open(at, wire::mlx5::Opcode::nop, flags, wire::be32{0}, 1);
    ring_.name_counter(at, how.counter + 1);
    group_.sync();  // every member's stores come before the leader's doorbell
    const std::uint64_t last = taken.start + size - 1;
    if (rank == 0) {
      // A doorbell's index and queue count; of its WQE the leader knows everything but the length, which nobody reads.
      ring_.commit(taken.start, size, control_of(last, low));
      posted(last, how);
    }
    return {last, fine ? Posted::ok : Posted::invalid};
  }
  // Another WQE's control word made from this one: the same but for the index.
  STRAIT_HD_INLINE std::uint64_t control_of(std::uint64_t at, std::uint64_t low) const {
    const std::uint64_t index_mask = std::uint64_t{0xffff} << 8;
    const auto big = static_cast<std::uint64_t>(wire::swap_bytes(static_cast<std::uint16_t>(at & 0xffff)));
    return (low & ~index_mask) | big << 8;
  }

  struct Written {
    std::uint64_t low;  // the control word
    bool fine;
  };
  // Not a branch but another opcode where the arguments are wrong.
  STRAIT_HD_INLINE Written write_value(std::uint64_t at, Flags flags, const Remote& remote, std::uint32_t bytes,
                                       std::uint64_t bits, bool fine) {
    std::uint8_t* const block = ring_.block(at);
    const std::uint64_t low =
        open(at, fine ? wire::mlx5::Opcode::rdma_write : wire::mlx5::Opcode::nop, flags, wire::be32{0}, fine ? 3 : 1);
    store_remote(block + 16, remote);
    store_segment(block + 32, wire::be32{wire::mlx5::kInlineFlag | bytes}.raw() | bits << 32, bits >> 32);
    return {low, fine};
  }
  STRAIT_HD_INLINE Written write_item(std::uint64_t at, Flags flags, const LocalRegion& from, const Item& item,
                                      const RemoteRegion& to) {
    const bool fine = inside(from, item.from_offset, item.bytes) && inside(to, item.to_offset, item.bytes) &&
                      item.bytes <= wire::mlx5::kMaxMessageBytes;
    if (!fine || item.bytes == 0) return {open(at, wire::mlx5::Opcode::nop, flags, wire::be32{0}, 1), fine};
    return {write_rdma(at, wire::mlx5::Opcode::rdma_write, flags, {to.address + item.to_offset, to.rkey},
                       from.address + item.from_offset, static_cast<std::uint32_t>(item.bytes), from.lkey),
            true};
  }

  template <class Write>
  STRAIT_HD_INLINE Pending list(std::uint64_t count, const How& how, Write&& write) {
    if (!usable_ || (how.flags & ~kKnownFlags) != 0) return {0, Posted::invalid};
    if (count == 0) return nothing(how);
    const unsigned size = group_.size();
    const unsigned rank = group_.rank();
    const Flags flags = flags_of(how);
    const std::uint32_t half = ring_.capacity() > 1 ? ring_.capacity() / 2 : 1;
    Deadline room{0};  // one for all parts
    if (rank == 0 && how.room_ns != 0) room = Deadline::after_ns(how.room_ns);
    Pending last{0, Posted::ok};
    bool fine = true;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t left = count - done;
      const auto blocks = static_cast<std::uint32_t>(how.room_ns != 0 && left > half ? half : left > ~0u ? ~0u : left);
      Pending taken{0, Posted::ok};
      if (rank == 0 && !ring_.reserve(blocks, taken.start)) {
        if (blocks > ring_.capacity()) {
          taken.posted = Posted::too_long;
        } else if (how.room_ns == 0) {
          taken.posted = Posted::full;
        } else {
          ring_.ring();  // as in wait_for_room()
          taken.posted = wait_for_room_until(blocks, room, taken.start);
        }
      }
      taken = group_.share(taken);
      if (!taken.ok()) {
        ring();
        return taken;
      }
      fence_next_ = false;
      std::uint64_t low = 0;
      for (std::uint32_t i = rank; i < blocks; i += size) {
        // The last of each part asks for the completion, which also makes room for the next. A fence is for the first.
        Flags mine = static_cast<Flags>(flags & ~(kSignaled | kFenced));
        if (done + i == 0) mine = static_cast<Flags>(mine | (flags & kFenced));
        if (i + 1 == blocks) mine = static_cast<Flags>(mine | (left > blocks ? kSignaled : flags & kSignaled));
        ring_.name_counter(taken.start + i, how.counter + 1);
        const Written written = write(done + i, taken.start + i, mine);
        low = written.low;
        fine = fine && written.fine;
      }
      done += blocks;
      group_.sync();  // every member's stores come before the leader's doorbell
      last.start = taken.start + blocks - 1;
      if (rank == 0) {
        ring_.commit(taken.start, blocks, control_of(last.start, low));
        posted(last.start, how);
      }
    }
    if (!fine) last.posted = Posted::invalid;
    return last;
  }

  STRAIT_HD_INLINE Pending atomic(wire::mlx5::Opcode opcode, const RemoteRegion& to, std::uint64_t offset,
                                  const LocalRegion& result, std::uint64_t result_offset, std::uint64_t low_operand,
                                  std::uint64_t high_operand, const How& how) {
    const bool fine = inside(to, offset, 8) && inside(result, result_offset, 8) && (to.address + offset) % 8 == 0;
    return one(check(fine), how, [&](std::uint64_t at, Flags flags) {
      std::uint8_t* const block = ring_.block(at);
      const std::uint64_t low = open(at, opcode, flags, wire::be32{0}, 4);
      store_remote(block + 16, {to.address + offset, to.rkey});
      store_segment(block + 32, low_operand, high_operand);
      store_data(block + 48, result.address + result_offset, 8, result.lkey);
      return low;
    });
  }
  STRAIT_HD_INLINE Pending message(wire::mlx5::Opcode opcode, const LocalRegion& from, std::uint64_t offset,
                                   std::uint64_t bytes, wire::be32 imm, const How& how) {
    return one(check(inside(from, offset, bytes), bytes), how, [&](std::uint64_t at, Flags flags) {
      std::uint8_t* const block = ring_.block(at);
      const std::uint64_t low = open(at, opcode, flags, imm, bytes == 0 ? 1 : 2);
      if (bytes != 0) store_data(block + 16, from.address + offset, static_cast<std::uint32_t>(bytes), from.lkey);
      return low;
    });
  }

  STRAIT_HD_INLINE Outcome wait_for(std::uint64_t start, Deadline deadline) {
    Outcome out{};
    out.waited = wait_bounded({deadline, state_->abort}, [&] {
      if (ring_.done(start)) return Turn::finished;
      return ring_.reap() != 0 ? Turn::busy : Turn::idle;
    });
    const std::uint64_t packed = ring_.failure();
    if (out.waited != Waited::ok || packed == 0) return out;
    const Failure first = unpack(packed);
    if ((start & kFailureIndexMask) < first.index) return out;  // it was done before that
    out.waited = Waited::error;
    out.cause = first.syndrome;
    out.cause_index = first.index;
    out.vendor_syndrome = first.vendor_syndrome;
    out.syndrome = (start & kFailureIndexMask) == first.index ? first.syndrome : wire::mlx5::Syndrome::flushed;
    return out;
  }
  STRAIT_HD_INLINE Outcome flush_alone(Deadline deadline) {
    if (!any_) return {};
    if (loose_) {
      std::uint64_t at = 0;
      How how;
      const std::uint64_t now = now_ns();
      how.room_ns = deadline.at_ns > now ? deadline.at_ns - now : 1;
      const Posted room = take(1, how, at);
      if (room != Posted::ok) return {room == Posted::aborted ? Waited::aborted : Waited::timeout, {}, {}, 0, 0};
      const std::uint64_t low = open(at, wire::mlx5::Opcode::nop, kSignaled, wire::be32{0}, 1);
      ring_.name_counter(at, 0);
      ring_.commit(at, 1, low);
      posted(at, how);
    }
    ring_.ring();
    return wait_for(last_, deadline);
  }

  template <bool Own, class Unused = void>
  struct Ring {
    using Type = OwnRing;
  };
  template <class Unused>
  struct Ring<false, Unused> {
    using Type = SharedRing<S>;
  };

  QueueState* state_;
  std::uint64_t last_ = 0;  // the newest WQE this lane posted; rank 0 knows
  bool usable_ = false;
  bool any_ = false;
  bool loose_ = false;       // the newest one is silent
  bool fence_next_ = false;  // rank 0 writes what is fenced, and alone knows whether that was posted
  G group_;
  typename Ring<S == Sharing::one_thread>::Type ring_;
};

}  // namespace strait::device
