// SPDX-License-Identifier: Apache-2.0
// Rings in memory that the machine knows word by word, the device that serves them, and what must hold whenever a word
// is stored. Scenarios (scenarios.hpp) add the threads.
//
// Every request carries a number of its own in each of its segments, so that a WQE made of two laps is seen; every CQE
// likewise. What is checked:
//   a WQE below the published index is whole when the device reads it (and so is the record when a doorbell arrives);
//   record and doorbell only go forward, past committed entries only: each entry is shown once, and in order;
//   completions are counted only for what the device has executed;
//   no slot is overwritten while the device may still be reading it, no CQE while its reader may (memory.hpp);
//   a polled CQE has the fields of that CQE and of no earlier one;
//   in the end everything reserved has been shown and executed, and no thread is left waiting.
#pragma once

#include <array>
#include <cstdint>

#include "explore/machine.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/lane.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"

namespace explore {

namespace sd = strait::device;
namespace sw = strait::wire;
namespace mlx5 = strait::wire::mlx5;

inline constexpr std::uint32_t kQpn = 0xa1b2;
inline constexpr std::uint32_t kMostBlocks = 4;
inline constexpr std::uint32_t kMostEntries = 32;

enum class Cq { none, normal, collapsed };

struct Shape {
  bool receives = false;
  bool shared = true;  // counters and marks are words of the machine
  std::uint32_t log_blocks = 1;
  Cq cq = Cq::none;
  std::uint32_t log_cqes = 0;
  bool lands = false;  // the device also writes a word of payload per request
  bool lanes = false;  // posted to by device::Lane, whose completion ring holds all there can be and tells nobody
  std::uint64_t first = 0;
  std::uint64_t fails_at = ~std::uint64_t{0};  // this request fails, and all behind it are flushed
};

class World : public Program {
 public:
  explicit World(const Shape& shape) : shape_(shape) {}

  void stored(Machine& m, unsigned cell) override;
  void finish(Machine& m) override;

 protected:
  // Memory and cells as they are before the first post.
  void make(Machine& m);
  // The device, as a thread: notices the doorbell or the record, whichever it likes, and executes what is published.
  void serve();

  // ---- For the posters ----
  // A request with the next number; commits it in the ground truth. Says what the ring said.
  template <sd::Sharing S>
  sd::Pending post(std::uint32_t number) {
    machine().enter(Call::post);
    sd::Pending p{};
    if (shape_.receives) {
      p = sd::post_receive<S>(receive, sd::Piece{number, number, number});
    } else {
      const std::uint64_t payload = ~std::uint64_t{number};
      p = sd::post_write_inline<S>(send, {number, number}, &payload, 8, sd::kSignaled);
    }
    if (p.ok()) committed(p.start, number);
    return p;
  }
  template <sd::Sharing S>
  void ring() {
    machine().enter(Call::ring);
    if (shape_.receives)
      sd::publish_receives<S>(receive);
    else
      sd::ring_doorbell<S>(send);
  }
  // Polls the normal ring once, checks the CQE, counts the completion.
  template <sd::Sharing S>
  bool reap() {
    machine().enter(Call::reap);
    sd::Completion c;
    const sd::Polled polled = sd::poll(completions, c);
    if (polled == sd::Polled::empty) return false;
    check(polled, c);
    const bool known = shape_.receives ? sd::take_receive<S>(receive, c.wqe_counter).known
                                       : sd::complete_up_to<S>(send, c.wqe_counter).known;
    if (!known) machine().violation("a completion of a request in flight is called unknown: %u", c.wqe_counter);
    if (!shape_.shared && slots().completed > executed_) machine().violation("completions are ahead of the device");
    return true;
  }
  void check(sd::Polled polled, const sd::Completion& c);
  const sd::Slots& slots() const { return shape_.receives ? receive.slots : send.slots; }
  // The payload the device wrote for this request, by a thread that knows it complete.
  void check_landed(std::uint64_t start);

  Shape shape_;
  // The handle that kernels are given. Every number that a Lane posts names counter 0.
  sd::Queue queue() { return {sd::head_of<sd::Queue>(), state.sharing, 0, &state}; }
  template <sd::Sharing S>
  sd::Pending try_by(sd::Lane<S>& lane, std::uint32_t number, std::uint64_t room_ns = 0) {
    machine().enter(Call::post);
    sd::How how;
    how.counter = 0;
    how.ring_later = true;
    how.room_ns = room_ns;
    const sd::RemoteRegion to{sd::head_of<sd::RemoteRegion>(), number, 8, 0, number, 0, 0, 0};
    const sd::Pending p = lane.put_value(~std::uint64_t{number}, to, 0, how);
    if (p.ok()) committed(p.start, number);
    return p;
  }
  unsigned cqe_own(std::uint64_t i) const { return cqes_[i].own; }

  sd::QueueState state{};
  sd::SendRing& send = state.send;
  sd::ReceiveRing receive{};
  sd::CompletionRing& completions = state.sends;
  sd::CounterWords counter_{};
  unsigned counted_ = 0, failed_ = 0, reaper_ = 0;  // where threads share: cells of what it counts, and of who reaps
  std::array<unsigned, kMostBlocks * 8> wqe_{};
  std::array<unsigned, kMostBlocks> marks_{}, landing_{};
  unsigned record_ = 0, doorbell_ = 0, reserved_ = 0, rung_ = 0, completed_ = 0, tail_ = 0;

  // ---- Ground truth, which no thread of the ring code sees ----
  std::array<std::uint32_t, kMostEntries> number_{};  // 0: not committed; counted from shape_.first
  std::uint64_t executed_ = 0, produced_ = 0, polled_ = 0;

 private:
  void committed(std::uint64_t start, std::uint32_t number);
  std::uint32_t number_of(std::uint64_t index) const { return number_[index - shape_.first]; }
  std::uint64_t widened(std::uint32_t index) const {
    return sd::widen(shape_.first, static_cast<std::uint16_t>(index));
  }
  void forward_only(Machine& m, unsigned cell);
  [[nodiscard]] std::uint64_t rung_by(std::uint64_t doorbell) const;
  void execute(std::uint64_t index);
  void complete(std::uint64_t index, std::uint32_t number);

  alignas(64) std::array<std::uint8_t, kMostBlocks * 64> blocks_memory_{};
  alignas(64) std::array<std::uint8_t, 2 * 64> cqe_memory_{};
  std::array<std::uint64_t, kMostBlocks> marks_memory_{}, landing_memory_{};
  std::array<std::uint32_t, kMostBlocks> counter_of_{};
  mlx5::QueueRecord record_memory_{};
  mlx5::CqRecord consumer_memory_{};
  std::uint64_t doorbell_memory_ = 0;
  // Cells of one CQE: user index and immediate, byte count, qpn, counter; op_own.
  struct CqeCells {
    unsigned user, bytes, qpn, counter, own;
  };
  std::array<CqeCells, 2> cqes_{};
  unsigned consumer_ = 0;
};

}  // namespace explore
