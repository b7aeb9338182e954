// SPDX-License-Identifier: Apache-2.0
// The handle of a queue that kernels or grids of CPU threads post to: its rings, where its posters keep their state,
// and what was done so that they reach both.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "buffer/host_pages.hpp"
#include "buffer/memory.hpp"
#include "buffer/providers.hpp"
#include "node/leases.hpp"
#include "rail/mlx5/device_queue.hpp"
#include "rendezvous/client.hpp"
#include "strait/c.h"
#include "strait/device/queue.hpp"
#include "sys/mapping.hpp"

namespace strait::node {
class Core;
}

struct strait_device_queue {
  std::shared_ptr<strait::node::Core> node;
  std::shared_ptr<strait::rendezvous::Client> client;
  std::string peer_name;
  std::string path;
  std::unique_ptr<strait::rail::DeviceQueue> queue;
  std::uint8_t rail = 0;  // the NIC it goes over, here and at the far end
  std::uint8_t far_rail = 0;
  bool here = true;                       // posted to by CPUs of this process
  strait::buffer::Providers::Place near;  // otherwise by kernels of this device
  std::string not_rung_by_poster;         // why the device cannot ring the NIC, and a CPU does it; empty: it can
  std::uint64_t state_address = 0;        // of the QueueState, as posters call it
  strait::sys::Mapping state_here;
  strait::buffer::Memory state_there;
  std::mutex mutex;  // shutting, and the list below
  bool closed = false;
  std::vector<strait::buffer::HostPages::Hold> holds;          // given back in reverse
  std::vector<std::pair<const void*, std::uint64_t>> signals;  // pages of signals that were reached: where, seen where

  ~strait_device_queue() { shut(); }
  // Ends waits, takes the device's hands off this process's pages, destroys the queue pair: in that order, because the
  // doorbell's page goes with the queue pair. The memory stays, for posters that have not looked yet.
  void shut();
  // Where the posters find host memory of this process.
  [[nodiscard]] strait::Result<std::uint64_t> reach(const void* host, std::uint64_t length_bytes, std::uint32_t flags);
  // What a lease has a thread look at.
  [[nodiscard]] strait::node::Leases::Looked looked() const {
    return {&queue->nic(), queue->qpn(), queue->relayed() ? queue.get() : nullptr};
  }
  // The first failure that a poster took from the completion ring; 0: none.
  [[nodiscard]] strait::Result<std::uint64_t> failure_word(strait::sys::Deadline deadline);
};

struct strait_gpu_lease {
  std::shared_ptr<strait::node::Core> node;
  std::uint64_t id = 0;
};

namespace strait::node {

// Code::gone when its Node was closed, or in a forked child.
[[nodiscard]] Status queue_usable(strait_device_queue& queue);
// What failure_word() means, as a sentence.
[[nodiscard]] Error why_queue_failed(const strait_device_queue& queue, std::uint64_t word);
[[nodiscard]] Result<device::LocalRegion> local_handle(const strait_device_queue& queue, const strait_slice& slice);
[[nodiscard]] Result<device::RemoteRegion> remote_handle(const strait_device_queue& queue, const strait_target& target);
[[nodiscard]] Result<device::Signal> signal_handle(strait_device_queue& queue, strait_region& region,
                                                   std::uint32_t index);

}  // namespace strait::node
