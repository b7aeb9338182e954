// SPDX-License-Identifier: Apache-2.0
// DeviceQueue: an RC queue pair whose rings somebody else posts to: a kernel on an accelerator, or a grid of CPU
// threads.
//
// The rings, their records and the abort word lie in one mapping of whole pages, so that it can be made reachable for
// the poster at once and holds nothing of anybody else's. What only posters use (counters, marks) is the state: this
// class says what it begins as, and whoever knows the poster's memory puts it there. Each direction has a completion
// ring of its own, large enough for all that its queue holds: it cannot overrun, so nobody has to tell the NIC how far
// it was read.
//
// Threads: any, except that close() and the destructor are alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/error.hpp"
#include "rail/mlx5/nic.hpp"
#include "strait/device/queue.hpp"
#include "sys/mapping.hpp"

namespace strait::rail {

struct DeviceQueueShape {
  device::Sharing sharing = device::Sharing::one_thread;
  std::uint32_t sq_blocks = 0;   // power of two
  std::uint32_t rq_entries = 0;  // power of two, or 0: no receives
  std::uint32_t counters = 0;
};

// Where the poster finds things: its own addresses, which need not be this process's.
struct PosterView {
  std::uint64_t rings = 0;  // the first byte of rings()
  std::uint64_t doorbell = 0;
  std::uint64_t state = 0;  // state_bytes() of memory, 64-byte aligned
};

class DeviceQueue {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DeviceQueue>> make(const Nic& nic, DeviceQueueShape shape);
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue() { close(); }

  [[nodiscard]] Status connect(const strait_nic_connect_request& request) const;
  // Everything outstanding completes with "flushed", now.
  void fail() const;
  // The queue pair goes; the rings stay until this object does, since a poster may still look at them.
  void close();
  // "ring grant to process 4711 (one copy)"
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] std::uint32_t qpn() const { return qp_.qpn; }
  [[nodiscard]] const Nic& nic() const { return nic_; }
  [[nodiscard]] const DeviceQueueShape& shape() const { return shape_; }
  [[nodiscard]] std::span<std::byte> rings() const { return {memory_.data(), memory_.size()}; }
  [[nodiscard]] void* doorbell() const { return qp_.doorbell; }
  // For posters that cannot reach the doorbell, a register of the NIC: they are given a word beside the rings in its
  // place, and ring_for_posters() passes on what they store there. Before prepare_state().
  void relay_doorbell() { relayed_ = true; }
  [[nodiscard]] bool relayed() const { return relayed_; }
  // Rings the NIC if they have rung since: 1.
  std::int32_t ring_for_posters();
  // Ends every wait of the posters while it is not 0.
  void abort(bool raise) const;

  [[nodiscard]] std::size_t state_bytes() const;
  // Fills `image`, state_bytes() long: what the poster's state memory begins as. The QueueState is its first part.
  [[nodiscard]] Status prepare_state(const PosterView& view, std::span<std::byte> image) const;

 private:
  DeviceQueue(const Nic& nic, DeviceQueueShape shape) : nic_(nic), shape_(shape) {}
  [[nodiscard]] Status create();
  [[nodiscard]] Status create_cq(std::uint32_t entries, std::size_t ring_at, std::size_t record_at, std::uint32_t& cqn);

  // Offsets in the mapping.
  struct Layout {
    std::size_t sq = 0, send_cq = 0, rq = 0, receive_cq = 0, record = 0, send_cq_record = 0, receive_cq_record = 0,
                abort = 0, sink = 0, doorbell = 0, bytes = 0;
  };
  [[nodiscard]] Layout lay_out() const;

  const Nic& nic_;
  const DeviceQueueShape shape_;
  Layout at_;
  sys::Mapping memory_;  // outlives the NIC's objects
  MemoryKey sink_;
  std::uint32_t send_cqn_ = 0;
  std::uint32_t receive_cqn_ = 0;
  strait_nic_qp qp_{};
  bool has_send_cq_ = false;
  bool has_receive_cq_ = false;
  bool has_qp_ = false;
  bool relayed_ = false;
  std::mutex passing_on_;        // the next two
  std::uint64_t passed_on_ = 0;  // the doorbell
  std::uint32_t shown_ = 0;      // the record with it
};

}  // namespace strait::rail
