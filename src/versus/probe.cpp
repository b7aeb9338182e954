// SPDX-License-Identifier: Apache-2.0
#include "versus/probe.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "sys/affinity.hpp"
#include "sys/clock.hpp"

namespace strait::versus {
namespace {

constexpr double kMoved = 1.2;  // a probe that moved by more: the pair says nothing

// A pair whose programs lost their CPU to others more often than this, per second of CPU time, says nothing either: on
// a quiet machine it is a few dozen, beside one busy process a few hundred.
constexpr double kMostSwitches = 100;

constexpr std::int64_t kPatienceNs = 60'000'000'000;

// Two threads and the line between them. `over` ends both when they do not get to run together.
struct Bounce {
  alignas(128) std::atomic<std::uint64_t> line{0};
  alignas(128) std::atomic<bool> over{false};
  sys::Deadline deadline;

  // False when it is over.
  bool await(std::uint64_t turn) {
    for (std::uint32_t spin = 1; line.load(std::memory_order_acquire) != turn; ++spin) {
      if (spin % 4096 != 0) continue;
      if (over.load(std::memory_order_relaxed)) return false;
      if (deadline.passed()) over.store(true, std::memory_order_relaxed);
    }
    return true;
  }
};

// `count` hand-overs there and back; the time of one way, or below 0.
double bounce_ns(const Cpus& cpus, std::uint64_t count, const sys::Deadline& deadline, bool& pinned) {
  Bounce between{.deadline = deadline};
  bool other_pinned = false;
  std::thread other([&] {
    other_pinned = sys::pin_thread_to_cpu(cpus.owner);
    for (std::uint64_t turn = 1; turn < 2 * count; turn += 2) {
      if (!between.await(turn)) return;
      between.line.store(turn + 1, std::memory_order_release);
    }
  });
  double ns = -1;
  std::thread self([&] {
    pinned = sys::pin_thread_to_cpu(cpus.initiator);
    const std::int64_t start = sys::now_ns();
    for (std::uint64_t turn = 0; turn < 2 * count; turn += 2) {
      between.line.store(turn + 1, std::memory_order_release);
      if (!between.await(turn + 2)) return;
    }
    ns = static_cast<double>(sys::now_ns() - start) / static_cast<double>(2 * count);
  });
  self.join();
  other.join();
  pinned = pinned && other_pinned;
  return ns;
}

}  // namespace

Result<double> line_ns(const Cpus& cpus) {
  if (cpus.initiator == cpus.owner) {
    return with_remedy(fail(Code::unsupported, "two CPUs are needed to measure anything between two processes"),
                       "Where both share one, every figure is the scheduler's.");
  }
  const auto deadline = sys::Deadline::after_ns(kPatienceNs);
  // The median of short rounds: one interruption must not look like another machine.
  std::vector<double> rounds;
  bool pinned = false;
  for (int i = 0; i < 8; ++i) {
    const double ns = bounce_ns(cpus, i == 0 ? 1000 : 10000, deadline, pinned);
    if (!pinned) return fail(Code::unsupported, "CPUs {} and {} may not both be used here", cpus.initiator, cpus.owner);
    if (ns < 0)
      return fail(Code::timeout, "two threads on CPUs {} and {} did not get to run together", cpus.initiator,
                  cpus.owner);
    if (i > 0) rounds.push_back(ns);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
  return rounds[3];
}

bool Calm::line_moved() const {
  return std::max(line_ns_before, line_ns_after) > kMoved * std::min(line_ns_before, line_ns_after);
}

bool Calm::lost_cpu() const {
  return switches_per_s > kMostSwitches;
}

}  // namespace strait::versus
