// SPDX-License-Identifier: Apache-2.0
// Placement: where a machine with several NUMA nodes is wished to have this Node's memory, rings and thread. Near its
// first NIC where that says where it is; memory otherwise near the CPU that asks for it, and then the rest as the
// kernel likes. Nothing is done, and a reason kept, where there is one node or the kernel refuses.
//
// Threads: any.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "sys/numa.hpp"

namespace strait::node {

class Placement {
 public:
  // `option`: "auto", "off" or a node's number. `nic_node` -1: it does not say, or there is none.
  [[nodiscard]] static Result<Placement> make(const std::string& option, const std::string& sysfs,
                                              const std::string& nic, int nic_node,
                                              const sys::NumaCalls& calls = sys::real_numa_calls());
  Placement() = default;
  Placement(Placement&& other) noexcept;
  Placement& operator=(Placement&& other) noexcept;

  // Host memory that was allocated just now, whole pages.
  void place_memory(void* address, std::size_t length_bytes);
  // The calling thread, which is the Node's own.
  void place_thread();
  // Rings that are made while the answer lives: NodeWish(ring_node()).
  [[nodiscard]] int ring_node() const { return off_because_.empty() ? node_ : -1; }

  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  [[nodiscard]] std::string text() const;     // "on NUMA node 1, near mlx5_0"
  [[nodiscard]] std::string refused() const;  // the first thing that the kernel did not do; empty: it did all
  [[nodiscard]] std::uint64_t placed() const { return placed_.load(std::memory_order_relaxed); }

 private:
  void note(const Status& status);

  const sys::NumaCalls* calls_ = &sys::real_numa_calls();
  std::vector<int> nodes_;
  std::vector<int> cpus_;  // of node_
  int node_ = -1;          // -1: that of the CPU that asks
  std::string near_;       // whom that is near; empty: it was asked for by number
  std::string off_because_ = "the Node is not open";
  std::atomic<std::uint64_t> placed_{0};
  mutable Mutex mutex_;
  std::string refused_ STRAIT_GUARDED_BY(mutex_);
};

}  // namespace strait::node
