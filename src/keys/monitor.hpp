// SPDX-License-Identifier: Apache-2.0
// Monitor: makes host memory that nobody vouches for rememberable, because the kernel tells when it goes away.
//
// Opt-in. No code is patched: it is a userfaultfd (sys/user_fault.hpp), one thread that reads it and one that
// deregisters. A thread that unmaps watched memory waits until the event is read, with whatever locks it holds: so the
// reading thread takes none that it would have to wait for, allocates nothing and frees nothing. It tries the cache's
// lock, and while that is taken it goes on reading. The second thread may wait: it only deregisters what was forgotten.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "sys/event.hpp"
#include "sys/fork.hpp"
#include "sys/user_fault.hpp"

namespace strait::keys {

struct MonitorStats {
  std::uint64_t watched = 0;    // ranges
  std::uint64_t unwatched = 0;  // ranges that cannot be
  std::uint64_t events = 0;
  std::uint64_t forgotten = 0;  // ranges handed to the cache
  std::uint64_t overflows = 0;  // so many at once that everything was forgotten
  std::uint64_t retries = 0;    // the cache was busy
};

class Monitor {
 public:
  // As Cache::try_forget: false when it would have to wait. And Cache::reap.
  using Forget = std::function<bool(std::uint64_t address, std::uint64_t length_bytes)>;
  using Reap = std::function<void()>;

  [[nodiscard]] static Result<std::unique_ptr<Monitor>> start(Forget forget, Reap reap);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // From now on the cache forgets the range when it is unmapped, moved or given back. Code::unsupported, or the
  // kernel's reason, for memory that cannot be watched.
  [[nodiscard]] Status watch(std::uint64_t address, std::uint64_t length_bytes);
  // Returns when the cache has forgotten everything whose munmap has returned. Before that, what it remembers of host
  // memory must not be used. Mostly one load.
  void settle() const {
    if (unsettled_.load(std::memory_order_seq_cst)) wait_until_settled();
  }
  // Something was forgotten by others who may not deregister: have it done.
  void reap_soon() const { work_.raise(); }
  [[nodiscard]] MonitorStats stats() const;

 private:
  Monitor(sys::UserFault fault, Forget forget, Reap reap)
      : fault_(std::move(fault)), forget_(std::move(forget)), reap_(std::move(reap)) {}
  void read_events();
  void hand_over();
  void run_reader();
  void run_worker();
  void wait_until_settled() const;

  sys::ForkMark mark_;
  sys::UserFault fault_;
  Forget forget_;
  Reap reap_;
  sys::Event stop_;
  sys::Event work_;
  std::atomic<bool> stopping_{false};
  // Raised before an event is read, so before the munmap it tells of can return.
  std::atomic<bool> unsettled_{false};

  // The reader's own: read and not yet handed over.
  std::array<sys::AddressChange, 256> pending_;
  std::size_t pending_count_ = 0;
  bool everything_ = false;

  std::atomic<std::uint64_t> watched_{0};
  std::atomic<std::uint64_t> unwatched_{0};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> forgotten_{0};
  std::atomic<std::uint64_t> overflows_{0};
  std::atomic<std::uint64_t> retries_{0};
  std::thread reader_;
  std::thread worker_;
};

}  // namespace strait::keys
