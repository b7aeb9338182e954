// SPDX-License-Identifier: Apache-2.0
// Leases: while one is held for a device queue, a thread of ours looks at its rings for the NIC, or rings for posters
// that cannot reach the NIC's doorbell. A GPU's stores cannot wake anybody, so the thread polls without sleeping;
// without leases there is no such thread, and nothing is polled on a queue's behalf. What is posted then is found by
// whoever drives the NIC for another reason; Doorbells sees to those whose doorbell the NIC does not hear.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "rail/mlx5/device_queue.hpp"
#include "rail/mlx5/nic.hpp"
#include "sys/fork.hpp"

namespace strait::node {

class Core;

// Queues whose posters cannot reach the NIC's doorbell. Whoever drives the Node's NICs rings for them; where there are
// none that is one load.
class Doorbells {
 public:
  void add(rail::DeviceQueue& queue);
  // When it returns nobody rings for this queue here. Unknown: nothing.
  void remove(const rail::DeviceQueue& queue);
  // How many doorbells were passed on.
  std::int32_t ring_for_posters() { return count_.load(std::memory_order_relaxed) == 0 ? 0 : ring_all(); }

 private:
  std::int32_t ring_all();

  Mutex mutex_;
  std::vector<rail::DeviceQueue*> queues_ STRAIT_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // of them
};

class Leases {
 public:
  explicit Leases(Core& core) : core_(core) {}
  ~Leases() { stop(); }
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // A queue, and the NIC whose it is.
  struct Looked {
    const rail::Nic* nic = nullptr;
    std::uint32_t qpn = 0;
    rail::DeviceQueue* relay =
        nullptr;  // whose doorbell is passed on; null: the NIC is driven, and finds what is there
    friend bool operator==(const Looked&, const Looked&) = default;
  };
  // Which one, for end(). Code::gone after stop().
  [[nodiscard]] Result<std::uint64_t> begin(Looked queue);
  // When it returns the thread has looked at this queue for the last time on behalf of this lease. Unknown: nothing.
  void end(std::uint64_t lease);
  void end_all_of(Looked queue);
  // Ends all of them, for good: the NICs are about to go.
  void stop();

 private:
  void run();
  void settle_locked() STRAIT_REQUIRES(changing_);

  Core& core_;
  const sys::ForkMark mark_;
  Mutex changing_;  // who begins or ends; held while a thread is started or joined
  bool stopped_ STRAIT_GUARDED_BY(changing_) = false;
  Mutex list_mutex_;
  std::map<std::uint64_t, Looked> held_ STRAIT_GUARDED_BY(list_mutex_);
  std::uint64_t next_ STRAIT_GUARDED_BY(list_mutex_) = 1;
  std::atomic<std::uint64_t> changes_{0};  // of held_
  std::atomic<std::uint64_t> seen_{0};     // by the thread, after which it knows no older list
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace strait::node
