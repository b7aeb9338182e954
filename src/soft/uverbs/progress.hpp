// SPDX-License-Identifier: Apache-2.0
// Progress: who runs the engine. The program itself, from within the calls it makes anyway (hooks.hpp); and one thread
// for when it makes none: it sleeps until something arrives, and while the program polls it stays out of the way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "soft/nic/engine.hpp"
#include "sys/event.hpp"
#include "sys/event_set.hpp"
#include "sys/fork.hpp"

namespace strait::soft::uverbs {

class Progress {
 public:
  struct Settings {
    bool background = false;
    std::int64_t spin_ns = 0;
    bool traps = false;
  };
  [[nodiscard]] static Result<std::unique_ptr<Progress>> start(nic::Engine& engine, const Settings& settings);
  ~Progress();

  // The program looked for completions. True: it had none, the engine did something, and it is worth another look.
  [[nodiscard]] bool polled(bool had_some) {
    if (way_ == Way::background) return false;
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;  // a lost count is harmless
    polls_.store(polls, std::memory_order_relaxed);
    // Who always finds some gets to it in the end.
    if (had_some && polls % kPollsPerDrive != 0) return false;
    const bool did_something = engine_.drive(0) != 0;
    disarmed();
    return did_something && !had_some;
  }
  // It posted to this queue pair; 0: to one it did not name.
  void posted(std::uint32_t qpn) {
    if (way_ == Way::program) {
      (void)engine_.drive(qpn);
    } else if (!engine_.post(qpn)) {
      if (way_ == Way::background) return wake();
      (void)engine_.drive(qpn);
      disarmed();
    }
  }
  // It rang a doorbell itself and will call nothing: an engine that peers would wake stays so.
  void rang(std::uint32_t qpn) {
    if (!engine_.post(qpn)) wake();
  }
  // It is going to wait for an event, or has changed something that the engine must look at by itself.
  void wake();

  // Its stores to doorbell pages are noticed (doorbell_trap.hpp), and how many there were.
  [[nodiscard]] bool traps() const { return settings_.traps; }
  void count_trapped() { trapped_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t trapped() const { return trapped_.load(std::memory_order_relaxed); }

  // The program's objects are its parent's here, with the locks that other threads held.
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }

 private:
  static constexpr std::uint64_t kPollsPerDrive = 16;
  // Who drives the engine.
  enum class Way : std::uint8_t {
    program,       // its calls; the thread for when it makes none
    background,    // the thread alone; what is posted leaves at once all the same
    taking_turns,  // both, on one processor: peers wake the thread as soon as the program's calls end
  };
  Progress(nic::Engine& engine, Way way, const Settings& settings) : engine_(engine), way_(way), settings_(settings) {}
  void run();
  void run_in_turns();
  void spin();
  // A call of the program drove the engine, so peers wake nobody now: the thread has to look whether it calls again.
  void disarmed() {
    if (resting_.load(std::memory_order_relaxed)) wake();
  }

  nic::Engine& engine_;
  const Way way_;
  const Settings settings_;  // spin_ns: in the background, how long the thread looks before it sleeps
  sys::Event wake_;
  sys::EventSet waits_;
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<bool> woken_{false};
  std::atomic<bool> resting_{false};  // taking turns: the thread sleeps until a peer wakes it
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> trapped_{0};
  sys::ForkMark mark_;
  std::thread thread_;
};

}  // namespace strait::soft::uverbs
