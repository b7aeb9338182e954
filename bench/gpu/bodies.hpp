// SPDX-License-Identifier: Apache-2.0
// What kernels of two processes do with each other. The same source runs on CPU threads (`--near host`), which tests
// this program without a GPU; figures from there mean nothing.
#pragma once

#include <cstdint>

#include "strait/device/lane.hpp"

namespace bench::gpu {

namespace sd = strait::device;

// One per block.
struct Answer {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t done;    // rounds, or entries
  std::uint64_t wrong;   // payloads that were not the expected ones
  std::uint32_t waited;  // sd::Waited: how the last wait ended; refusals count as error
  std::uint32_t reserved;
};

inline constexpr std::uint64_t kPatienceNs = 20000000000;  // of every wait: a row that hangs ends, and fails

STRAIT_HD inline Answer refused(Answer answer) {
  answer.waited = static_cast<std::uint32_t>(sd::Waited::error);
  answer.end_ns = sd::now_ns();
  return answer;
}

// Two words in host memory, each written by one side: what no queue can beat.
struct FlagRounds {
  std::uint64_t* out;
  const std::uint64_t* in;
  std::uint64_t base, rounds;
  bool first;

  STRAIT_HD Answer run(unsigned) const {
    Answer answer{};
    answer.begin_ns = sd::now_ns();
    const sd::Deadline deadline = sd::Deadline::after_ns(kPatienceNs);
    for (std::uint64_t i = base + 1; i <= base + rounds; ++i) {
      if (first) sd::store_relaxed<sd::Scope::system>(out, i);
      for (std::uint32_t turns = 1; sd::peek(in) < i; ++turns)
        if (turns % 4096 == 0 && deadline.passed()) return refused(answer);
      if (!first) sd::store_relaxed<sd::Scope::system>(out, i);
      ++answer.done;
    }
    answer.end_ns = sd::now_ns();
    return answer;
  }
};

// 8 bytes and a signal there, 8 bytes and a signal back.
struct SignalRounds {
  sd::Queue queue;
  sd::LocalRegion from;
  sd::RemoteRegion to;
  sd::Signal signal;
  std::uint64_t* out;       // the first word of `from`
  const std::uint64_t* in;  // where the other side's words arrive, two places in turn
  std::uint64_t base, rounds;
  bool first;

  STRAIT_HD bool send(sd::Lane<sd::Sharing::one_thread>& lane, std::uint64_t value) const {
    sd::store_relaxed<sd::Scope::system>(out, value);
    sd::How how;
    how.room_ns = kPatienceNs;
    // The other side's signal says all that a completion would. One in 64 makes room in the ring: each that is taken is
    // a read across PCIe on the way of the next send.
    how.silent = value % 64 != 0;
    return lane.put_signal(from, 0, to, 8 + value % 2 * 8, 8, 0, 1, how).ok();
  }
  STRAIT_HD Answer run(unsigned) const {
    Answer answer{};
    answer.begin_ns = sd::now_ns();
    sd::Lane<sd::Sharing::one_thread> lane(queue);
    if (!lane.usable()) return refused(answer);
    // A payload is read behind the next send: a release also waits for loads, and the way to host memory and back is
    // more than the release itself. Two places in turn, so that the next one does not lie on it.
    for (std::uint64_t i = base + 1; i <= base + rounds; ++i) {
      if (first && !send(lane, i)) return refused(answer);
      if (first && i != base + 1 && sd::peek(in + (i - 1) % 2) != i - 1) ++answer.wrong;
      const sd::Seen seen = lane.wait_signal(signal, i, sd::Deadline::after_ns(kPatienceNs));
      answer.waited = static_cast<std::uint32_t>(seen.waited);
      if (seen.waited != sd::Waited::ok) return answer;
      if (!first && !send(lane, i)) return refused(answer);
      if (!first && sd::peek(in + i % 2) != i) ++answer.wrong;
      ++answer.done;
    }
    if (first && sd::peek(in + (base + rounds) % 2) != base + rounds) ++answer.wrong;
    answer.end_ns = sd::now_ns();
    answer.waited = static_cast<std::uint32_t>(lane.flush(sd::Deadline::after_ns(kPatienceNs)).waited);
    return answer;
  }
};

// Large puts, so many in flight at a time.
struct Stream {
  sd::Queue queue;
  sd::LocalRegion from;
  sd::RemoteRegion to;
  std::uint64_t bytes, count, in_flight;

  STRAIT_HD Answer run(unsigned) const {
    Answer answer{};
    sd::Lane<sd::Sharing::one_thread> lane(queue);
    if (!lane.usable()) return refused(answer);
    const std::uint64_t places = from.length_bytes / bytes;
    answer.begin_ns = sd::now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = i % places * bytes;
      const sd::Pending put = lane.put(from, at, to, at, bytes);
      if (!put.ok()) return refused(answer);
      // A put is one block, so the one so many before it is found by its index.
      if (i + 1 >= in_flight) {
        const sd::Outcome outcome =
            lane.wait({put.start + 1 - in_flight, sd::Posted::ok}, sd::Deadline::after_ns(kPatienceNs));
        answer.waited = static_cast<std::uint32_t>(outcome.waited);
        if (outcome.waited != sd::Waited::ok) return answer;
      }
      ++answer.done;
    }
    answer.waited = static_cast<std::uint32_t>(lane.flush(sd::Deadline::after_ns(kPatienceNs)).waited);
    answer.end_ns = sd::now_ns();
    return answer;
  }
};

// Warps that post for as long as the NIC makes room, each to a queue of its own.
struct Sustained {
  const sd::Queue* queues;
  const sd::RemoteRegion* to;  // by queue: keys are a NIC's
  std::uint64_t count;         // entries per queue

  STRAIT_HD Answer run(unsigned block) const {
    Answer answer{};
    const sd::Warp warp;
    sd::Lane<sd::Sharing::one_thread, sd::Warp> lane(queues[block], warp);
    if (!lane.usable()) return refused(answer);
    const sd::RemoteRegion target = to[block];
    sd::How how;
    how.room_ns = kPatienceNs;
    answer.begin_ns = sd::now_ns();
    for (std::uint64_t i = 0; i < count; i += warp.size()) {
      const std::uint64_t value = block * count + i + warp.rank();
      if (!lane.put_value_each(value, target, value % (target.length_bytes / 8) * 8, how).ok()) return refused(answer);
      answer.done += warp.size();
    }
    answer.waited = static_cast<std::uint32_t>(lane.flush(sd::Deadline::after_ns(kPatienceNs)).waited);
    answer.end_ns = sd::now_ns();
    return answer;
  }
};

}  // namespace bench::gpu
