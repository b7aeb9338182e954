// SPDX-License-Identifier: Apache-2.0
// StrictWatch: findings about this process, fetched from wherever the cards are and told here: on stderr, in a file,
// and as the exit status of the process.
//
// A thread asks again and again, so that a program that hangs because of its mistake is told of it; who closes the
// device, and the end of the process, ask once more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "soft/cassini_host/channel.hpp"
#include "soft/cassini_host/trial.hpp"
#include "sys/event_thread.hpp"
#include "sys/fork.hpp"

namespace strait::soft::cassini {

class StrictWatch {
 public:
  // `told` is called with the number of findings so far, whenever there is another.
  using Told = std::function<void(std::uint64_t)>;
  [[nodiscard]] static Result<std::unique_ptr<StrictWatch>> start(Channel& channel, TrialSettings settings, Told told);
  StrictWatch(const StrictWatch&) = delete;
  StrictWatch& operator=(const StrictWatch&) = delete;
  ~StrictWatch();

  // Fetches and tells. Any thread.
  void collect();
  [[nodiscard]] std::uint64_t findings() const { return findings_.load(std::memory_order_relaxed); }

 private:
  StrictWatch(Channel& channel, TrialSettings settings, Told told)
      : channel_(channel), settings_(std::move(settings)), seed_(settings_.seed_used()), told_(std::move(told)) {}
  void tell(const Finding& finding) const;

  const sys::ForkMark mark_;
  Channel& channel_;
  const TrialSettings settings_;
  const std::uint64_t seed_;
  const Told told_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> findings_{0};
  sys::EventThread thread_;  // last
};

}  // namespace strait::soft::cassini
