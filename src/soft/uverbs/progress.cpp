// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/progress.hpp"

#include <algorithm>

#include "sys/affinity.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::soft::uverbs {

namespace {
// How long the thread leaves the engine to a program that polls before it looks whether that still does.
constexpr std::int64_t kPollerNapNs = 1'000'000;
// Everything that needs the engine wakes it, but for stores that nobody hooks: doorbells rung by hand. Who rings one
// will ring again soon (UCX and device libraries post and poll in memory only), so naps begin short.
constexpr std::int64_t kShortestNapNs = 20'000;
constexpr std::int64_t kLongestNapNs = 20'000'000;
constexpr int kMostPasses = 1000;
// Taking turns: how soon the thread sees that the program calls no more, and how long it leaves what has landed to it.
constexpr std::int64_t kTurnNs = 50'000;
constexpr std::int64_t kAnswerNs = 30'000;
}  // namespace

Result<std::unique_ptr<Progress>> Progress::start(nic::Engine& engine, const Settings& settings) {
  // With one processor for everything a thread that looks would keep from running what it looks for.
  const Way way = !settings.background ? Way::program : sys::usable_cpus() < 2 ? Way::taking_turns : Way::background;
  std::unique_ptr<Progress> made(new Progress(engine, way, settings));
  STRAIT_TRY(made->wake_, sys::Event::make());
  STRAIT_TRY(made->waits_, sys::EventSet::make());
  STRAIT_CHECK(made->waits_.add(made->wake_.fd()));
  STRAIT_CHECK(made->waits_.add(engine.event_fd()));
  STRAIT_TRY(made->thread_, sys::start_quiet_thread([progress = made.get()] {
               progress->way_ == Way::taking_turns ? progress->run_in_turns() : progress->run();
             }));
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

// What comes next may be about to come: sleeping and waking takes longer than most answers do.
void Progress::spin() {
  for (std::int64_t until = sys::now_ns() + settings_.spin_ns; !stop_ && sys::now_ns() < until;) {
    if (engine_.drive(0) != 0)
      until = sys::now_ns() + settings_.spin_ns;
    else
      sys::pause_turn(0);
  }
}

void Progress::run() {
  std::uint64_t seen = polls_.load(std::memory_order_relaxed);
  // A trap notices those stores: every nap that ends for nothing is time that the program does not have.
  const std::int64_t shortest_ns = settings_.traps ? kLongestNapNs : kShortestNapNs;
  std::int64_t nap_ns = shortest_ns;
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
    if (way_ == Way::background && settings_.spin_ns > 0) spin();
    nap_ns = asked || passes != 0 ? shortest_ns : std::min(nap_ns * 2, kLongestNapNs);
    if (passes < kMostPasses && engine_.arm()) (void)waits_.wait_ns(nap_ns);
  }
}

// On one processor every look of this thread's is one that the program does not have, and being woken from the other
// processor takes longer than most answers. So the program's calls do what they can. For two programs that answer each
// other that is everything, as long as an acknowledgement travels with the answer: each then waits for both in one
// call. One that comes alone ends the call early, and the program spins on its memory with nobody to look for the
// answer. So what has landed is left to the program for a moment before it is acknowledged from here.
void Progress::run_in_turns() {
  std::uint64_t seen = polls_.load(std::memory_order_relaxed);
  bool left = false;  // what has landed, to the program
  while (!stop_) {
    if (woken_.exchange(false)) wake_.clear();
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
    if (polls != seen) {
      seen = polls;
      left = false;
      (void)sys::nap_on(wake_.fd(), kTurnNs);
      continue;
    }
    if (engine_.drive(0) != 0) {
      if (left) continue;
      left = true;
      (void)sys::nap_on(wake_.fd(), kAnswerNs);
      continue;
    }
    left = false;
    resting_ = true;
    if (polls_.load(std::memory_order_relaxed) == seen && engine_.arm()) (void)waits_.wait_ns(kLongestNapNs);
    resting_ = false;
  }
}

}  // namespace strait::soft::uverbs
