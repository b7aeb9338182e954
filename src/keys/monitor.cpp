// SPDX-License-Identifier: Apache-2.0
#include "keys/monitor.hpp"

#include "keys/entry.hpp"
#include "sys/pause.hpp"
#include "sys/quiet_thread.hpp"
#include "sys/stream.hpp"

namespace strait::keys {

Result<std::unique_ptr<Monitor>> Monitor::start(Forget forget, Reap reap) {
  STRAIT_TRY(sys::UserFault fault, sys::UserFault::open());
  std::unique_ptr<Monitor> monitor(new Monitor(std::move(fault), std::move(forget), std::move(reap)));
  STRAIT_TRY(monitor->stop_, sys::Event::make());
  STRAIT_TRY(monitor->work_, sys::Event::make());
  Monitor* const self = monitor.get();
  STRAIT_TRY(monitor->worker_, sys::start_quiet_thread([self] { self->run_worker(); }));
  STRAIT_TRY(monitor->reader_, sys::start_quiet_thread([self] { self->run_reader(); }));
  return monitor;
}

Monitor::~Monitor() {
  if (mark_.in_child()) {  // the threads are the parent's
    if (reader_.joinable()) reader_.detach();
    if (worker_.joinable()) worker_.detach();
    return;
  }
  stopping_.store(true, std::memory_order_seq_cst);
  // The worker first: what it deregisters may unmap, and the reader must still be there.
  if (work_.valid()) work_.raise();
  if (worker_.joinable()) worker_.join();
  if (stop_.valid()) stop_.raise();
  if (reader_.joinable()) reader_.join();
}

Status Monitor::watch(std::uint64_t address, std::uint64_t length_bytes) {
  if (mark_.in_child()) return fail(Code::gone, "this monitor belongs to the parent process");
  const Status watched = fault_.watch(address, length_bytes);
  (watched ? watched_ : unwatched_).fetch_add(1, kRelaxed);
  return watched;
}

// Never waits, never allocates.
void Monitor::read_events() {
  std::array<sys::AddressChange, 16> some;
  while (const std::size_t count = fault_.read(some)) {
    events_.fetch_add(count, kRelaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (pending_count_ == pending_.size()) {
        if (!everything_) overflows_.fetch_add(1, kRelaxed);
        everything_ = true;  // forgetting too much costs time, too little costs data
      } else {
        pending_[pending_count_++] = some[i];
      }
    }
  }
}

// Until nothing is pending. While the cache is busy, more is read: who holds its lock may be waiting for just that.
void Monitor::hand_over() {
  for (std::uint32_t turn = 0; pending_count_ != 0 || everything_;) {
    const sys::AddressChange change = everything_ ? sys::AddressChange{0, UINT64_MAX} : pending_[pending_count_ - 1];
    if (forget_(change.address, change.length_bytes)) {
      forgotten_.fetch_add(1, kRelaxed);
      if (everything_) {
        everything_ = false;
        pending_count_ = 0;
      } else {
        --pending_count_;
      }
      turn = 0;
    } else {
      retries_.fetch_add(1, kRelaxed);
      sys::pause_turn(++turn);
    }
    read_events();
  }
}

void Monitor::run_reader() {
  for (;;) {
    std::array<pollfd, 2> ready{pollfd{fault_.fd(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
    sys::wait_any(ready, -1);
    if (ready[0].revents == 0) {
      if (ready[1].revents != 0) return;
      continue;
    }
    unsettled_.store(true, std::memory_order_seq_cst);
    read_events();
    hand_over();
    // Whoever unmapped something that is not read yet is still in the kernel: what has returned is settled.
    unsettled_.store(false, std::memory_order_seq_cst);
    work_.raise();
  }
}

void Monitor::run_worker() {
  while (!stopping_.load(std::memory_order_seq_cst)) {
    std::array<pollfd, 1> ready{pollfd{work_.fd(), POLLIN, 0}};
    sys::wait_any(ready, -1);
    work_.clear();
    reap_();
  }
}

void Monitor::wait_until_settled() const {
  for (std::uint32_t turn = 0; unsettled_.load(std::memory_order_seq_cst) && !mark_.in_child(); ++turn)
    sys::pause_turn(turn);
}

MonitorStats Monitor::stats() const {
  return {watched_.load(kRelaxed),   unwatched_.load(kRelaxed), events_.load(kRelaxed),
          forgotten_.load(kRelaxed), overflows_.load(kRelaxed), retries_.load(kRelaxed)};
}

}  // namespace strait::keys
