// SPDX-License-Identifier: Apache-2.0
#include "node/leases.hpp"

#include <algorithm>

#include "node/core.hpp"
#include "sys/pause.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::node {
namespace {

constexpr std::int64_t kEagerNs = 50'000;     // after the last work: no system call between two looks
constexpr std::uint32_t kLooksPerClock = 64;  // of the eager ones
constexpr std::uint32_t kYieldTurn = 64;      // pause_turn() then lets others run and does not sleep

}  // namespace

void Doorbells::add(rail::DeviceQueue& queue) {
  const Locked lock(mutex_);
  queues_.push_back(&queue);
  count_.store(queues_.size(), std::memory_order_relaxed);
}

void Doorbells::remove(const rail::DeviceQueue& queue) {
  const Locked lock(mutex_);
  std::erase(queues_, &queue);
  count_.store(queues_.size(), std::memory_order_relaxed);
}

std::int32_t Doorbells::ring_all() {
  const Locked lock(mutex_);
  std::int32_t rung = 0;
  for (rail::DeviceQueue* queue : queues_) rung += queue->ring_for_posters();
  return rung;
}

Result<std::uint64_t> Leases::begin(Looked queue) {
  const Locked changing(changing_);
  if (stopped_) return fail(Code::gone, "the Node of this device queue was closed");
  std::uint64_t lease = 0;
  {
    const Locked lock(list_mutex_);
    lease = next_++;
    held_[lease] = queue;
    changes_.fetch_add(1);
  }
  if (thread_.joinable()) return lease;
  stopping_.store(false);
  auto started = sys::start_quiet_thread([this] { run(); });
  if (!started) {
    const Locked lock(list_mutex_);
    held_.erase(lease);
    return started.error();
  }
  thread_ = std::move(*started);
  return lease;
}

// The last one ends the thread; otherwise the thread has taken the new list.
void Leases::settle_locked() {
  bool none = false;
  std::uint64_t change = 0;
  {
    const Locked lock(list_mutex_);
    none = held_.empty();
    change = changes_.fetch_add(1) + 1;
  }
  if (!thread_.joinable()) return;
  if (none) {
    stopping_.store(true);
    thread_.join();
    return;
  }
  for (std::uint32_t turn = 0; seen_.load() < change; ++turn) sys::pause_turn(turn);
}

void Leases::end(std::uint64_t lease) {
  const Locked changing(changing_);
  {
    const Locked lock(list_mutex_);
    if (held_.erase(lease) == 0) return;
  }
  settle_locked();
}

void Leases::end_all_of(Looked queue) {
  const Locked changing(changing_);
  {
    const Locked lock(list_mutex_);
    if (std::erase_if(held_, [&queue](const auto& entry) { return entry.second == queue; }) == 0) return;
  }
  settle_locked();
}

void Leases::stop() {
  if (mark_.in_child()) {
    // The thread object names a thread of the parent: detaching it is the only way to let go of it without joining.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  const Locked changing(changing_);
  stopped_ = true;
  {
    const Locked lock(list_mutex_);
    held_.clear();
  }
  settle_locked();
}

void Leases::run() {
  std::vector<Looked> queues;
  std::int64_t last_work_ns = sys::now_ns();
  bool eager = true;
  for (std::uint32_t look = 0; !stopping_.load(std::memory_order_relaxed); ++look) {
    if (changes_.load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed)) {
      const Locked lock(list_mutex_);
      queues.clear();
      for (const auto& [lease, queue] : held_) {
        if (std::find(queues.begin(), queues.end(), queue) == queues.end()) queues.push_back(queue);
      }
      seen_.store(changes_.load());
    }
    // As a caller that polls: the progress thread keeps away meanwhile, and is roused when it slept.
    core_.poll_count.store(core_.poll_count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::int32_t did = 0;
    for (const Looked& queue : queues)
      did += queue.relay != nullptr ? queue.relay->ring_for_posters() : queue.nic->drive(queue.qpn);
    core_.sleeper().rouse();
    if (did != 0) {
      eager = true;
      last_work_ns = 0;
      continue;
    }
    if (last_work_ns == 0) last_work_ns = sys::now_ns();
    if (eager && look % kLooksPerClock == 0) eager = sys::now_ns() - last_work_ns < kEagerNs;
    sys::pause_turn(eager ? 0 : kYieldTurn);
  }
}

}  // namespace strait::node
