// SPDX-License-Identifier: Apache-2.0
// The two halves of a ping-pong by put, the same at both ends: put number n, and see that number n arrived.
//
// A word in host memory is polled with an acquire load: 8 bytes arrive at once or not at all. Anything longer, and
// anything in accelerator memory, is only ordered by a signal, so the signal is what is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "tool/perf_loops.hpp"

namespace strait::tool {

// Immediates of the send ping-pong.
inline constexpr std::uint32_t kMore = 1;
inline constexpr std::uint32_t kLast = 2;
inline constexpr std::uint32_t kArrivalSignal = 0;

class PutBack {
 public:
  explicit PutBack(const Bench& bench) : bench_(bench), from_(bench.own.region.slice(0, bench.bytes).raw) {
    options_.struct_size = sizeof options_;
    options_.flags = bench.polls_word ? 0u : unsigned{STRAIT_WITH_SIGNAL};
    options_.signal = kArrivalSignal;
    options_.signal_add = 1;
    done_.struct_size = sizeof done_;
    error_.struct_size = sizeof error_;
  }
  Status once(std::uint64_t n) {
    // Nothing is under way here: the put before was waited for, so its source may change.
    if (bench_.polls_word) std::memcpy(bench_.own.outbox(), &n, bench_.bytes);
    strait_op op{};
    if (strait_put(bench_.lane.raw(), &from_, &bench_.other.raw(), bench_.own.capacity, &options_, &op, &error_) !=
        STRAIT_OK) {
      return detail::to_error(error_);
    }
    if (strait_wait(&op, bench_.deadline_ns, &done_, &error_) == STRAIT_OK) return {};
    strait_detach(&op);
    return detail::to_error(error_);
  }

 private:
  const Bench& bench_;
  strait_slice from_;
  strait_op_options options_{};
  strait_done done_{};
  strait_error error_{};
};

class Arrival {
 public:
  explicit Arrival(const Bench& bench)
      : bench_(bench), mask_(bench.bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bench.bytes)) - 1) {}

  // Polls until number n is here; Code::gone when `over` says there will be none; Code::timeout at the deadline.
  Status wait(std::uint64_t n, const std::function<bool()>& over) {
    constexpr std::uint32_t kLookUp = 256;  // spins between looks at anything but the memory
    std::int64_t deadline_ns = 0;
    for (std::uint32_t spin = 1;; ++spin) {
      if (here(n)) return {};
      bench_.node.poll();
      if (spin % kLookUp != 0) continue;
      std::this_thread::yield();  // the other side may need this very core
      if (over && over()) return here(n) ? Status() : Status(fail(Code::gone, "the other side ended the run"));
      const std::int64_t now_ns = sys::now_ns();
      if (deadline_ns == 0) deadline_ns = now_ns + bench_.deadline_ns;
      if (!over && now_ns >= deadline_ns)
        return fail(Code::timeout, "no answer to ping {} came before the deadline", n);
    }
  }

 private:
  [[nodiscard]] bool here(std::uint64_t n) const {
    if (bench_.polls_word) {
      auto* word = reinterpret_cast<std::uint64_t*>(bench_.own.inbox());
      return ((std::atomic_ref(*word).load(std::memory_order_acquire) ^ n) & mask_) == 0;
    }
    std::uint64_t value = 0;
    return strait_signal_read(bench_.own.region.raw(), kArrivalSignal, &value, nullptr) == STRAIT_OK && value >= n;
  }
  const Bench& bench_;
  std::uint64_t mask_;
};

}  // namespace strait::tool
