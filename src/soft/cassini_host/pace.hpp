// SPDX-License-Identifier: Apache-2.0
// Pace: how long a thread that polls rings rests when there was nothing in them. First not at all, then it lets others
// run, then it sleeps, longer and longer.
#pragma once

#include <algorithm>
#include <cstdint>

namespace strait::soft::cassini {

class Pace {
 public:
  static constexpr std::int64_t kSpinNs = 50'000;
  static constexpr std::int64_t kYieldNs = 400'000;
  static constexpr std::int64_t kShortestNs = 20'000;
  static constexpr std::int64_t kLongestNs = 1'000'000;

  enum class Rest : std::uint8_t { spin, yield, sleep };
  // After a pass that did something, or not.
  [[nodiscard]] Rest after(bool worked, std::int64_t now_ns) {
    if (worked) {
      last_work_ns_ = now_ns;
      sleep_ns_ = kShortestNs;
      return Rest::spin;
    }
    const std::int64_t idle_ns = now_ns - last_work_ns_;
    if (idle_ns < kSpinNs) return Rest::spin;
    return idle_ns < kYieldNs ? Rest::yield : Rest::sleep;
  }
  // How long to sleep this time.
  [[nodiscard]] std::int64_t sleep_ns() {
    const std::int64_t now = sleep_ns_;
    sleep_ns_ = std::min(sleep_ns_ * 2, kLongestNs);
    return now;
  }

 private:
  std::int64_t last_work_ns_ = 0;
  std::int64_t sleep_ns_ = kShortestNs;
};

}  // namespace strait::soft::cassini
