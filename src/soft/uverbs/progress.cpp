// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/progress.hpp"

#include <algorithm>

#include "sys/quiet_thread.hpp"

namespace strait::soft::uverbs {

namespace {
// How long the thread leaves the engine to a program that polls before it looks whether that still does.
constexpr std::int64_t kPollerNapNs = 1'000'000;
// Everything that needs the engine wakes it. These are for stores that nobody hooks: a doorbell rung by hand.
constexpr std::int64_t kShortestNapNs = 1'000'000;
constexpr std::int64_t kLongestNapNs = 20'000'000;
constexpr int kMostPasses = 1000;
}  // namespace

Result<std::unique_ptr<Progress>> Progress::start(nic::Engine& engine) {
  std::unique_ptr<Progress> made(new Progress(engine));
  STRAIT_TRY(made->wake_, sys::Event::make());
  STRAIT_TRY(made->waits_, sys::EventSet::make());
  STRAIT_CHECK(made->waits_.add(made->wake_.fd()));
  STRAIT_CHECK(made->waits_.add(engine.event_fd()));
  STRAIT_TRY(made->thread_, sys::start_quiet_thread([progress = made.get()] { progress->run(); }));
  return made;
}

Progress::~Progress() {
  if (mark_.in_child()) {
    thread_.detach();  // it is the parent's
    return;
  }
  stop_ = true;
  wake();
  thread_.join();
}

void Progress::wake() {
  if (!woken_.exchange(true)) wake_.raise();
}

void Progress::run() {
  std::uint64_t seen = polls_.load(std::memory_order_relaxed);
  std::int64_t nap_ns = kShortestNapNs;
  while (!stop_) {
    const bool asked = woken_.exchange(false);
    if (asked) wake_.clear();
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
    if (!asked && polls != seen) {
      seen = polls;
      (void)sys::nap_on(wake_.fd(), kPollerNapNs);
      continue;
    }
    seen = polls;
    int passes = 0;
    while (passes < kMostPasses && !stop_ && engine_.drive(0) != 0) ++passes;
    nap_ns = asked || passes != 0 ? kShortestNapNs : std::min(nap_ns * 2, kLongestNapNs);
    if (passes < kMostPasses && engine_.arm()) (void)waits_.wait_ns(nap_ns);
  }
}

}  // namespace strait::soft::uverbs
