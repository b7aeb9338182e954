// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/stream_engine.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sys/quiet_thread.hpp"

namespace strait::soft::accel {
namespace {

constexpr std::chrono::microseconds kAskAgain{50};  // steps that wait for a value in memory: nobody tells when it comes

}  // namespace

StreamEngine::~StreamEngine() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  worker_.join();
}

std::shared_ptr<StreamEngine::Queue> StreamEngine::make_queue(Kind kind, const void* group) {
  auto queue = std::make_shared<Queue>();
  queue->kind_ = kind;
  queue->group_ = group;
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const auto& each) { return each.expired(); });
  queues_.push_back(queue);
  return queue;
}

Result<std::shared_ptr<Step>> StreamEngine::submit(Queue& queue, std::function<bool()> body) {
  auto step = std::make_shared<Step>();
  step->body_ = std::move(body);
  {
    const std::lock_guard lock(mutex_);
    if (!worker_.joinable()) {
      STRAIT_TRY(worker_, sys::start_quiet_thread([this] { run_engine_thread(); }));
    }
    if (queue.steps_.empty()) {
      const auto found = std::ranges::find_if(queues_, [&](const auto& each) { return each.lock().get() == &queue; });
      if (found == queues_.end()) return fail(Code::invalid, "the queue belongs to another engine");
      busy_.push_back(found->lock());
    }
    step->order_ = ++order_;
    queue.steps_.push_back(step);
    queue.last_ = step;
  }
  wake_.notify_one();
  return step;
}

std::shared_ptr<Step> StreamEngine::last(const Queue& queue) {
  const std::lock_guard lock(mutex_);
  return queue.last_;
}

std::vector<std::shared_ptr<Step>> StreamEngine::last_of_group(const void* group) {
  std::vector<std::shared_ptr<Step>> steps;
  const std::lock_guard lock(mutex_);
  for (const auto& queue : busy_) {
    if (queue->group_ == group) steps.push_back(queue->last_);
  }
  return steps;
}

void StreamEngine::wait(const Step& step) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return step.finished(); });
}

bool StreamEngine::may_start_locked(const Queue& queue) const {
  if (queue.kind_ == Kind::independent) return true;
  const std::uint64_t order = queue.steps_.front()->order_;
  const Kind other = queue.kind_ == Kind::legacy ? Kind::blocking : Kind::legacy;
  return std::ranges::none_of(busy_, [&](const auto& each) {
    return each->kind_ == other && each->group_ == queue.group_ && !each->steps_.empty() &&
           each->steps_.front()->order_ < order;
  });
}

// Every busy queue once. True: something was finished.
bool StreamEngine::pass_locked(std::unique_lock<std::mutex>& lock, bool& waiting) {
  bool progress = false;
  const std::vector<std::shared_ptr<Queue>> turn = busy_;
  for (const auto& queue : turn) {
    if (queue->steps_.empty() || !may_start_locked(*queue)) continue;
    const std::shared_ptr<Step> step = queue->steps_.front();
    lock.unlock();
    const bool done = step->body_();
    if (done) step->body_ = nullptr;  // what it holds is let go of before anybody hears that it is done
    lock.lock();
    if (!done) {
      waiting = true;
      continue;
    }
    queue->steps_.pop_front();
    step->finished_ns_.store(sys::now_ns(), std::memory_order_relaxed);
    step->finished_.store(true, std::memory_order_release);
    progress = true;
  }
  if (progress) {
    std::erase_if(busy_, [](const auto& queue) { return queue->steps_.empty(); });
    finished_.notify_all();
  }
  return progress;
}

void StreamEngine::run_engine_thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !busy_.empty(); });
    bool waiting = false;
    if (!busy_.empty() && pass_locked(lock, waiting)) continue;
    if (stop_) return;
    if (waiting) wake_.wait_for(lock, kAskAgain);
  }
}

}  // namespace strait::soft::accel
