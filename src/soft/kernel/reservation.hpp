// SPDX-License-Identifier: Apache-2.0
// Reservation: the one lock of a dma-buf, and the fences of moves and writes that are under way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sys/clock.hpp"

namespace strait::soft::kernel {

// Signalled once, by whoever does the work; may be waited for with the reservation lock held, so who signals takes
// none.
class Fence {
 public:
  void signal() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool signalled() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  // False: the deadline passed first.
  [[nodiscard]] bool wait(const sys::Deadline& deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
};

class Reservation {
 public:
  void lock() {
    mutex_.lock();
    holder_ = std::this_thread::get_id();
  }
  void unlock() {
    holder_ = std::thread::id();
    mutex_.unlock();
  }
  [[nodiscard]] bool held_here() const { return holder_.load() == std::this_thread::get_id(); }

  // All with the lock held. A kernel fence is of a move: contents are not to be trusted before it.
  void add_kernel_fence(std::shared_ptr<Fence> fence) { fences_.push_back(std::move(fence)); }
  [[nodiscard]] bool wait_kernel_fences(const sys::Deadline& deadline);

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> holder_{};
  std::vector<std::shared_ptr<Fence>> fences_;
};

}  // namespace strait::soft::kernel
