// SPDX-License-Identifier: Apache-2.0
// Sleeper: who sleeps on the NICs' descriptors, and how a caller that drives a NIC takes over from it.
//
// Driving a NIC that was armed disarms it: the descriptor then stays silent, and a sleeper would sleep through whatever
// arrives once the caller has stopped driving. So whoever drives looks here afterwards and rouses the sleeper, who
// takes note that callers are at work and arms again when they are done. No wake-up is lost: `asleep` is set before
// arming, arming and driving take the NIC's lock, and `asleep` is read after driving.
#pragma once

#include <atomic>

#include "sys/event.hpp"

namespace strait::node {

class Sleeper {
 public:
  [[nodiscard]] Status open() {
    STRAIT_TRY(wake_, sys::Event::make());
    return {};
  }
  // After driving; one load when nobody sleeps.
  void rouse() {
    if (asleep_.load(std::memory_order_relaxed)) [[unlikely]]
      rouse_now();
  }
  void rouse_now() {
    if (!asleep_.exchange(false)) return;
    wake_.raise();
    raised_.store(true);  // after raising: set before, a get_up() in between would leave the event raised for good
  }
  void lie_down() { asleep_.store(true); }
  void get_up() {
    asleep_.store(false, std::memory_order_relaxed);
    if (raised_.load(std::memory_order_relaxed) && raised_.exchange(false)) wake_.clear();
  }
  [[nodiscard]] const sys::Event& wake() const { return wake_; }

 private:
  alignas(64) std::atomic<bool> asleep_{false};
  std::atomic<bool> raised_{false};
  sys::Event wake_;
};

}  // namespace strait::node
