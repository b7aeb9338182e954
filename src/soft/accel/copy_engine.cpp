// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/copy_engine.hpp"

#include <cstring>
#include <utility>

#include "sys/quiet_thread.hpp"

namespace strait::soft::accel {

CopyEngine::~CopyEngine() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  worker_.join();
}

void CopyEngine::perform(const Job& job) {
  // The two ranges may overlap within one allocation.
  std::memmove(job.to.bytes, job.from.bytes, job.length_bytes);
  bytes_copied_.add(job.length_bytes);
  copies_done_.add();
}

Result<std::uint64_t> CopyEngine::submit(Side to, Side from, std::uint64_t length_bytes) {
  Job job{std::move(to), std::move(from), length_bytes};
  // Acquire: what earlier copies wrote is seen by this one, whoever performed them.
  if (length_bytes <= kInlineBytes &&
      completed_.load(std::memory_order_acquire) == submitted_.load(std::memory_order_relaxed)) {
    perform(job);
    return std::uint64_t{0};
  }
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!worker_.joinable()) {
      STRAIT_TRY(worker_, sys::start_quiet_thread([this] { run_worker_thread(); }));
    }
    queue_.push_back(std::move(job));
    ticket = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(ticket, std::memory_order_relaxed);
  }
  wake_.notify_one();
  return ticket;
}

CopyEngine::State CopyEngine::state(std::uint64_t ticket) const {
  if (ticket <= completed_.load(std::memory_order_acquire)) return State::finished;
  return ticket <= submitted_.load(std::memory_order_relaxed) ? State::running : State::unknown;
}

void CopyEngine::run_worker_thread() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;  // stopped, and nothing left to finish
    {
      const Job job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      perform(job);
      // Release: who sees the ticket finished sees the bytes. The job still holds its memory until the next line.
      completed_.fetch_add(1, std::memory_order_release);
    }
    lock.lock();
  }
}

}  // namespace strait::soft::accel
