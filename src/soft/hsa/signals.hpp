// SPDX-License-Identifier: Apache-2.0
// Signals: 64-bit words that programs wait on, and the engine that completes them: one thread that copies, calls
// handlers and runs functions, each when its signals allow it.
//
// A signal's word may also be stored to by others, through hsa_amd_signal_value_pointer: every wait looks again each
// millisecond. Threads: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "soft/hsa/abi.hpp"

namespace strait::soft::hsa {

struct SignalWord {
  std::atomic<SignalValue> value{0};
};
using SignalRef = std::shared_ptr<SignalWord>;

[[nodiscard]] bool satisfies(std::int32_t condition, SignalValue value, SignalValue compared);

class Signals {
 public:
  Signals() = default;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();  // finishes what can run; what still waits for a signal is dropped. Never in a forked child.

  [[nodiscard]] Signal create(SignalValue initial);
  [[nodiscard]] bool destroy(Signal signal);
  // Null: not a live signal.
  [[nodiscard]] SignalRef find(Signal signal) const;
  [[nodiscard]] std::size_t live() const;

  // After every change of a word: wakes who waits for it.
  void changed();
  // The value that was seen last. `timeout_ns` from now.
  SignalValue wait(const SignalRef& signal, std::int32_t condition, SignalValue compared, std::uint64_t timeout_ns);
  // Index of the first that is satisfied, or `n` after the time.
  std::size_t wait_any(const std::vector<SignalRef>& signals, const std::int32_t* conditions,
                       const SignalValue* compared, std::uint64_t timeout_ns, SignalValue* seen);

  // `work` runs on the engine once every one of `after` is zero; then `done`, where there is one, goes down by one, or
  // to a negative value when work answers false. False: the system has no thread for the engine.
  [[nodiscard]] bool run_after(std::vector<SignalRef> after, SignalRef done, std::function<bool()> work);
  // `handler` is called with each satisfying value until it answers false.
  [[nodiscard]] bool call_when(SignalRef signal, std::int32_t condition, SignalValue compared, SignalHandler handler,
                               void* argument);

 private:
  struct Job {
    std::vector<SignalRef> after;
    SignalRef done;
    std::function<bool()> work;
  };
  struct Watch {
    SignalRef signal;
    std::int32_t condition = 0;
    SignalValue compared = 0;
    SignalHandler handler = nullptr;
    void* argument = nullptr;
  };
  [[nodiscard]] bool start_locked();
  bool run_one_job(std::unique_lock<std::mutex>& lock);
  bool call_one_watch(std::unique_lock<std::mutex>& lock);
  void run_engine_thread();

  mutable std::shared_mutex table_mutex_;
  std::unordered_map<std::uint64_t, SignalRef> table_;

  std::mutex mutex_;  // jobs, watches, stop; and for sleeping
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
  std::list<Job> jobs_;
  std::list<Watch> watches_;
  bool stop_ = false;
  std::thread engine_;
};

}  // namespace strait::soft::hsa
