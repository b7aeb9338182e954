// SPDX-License-Identifier: Apache-2.0
// StreamEngine: work in queues, each in order, all on one thread, none waiting for another unless it was told to.
//
// A step that cannot finish yet (a flag in memory that has not its value) says so and is asked again: the other queues
// go on meanwhile. A group's *legacy* queue waits for what was given to the group's blocking queues before, and they
// for what was given to it, as a CUDA context's default stream does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "sys/clock.hpp"

namespace strait::soft::accel {

// One step of work. Finished once, and then remembered by whoever holds it.
class Step {
 public:
  // Any thread.
  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  // When it was; 0 before.
  [[nodiscard]] std::int64_t finished_ns() const { return finished_ns_.load(std::memory_order_acquire); }

 private:
  friend class StreamEngine;
  std::function<bool()> body_;  // true: done
  std::uint64_t order_ = 0;
  std::atomic<bool> finished_{false};
  std::atomic<std::int64_t> finished_ns_{0};
};

class StreamEngine {
 public:
  enum class Kind { legacy, blocking, independent };
  class Queue {
   private:
    friend class StreamEngine;
    Kind kind_ = Kind::independent;
    const void* group_ = nullptr;
    std::deque<std::shared_ptr<Step>> steps_;
    std::shared_ptr<Step> last_;
  };

  StreamEngine() = default;
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;
  ~StreamEngine();  // finishes what can be finished; never to be called in a forked child

  [[nodiscard]] std::shared_ptr<Queue> make_queue(Kind kind, const void* group);
  // `body` runs on the engine's thread until it returns true, and is then dropped with all that it holds.
  [[nodiscard]] Result<std::shared_ptr<Step>> submit(Queue& queue, std::function<bool()> body);
  // The newest step of the queue; null: there never was one.
  [[nodiscard]] std::shared_ptr<Step> last(const Queue& queue);
  // The newest steps of all queues of a group.
  [[nodiscard]] std::vector<std::shared_ptr<Step>> last_of_group(const void* group);
  void wait(const Step& step);

 private:
  [[nodiscard]] bool may_start_locked(const Queue& queue) const;
  [[nodiscard]] bool pass_locked(std::unique_lock<std::mutex>& lock, bool& waiting);
  void run_engine_thread();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  std::vector<std::weak_ptr<Queue>> queues_;
  std::vector<std::shared_ptr<Queue>> busy_;  // with steps in them: also those that their owner has dropped
  std::uint64_t order_ = 0;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace strait::soft::accel
