// SPDX-License-Identifier: Apache-2.0
// CopyEngine: moves bytes in the order in which they were asked for, on a thread of its own.
//
// The thread starts with the first copy that is worth it. A small copy that finds the engine idle is done at once by
// the caller; behind others it waits its turn, so that one caller's copies never overtake each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "soft/accel/arena.hpp"

namespace strait::soft::accel {

// One side of a copy. Device memory is held: freed meanwhile, it lives until the copy is done.
struct Side {
  std::byte* bytes = nullptr;
  std::shared_ptr<Allocation> held;  // null: host memory
};

class CopyEngine {
 public:
  static constexpr std::uint64_t kInlineBytes = 4096;

  CopyEngine() = default;
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;
  ~CopyEngine();  // finishes what was queued; never to be called in a forked child

  // Ticket 0: finished already.
  [[nodiscard]] Result<std::uint64_t> submit(Side to, Side from, std::uint64_t length_bytes);

  enum class State { running, finished, unknown };
  [[nodiscard]] State state(std::uint64_t ticket) const;
  [[nodiscard]] std::uint64_t bytes_copied() const { return bytes_copied_.load(); }
  [[nodiscard]] std::uint64_t copies_done() const { return copies_done_.load(); }

 private:
  struct Job {
    Side to;
    Side from;
    std::uint64_t length_bytes = 0;
  };
  void perform(const Job& job);
  void run_worker_thread();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  bool stop_ = false;
  std::thread worker_;
  // Tickets count up by one and finish in order. submitted_ changes under the mutex; completed_ only on the worker.
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
  Counter bytes_copied_;
  Counter copies_done_;
};

}  // namespace strait::soft::accel
