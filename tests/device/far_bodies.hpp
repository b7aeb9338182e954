// SPDX-License-Identifier: Apache-2.0
// What kernels of two processes do with each other: one fills its memory and puts it with a signal, round after round
// into the same place, the other waits for the signal and looks at every word by plain loads. The same source runs on
// CPU threads.
#pragma once

#include <cstdint>

#include "strait/device/lane.hpp"

namespace far {

namespace sd = strait::device;

// Where a member was when it ended.
enum class Step : std::uint32_t { all_done, unusable, posting, completing, awaiting_signal };

// One per thread of the block.
struct Report {
  std::uint64_t rounds;            // that it went through
  std::uint64_t wrong;             // words that were not those of their round
  std::uint64_t round, at, found;  // the first of them
  Step step;
  std::uint32_t waited;  // sd::Waited, of the wait that ended it; sd::Posted, of the post
};

// Every word differs from the one in its place in any other round.
STRAIT_HD constexpr std::uint64_t word_of(std::uint64_t round, std::uint64_t i) {
  return (i + 1) * 0x9e3779b97f4a7c15u ^ round * 0xbf58476d1ce4e5b9u;
}

// Signals of either side's region.
inline constexpr std::uint32_t kArrived = 0, kTaken = 1;

struct Shift {
  sd::Queue queue;
  sd::LocalRegion from;      // ours
  sd::RemoteRegion to;       // the other side's
  sd::Signal signal;         // that the other side raises
  std::uint64_t* words;      // of our region: what is put, or where it arrives
  std::uint64_t count;       // of words
  std::uint64_t from_bytes;  // where they begin, here
  std::uint64_t to_bytes;    // and there
  std::uint64_t rounds;
  std::uint64_t patience_ns;  // of every wait
  Report* reports;
};

using GroupLane = sd::Lane<sd::Sharing::one_thread, sd::Block>;

// Every answer is the same for all members, so that they leave together.
struct Give {
  Shift shift;

  STRAIT_HD void operator()(unsigned, unsigned) const {
    const sd::Block group;
    Report report{};
    run(group, report);
    shift.reports[group.rank()] = report;
  }
  STRAIT_HD void run(const sd::Block& group, Report& report) const {
    const auto in_time = [this] { return sd::Deadline::after_ns(shift.patience_ns); };
    report.step = Step::unusable;
    GroupLane lane(shift.queue, group);
    if (!lane.usable()) return;
    sd::How how;
    how.room_ns = shift.patience_ns;
    for (std::uint64_t round = 1; round <= shift.rounds; ++round) {
      for (std::uint64_t i = group.rank(); i < shift.count; i += group.size()) shift.words[i] = word_of(round, i);
      report.step = Step::posting;
      const sd::Pending put =
          lane.put_signal(shift.from, shift.from_bytes, shift.to, shift.to_bytes, 8 * shift.count, kArrived, 1, how);
      report.waited = static_cast<std::uint32_t>(put.posted);
      if (!put.ok()) return;
      report.step = Step::completing;
      const sd::Outcome done = lane.wait(put, in_time());
      report.waited = static_cast<std::uint32_t>(done.waited);
      if (done.waited != sd::Waited::ok) return;
      // It is put into the same place again, which the other side has to be through with.
      report.step = Step::awaiting_signal;
      const sd::Seen taken = lane.wait_signal(shift.signal, round, in_time());
      report.waited = static_cast<std::uint32_t>(taken.waited);
      if (taken.waited != sd::Waited::ok) return;
      report.rounds = round;
    }
    report.step = Step::all_done;
  }
};

struct Take {
  Shift shift;

  STRAIT_HD void operator()(unsigned, unsigned) const {
    const sd::Block group;
    Report report{};
    run(group, report);
    shift.reports[group.rank()] = report;
  }
  STRAIT_HD void run(const sd::Block& group, Report& report) const {
    const auto in_time = [this] { return sd::Deadline::after_ns(shift.patience_ns); };
    report.step = Step::unusable;
    GroupLane lane(shift.queue, group);
    if (!lane.usable()) return;
    sd::How how;
    how.room_ns = shift.patience_ns;
    for (std::uint64_t round = 1; round <= shift.rounds; ++round) {
      report.step = Step::awaiting_signal;
      const sd::Seen arrived = lane.wait_signal(shift.signal, round, in_time());
      report.waited = static_cast<std::uint32_t>(arrived.waited);
      if (arrived.waited != sd::Waited::ok) return;
      // Plain loads, of words that every one of these threads has loaded in the round before.
      for (std::uint64_t i = group.rank(); i < shift.count; i += group.size()) {
        const std::uint64_t found = shift.words[i];
        if (found == word_of(round, i)) continue;
        if (report.wrong++ != 0) continue;
        report.round = round;
        report.at = i;
        report.found = found;
      }
      report.step = Step::posting;
      const sd::Pending taken = lane.signal(shift.to, kTaken, 1, how);
      report.waited = static_cast<std::uint32_t>(taken.posted);
      if (!taken.ok()) return;
      report.step = Step::completing;
      const sd::Outcome done = lane.wait(taken, in_time());
      report.waited = static_cast<std::uint32_t>(done.waited);
      if (done.waited != sd::Waited::ok) return;
      report.rounds = round;
    }
    report.step = Step::all_done;
  }
};

}  // namespace far
