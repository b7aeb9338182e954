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
#include "sys/fork_mark.hpp"

namespace strait::soft::uverbs {

class Progress {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Progress>> start(nic::Engine& engine);
  ~Progress();

  // The program looks for completions.
  void polled() {
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // a lost count is harmless
    (void)engine_.drive(0);
  }
  // It posted to this queue pair; 0: to one it did not name.
  void posted(std::uint32_t qpn) { (void)engine_.drive(qpn); }
  // It is going to wait for an event, or has changed something that the engine must look at by itself.
  void wake();

 private:
  explicit Progress(nic::Engine& engine) : engine_(engine) {}
  void run();

  nic::Engine& engine_;
  sys::Event wake_;
  sys::EventSet waits_;
  std::atomic<std::uint64_t> polls_{0};
  std::atomic<bool> woken_{false};
  std::atomic<bool> stop_{false};
  sys::ForkMark mark_;
  std::thread thread_;
};

}  // namespace strait::soft::uverbs
