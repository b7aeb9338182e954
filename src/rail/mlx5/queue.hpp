// SPDX-License-Identifier: Apache-2.0
// Queue: one RC queue pair with its completion queue, the memory both live in, and the ring code over it.
//
// Send and receive completions share one ring that is large enough for every entry of both, so it cannot overrun. The
// rings are used by one thread at a time (device::Sharing::one_thread): whoever owns the Queue sees to that. connect,
// fail and describe may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "rail/mlx5/nic.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "sys/mapping.hpp"

namespace strait::rail {

inline constexpr auto kOwner = device::Sharing::one_thread;

struct QueueShape {
  std::uint32_t sq_blocks = 0;   // power of two
  std::uint32_t rq_entries = 0;  // power of two, or 0: no receives
};

class Queue {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Queue>> make(const Nic& nic, QueueShape shape);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  // Work under way is thrown away; after it no memory is touched through this queue.
  ~Queue();

  [[nodiscard]] Status connect(const strait_nic_connect_request& request) const;
  // Everything outstanding completes with "flushed", now.
  void fail() const;
  // "ring grant to process 4711 (one copy)"
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] std::uint32_t qpn() const { return qp_.qpn; }
  [[nodiscard]] const Nic& nic() const { return nic_; }
  [[nodiscard]] device::SendRing& send() { return send_; }
  [[nodiscard]] const device::SendRing& send() const { return send_; }
  [[nodiscard]] device::ReceiveRing& receive() { return receive_; }
  [[nodiscard]] device::CompletionRing& completions() { return completions_; }

  // Shows the NIC what was posted and, when the NIC is software, lets it start on this very thread.
  void ring() {
    expect_completions();
    device::ring_doorbell<kOwner>(send_);
    nic_.drive(qp_.qpn);
  }
  std::int32_t drive() const { return nic_.drive(qp_.qpn); }
  // The same for receives. A software NIC looks for them when a message comes, and need not be told.
  void show_receives() {
    expect_completions();
    device::publish_receives<kOwner>(receive_);
    if (send_.reach != device::Reach::cpu) nic_.drive(qp_.qpn);
  }
  // Before anything that was posted is shown to the NIC: entries of the completion ring that it may write to, and the
  // one behind them, are marked as not written. Not all at once: a queue that is hardly used takes hardly any memory.
  void expect_completions() {
    if (send_.slots.reserved + receive_.slots.reserved >= marked_) [[unlikely]]
      mark_completions();
  }

 private:
  explicit Queue(const Nic& nic) : nic_(nic) {}
  [[nodiscard]] Status create(QueueShape shape);
  void mark_completions();

  const Nic& nic_;
  sys::Mapping memory_;  // send ring, completion ring, receive ring, records; outlives the NIC's objects
  std::uint32_t cqn_ = 0;
  strait_nic_qp qp_{};
  bool has_cq_ = false;
  bool has_qp_ = false;
  std::uint64_t marked_ = 0;  // as many entries in the first turn of the completion ring; UINT64_MAX: all
  alignas(64) device::SendRing send_{};
  alignas(64) device::ReceiveRing receive_{};
  alignas(64) device::CompletionRing completions_{};
};

}  // namespace strait::rail
