// SPDX-License-Identifier: Apache-2.0
// What kernels under test do: each a value with one body, run by CPU threads (cpu_grid.hpp) and by a GPU.
#pragma once

#include "strait/device/lane.hpp"

namespace bodies {

using namespace strait::device;

// What a body is given, and where it leaves its answers: memory that CPU and GPU both reach.
struct Stage {
  Queue a, b;  // two ends of one connection
  LocalRegion local;
  RemoteRegion remote;
  RemoteRegion wrong;  // a key nobody gave out
  Signal signal;       // signal 3 of the memory that `remote` names
  std::uint64_t* answers;
  std::uint64_t patience_ns;
};

STRAIT_HD inline std::uint64_t code(const Pending& p) {
  return static_cast<std::uint64_t>(p.posted);
}
STRAIT_HD inline std::uint64_t code(Waited w) {
  return static_cast<std::uint64_t>(w);
}
STRAIT_HD inline std::uint64_t code(const Outcome& o) {
  return code(o.waited) | static_cast<std::uint64_t>(o.syndrome) << 8 | static_cast<std::uint64_t>(o.cause) << 16;
}

// One thread, every operation once, each waited for. Answers: an Outcome each.
struct Everything {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread> lane(s.a);
    const Deadline d = Deadline::after_ns(s.patience_ns);
    unsigned n = 0;
    s.answers[n++] = code(lane.wait(lane.put(s.local, 0, s.remote, 0, 256), d));
    s.answers[n++] = code(lane.wait(lane.put(s.local, 0, s.remote, 0, 0), d));
    s.answers[n++] = code(lane.wait(lane.get(s.local, 1024, s.remote, 64, 128), d));
    s.answers[n++] = code(lane.wait(lane.put_value(std::uint8_t{0x11}, s.remote, 300), d));
    s.answers[n++] = code(lane.wait(lane.put_value(std::uint16_t{0x2233}, s.remote, 302), d));
    s.answers[n++] = code(lane.wait(lane.put_value(std::uint32_t{0x44556677}, s.remote, 304), d));
    s.answers[n++] = code(lane.wait(lane.put_value(std::uint64_t{0x8899aabbccddeeff}, s.remote, 312), d));
    s.answers[n++] = code(lane.wait(lane.fetch_add(s.remote, 512, 5, s.local, 2048), d));
    lane.fence();
    s.answers[n++] = code(lane.wait(lane.fetch_add(s.remote, 512, 6, s.local, 2056), d));
    s.answers[n++] = code(lane.wait(lane.compare_swap(s.remote, 512, 11, 77, s.local, 2064), d));
    s.answers[n++] = code(lane.wait(lane.compare_swap(s.remote, 512, 11, 78, s.local, 2072), d));
    s.answers[n++] = code(lane.wait(lane.put_signal(s.local, 0, s.remote, 600, 40, 3, 2), d));
    s.answers[n++] = code(lane.wait(lane.put_signal(s.local, 0, s.remote, 600, 0, 3, 2), d));
    s.answers[n++] = code(lane.wait(lane.signal(s.remote, 3, 1), d));
    const Seen seen = lane.wait_signal(s.signal, 5, d);
    s.answers[n++] = code(seen.waited);
    s.answers[n++] = seen.value;
  }
  static constexpr unsigned kAnswers = 16;
};

// Members of a group put their own value each, `rounds` times, through one queue of the group's or of all groups'.
template <Sharing S, class G>
struct EachMember {
  Stage s;
  unsigned rounds;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    Lane<S, G> lane(s.a);
    const G group;
    How how;
    how.room_ns = s.patience_ns;
    std::uint64_t bad = 0;
    Pending last{0, Posted::ok};
    const unsigned groups_before = (block * Block{}.size() + thread) / group.size();
    for (unsigned r = 0; r < rounds; ++r) {
      const std::uint64_t place = (groups_before * rounds + r) * group.size() + group.rank();
      last = lane.put_value_each(std::uint64_t{place + 1}, s.remote, 8 * place, how);
      bad += last.ok() ? 0 : 1;
    }
    bad += lane.wait(last, Deadline::after_ns(s.patience_ns)).waited == Waited::ok ? 0 : 1;
    s.answers[block * Block{}.size() + thread] = bad;
  }
};

// Every thread for itself on one queue: values, then a flush. Answers: failures.
template <Sharing S>
struct Crowd {
  Stage s;
  unsigned rounds;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    Lane<S> lane(s.a);
    How how;
    how.room_ns = s.patience_ns;
    const std::uint64_t me = block * Block{}.size() + thread;
    std::uint64_t bad = 0;
    for (unsigned r = 0; r < rounds; ++r) {
      how.silent = r % 3 == 1;
      how.ring_later = r % 4 == 2;
      const std::uint64_t place = me * rounds + r;
      bad += lane.put_value(std::uint64_t{place + 1}, s.remote, 8 * place, how).ok() ? 0 : 1;
    }
    bad += lane.flush(Deadline::after_ns(s.patience_ns)).waited == Waited::ok ? 0 : 1;
    s.answers[me] = bad;
  }
};

// A list longer than the ring, by a warp.
struct Lists {
  Stage s;
  unsigned count;
  const Lane<Sharing::one_thread, Warp>::Item* items;
  STRAIT_HD void operator()(unsigned, unsigned thread) const {
    Lane<Sharing::one_thread, Warp> lane(s.a);
    How how;
    how.room_ns = s.patience_ns;
    const Deadline d = Deadline::after_ns(s.patience_ns);
    const Outcome strided = lane.wait(lane.put_strided(s.local, 0, 16, s.remote, 0, 32, 16, count, how), d);
    const Outcome batch = lane.wait(lane.put_batch(s.local, s.remote, items, count, how), d);
    const auto value_of = [](std::uint64_t i) { return i + 1000; };
    const auto offset_of = [](std::uint64_t i) { return 131072 + 8 * i; };
    // Silent, and longer than the ring: its parts must make room all the same.
    How silent = how;
    silent.silent = true;
    const Pending quiet = lane.put_values(count, s.remote, value_of, offset_of, silent);
    const Outcome values = quiet.ok() ? lane.flush(d) : lane.wait(quiet, d);
    // One piece beyond the end: it moves nothing, the others arrive, and its member is told.
    const std::uint64_t past = s.remote.length_bytes - 3 * 8;
    const Pending wrong = lane.put_strided(s.local, 0, 8, s.remote, past, 8, 8, 4, how);
    const std::uint64_t all = lane.flush(d).waited == Waited::ok ? 0 : 1;
    const Pending longer = lane.put_strided(s.local, 0, 8, s.remote, 0, 8, 8, std::uint64_t{1} << 40);
    if (thread == 0) {
      s.answers[0] = code(strided);
      s.answers[1] = code(batch);
      s.answers[2] = code(values);
      s.answers[3] = all;
      s.answers[4] = code(longer);
    }
    s.answers[8 + thread] = code(wrong);
  }
};

// Calls that one member has wrong arguments for, and one that all have: each member waits for what it was told. Answers
// of a member: how its four waits ended.
template <Sharing S, class G>
struct PartlyWrong {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned thread) const {
    Lane<S, G> lane(s.a);
    const std::uint64_t rank = G{}.rank();
    const Deadline d = Deadline::after_ns(s.patience_ns);
    How how;
    how.room_ns = s.patience_ns;
    std::uint64_t* const answers = s.answers + kAnswers * thread;
    const std::uint64_t past = s.remote.length_bytes;
    answers[0] = code(lane.wait(lane.put_each(s.local, 0, s.remote, rank == 3 ? past : 8 * thread, 8, how), d));
    const std::uint64_t value = thread + 1;
    answers[1] = code(lane.wait(lane.put_value_each(value, s.remote, rank == 0 ? past : 4096 + 8 * thread, how), d));
    const auto value_of = [](std::uint64_t i) { return i; };
    const auto offset_of = [=](std::uint64_t i) { return i == 2 ? past : 8192 + 8 * i; };
    answers[2] = code(lane.wait(lane.put_values(8, s.remote, value_of, offset_of, how), d));
    answers[3] = code(lane.wait(lane.put_value_each(value, s.remote, past, how), d));
  }
  static constexpr unsigned kAnswers = 4;
};

// One short list and one operation per member, each behind a fence, by a warp.
struct FencedGroups {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread, Warp> lane(s.a);
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    lane.fence();
    const bool list = lane.put_values(8, s.remote, offset_of, offset_of).ok();
    lane.fence();
    const bool each = lane.put_value_each(std::uint64_t{1}, s.remote, 0).ok();
    if (Warp{}.rank() == 0) s.answers[0] = list && each ? 0 : 1;
  }
};

// Lists of no items, on a queue that nothing was posted to and behind a put. Answers: how the waits for them ended,
// what was there then, and what a counter they named has counted.
struct EmptyLists {
  Stage s;
  const Lane<Sharing::one_thread, Warp>::Item* items;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread, Warp> lane(s.a);
    const Deadline d = Deadline::after_ns(s.patience_ns);
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    How how, silent;
    how.counter = 1;
    silent.silent = true;
    std::uint64_t* const answers = s.answers;
    const auto say = [&](unsigned n, std::uint64_t what) {
      if (Warp{}.rank() == 0) answers[n] = what;
    };
    say(0, code(lane.wait(lane.put_strided(s.local, 0, 8, s.remote, 0, 8, 8, 0, how), d)));
    say(1, code(lane.wait(lane.put_batch(s.local, s.remote, items, 0, how), d)));
    say(2, code(lane.put_value(std::uint64_t{77}, s.remote, 0, silent)));
    say(3, code(lane.wait(lane.put_values(0, s.remote, offset_of, offset_of, how), d)));
    say(4, peek(reinterpret_cast<const std::uint64_t*>(static_cast<std::uintptr_t>(s.remote.address))));
    say(5, code(lane.put_values(0, s.remote, offset_of, offset_of, silent)));
    say(6, code(lane.flush(d)));
    say(7, lane.counter(1).succeeded);
  }
  static constexpr unsigned kAnswers = 8;
};

// A list longer than the ring, behind a fence, that may wait for room for so long; then one put and a flush, each with
// the patience of the stage. `told`: raised when the list was answered, for a host that stops the NIC until then.
// Answers: what the list, the put and the flush said.
struct LongList {
  Stage s;
  std::uint64_t count, room_ns;
  std::uint64_t* told;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread, Warp> lane(s.a);
    How how;
    how.room_ns = room_ns;
    const auto value_of = [](std::uint64_t i) { return i + 1; };
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    lane.fence();
    const Pending list = lane.put_values(count, s.remote, value_of, offset_of, how);
    if (Warp{}.rank() == 0) store_release<Scope::system>(told, std::uint64_t{1});
    how.room_ns = s.patience_ns;
    const Pending last = lane.put_value(std::uint64_t{1}, s.remote, 8 * count, how);
    const Outcome end = lane.flush(Deadline::after_ns(s.patience_ns));
    if (Warp{}.rank() == 0) {
      s.answers[0] = code(list);
      s.answers[1] = code(last);
      s.answers[2] = code(end);
    }
  }
};

// A fence, posts that a full ring refuses, one with wrong arguments, and behind them two that are posted: one operation
// each, one per member, or a list. Answers: calls that did not end as they should.
struct RefusedBehindAFence {
  enum Kind { kOne, kEach, kList };
  Stage s;
  unsigned capacity;
  Kind kind;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread, Warp> lane(s.a);
    const Deadline d = Deadline::after_ns(s.patience_ns);
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    const auto post = [&](Kind which, const How& how) {
      if (which == kOne) return lane.put_value(std::uint64_t{1}, s.remote, 0, how);
      if (which == kEach) return lane.put_value_each(std::uint64_t{1}, s.remote, 0, how);
      return lane.put_values(8, s.remote, offset_of, offset_of, how);
    };
    How later;
    later.ring_later = true;  // the NIC sees nothing yet: the ring stays full
    std::uint64_t bad = 0;
    Pending last{0, Posted::ok};
    for (unsigned i = 0; i < capacity; ++i) {
      last = lane.put_value(std::uint64_t{1}, s.remote, 0, later);
      bad += last.ok() ? 0 : 1;
    }
    lane.fence();
    for (const Kind which : {kOne, kEach, kList}) bad += post(which, How{}).posted == Posted::full ? 0 : 1;
    bad += lane.put_value(std::uint64_t{1}, s.remote, s.remote.length_bytes).posted == Posted::invalid ? 0 : 1;
    lane.ring();
    bad += lane.wait(last, d).waited == Waited::ok ? 0 : 1;
    for (unsigned i = 0; i < 2; ++i) bad += lane.wait(post(kind, How{}), d).waited == Waited::ok ? 0 : 1;
    if (Warp{}.rank() == 0) s.answers[0] = bad;
  }
};

// Groups of one block fill the ring of a NIC that does nothing, then each makes every call there is. Answers of group
// g, from kStride * g on: how many posts it was refused that there was room for, then what each call said.
template <Sharing S, class G>
struct Stalled {
  Stage s;
  unsigned capacity;
  bool silent;  // the last post has no completion of its own: the flush has to find room for one
  const typename Lane<S, G>::Item* items;
  STRAIT_HD void operator()(unsigned, unsigned thread) const {
    Lane<S, G> lane(s.a);
    const G group;
    const unsigned groups = Block{}.size() / group.size();
    std::uint64_t* const answers = s.answers + kStride * (thread / group.size());
    const bool writes = group.rank() == 0;
    unsigned n = 0;
    const auto say = [&](std::uint64_t what) {
      if (writes) answers[n] = what;
      ++n;
    };
    Pending last{0, Posted::ok};
    std::uint64_t refused = 0;
    for (unsigned i = 0; i < capacity / groups; ++i) {
      How how;
      how.silent = silent && i + 1 == capacity / groups;
      last = lane.put_value(std::uint64_t{1}, s.remote, 0, how);
      refused += last.ok() ? 0 : 1;
    }
    const Pending held = last;
    Block{}.sync();  // full
    How patient;
    patient.room_ns = 1000000;
    const auto soon = [] { return Deadline::after_ns(1000000); };
    const auto value_of = [](std::uint64_t i) { return i; };
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    say(refused);
    say(code(lane.put_value(std::uint64_t{1}, s.remote, 0)));
    say(code(lane.put_value(std::uint64_t{1}, s.remote, 0, patient)));
    say(code(lane.put(s.local, 0, s.remote, 0, 8, patient)));
    say(code(lane.get(s.local, 0, s.remote, 0, 8, patient)));
    say(code(lane.put_signal(s.local, 0, s.remote, 0, 8, 0, 1, patient)));
    say(code(lane.signal(s.remote, 0, 1, patient)));
    say(code(lane.fetch_add(s.remote, 0, 1, s.local, 0, patient)));
    say(code(lane.compare_swap(s.remote, 0, 1, 2, s.local, 0, patient)));
    say(code(lane.send(s.local, 0, 8, patient)));
    say(code(lane.send_imm(s.local, 0, 8, 1, patient)));
    say(code(lane.put_each(s.local, 0, s.remote, 0, 8, patient)));
    say(code(lane.put_value_each(std::uint64_t{1}, s.remote, 0, patient)));
    say(code(lane.put_strided(s.local, 0, 8, s.remote, 0, 8, 8, 4, patient)));
    say(code(lane.put_batch(s.local, s.remote, items, 4, patient)));
    lane.fence();
    say(code(lane.put_values(4, s.remote, value_of, offset_of, patient)));
    say(code(lane.wait(held, soon())));
    say(code(lane.flush(soon())));
    say(code(lane.wait_counter(0, 1, soon())));
    say(code(lane.wait_signal(s.signal, 1, soon()).waited));
    say(code(lane.wait_receive(soon()).waited));
    say(lane.counter(0).succeeded + lane.counter(0).failed);
    say(code(lane.receive(s.local, 0, 8)));
    lane.progress();
    lane.ring();
    say(code(lane.failure()));
    say(lane.usable() ? 0 : 1);
    lane.give_back();
    say(lane.usable() ? 1 : 0);
  }
  static constexpr unsigned kPosts = 15, kWaits = 5, kRest = 5, kStride = 64;
};

// Waits that only the host's abort word ends: for operations, and for room in a full ring.
template <Sharing S, class G>
struct Endless {
  Stage s;
  unsigned capacity;
  STRAIT_HD void operator()(unsigned, unsigned thread) const {
    Lane<S, G> lane(s.a);
    const G group;
    const unsigned groups = Block{}.size() / group.size();
    std::uint64_t* const answers = s.answers + kStride * (thread / group.size());
    unsigned n = 0;
    const auto say = [&](std::uint64_t what) {
      if (group.rank() == 0) answers[n] = what;
      ++n;
    };
    How silent, patient;
    silent.silent = true;
    patient.room_ns = ~std::uint64_t{0};
    const Pending p = lane.put_value(std::uint64_t{1}, s.remote, 0);
    const Deadline never = Deadline::after_ns(~std::uint64_t{0});
    const auto value_of = [](std::uint64_t i) { return i; };
    const auto offset_of = [](std::uint64_t i) { return 8 * i; };
    say(code(lane.wait(p, never)));
    say(code(lane.wait_signal(s.signal, 1, never).waited));
    say(code(lane.wait_counter(0, 1, never)));
    say(code(lane.wait_receive(never).waited));
    say(code(lane.flush(never)));
    for (unsigned i = 1; i < capacity / groups; ++i) (void)lane.put_value(std::uint64_t{1}, s.remote, 0, silent);
    Block{}.sync();  // full
    say(code(lane.flush(never)));
    say(code(lane.put(s.local, 0, s.remote, 0, 8, patient)));
    say(code(lane.put_value_each(std::uint64_t{1}, s.remote, 0, patient)));
    say(code(lane.put_values(4, s.remote, value_of, offset_of, patient)));
    say(code(lane.put_value(std::uint64_t{1}, s.remote, 0)));  // does not wait
  }
  static constexpr unsigned kWaits = 6, kPosts = 3, kStride = 16;
};

// What a warp posts with one call for all its members; `members`: and with calls that have one operation for each.
template <class G, bool members>
struct GroupScript {
  Stage s;
  const typename Lane<Sharing::one_thread, G>::Item* items;  // kItems
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread, G> lane(s.a);
    const G group;
    std::uint64_t bad = 0;
    How counted, silent;
    counted.counter = 2;
    silent.silent = true;
    for (std::uint64_t i = 0; i < 3; ++i) {
      bad += lane.put_strided(s.local, 64 * i, 48, s.remote, 128 * i, 80, 40 + i, 11 + i, counted).ok() ? 0 : 1;
      lane.fence();
      bad += lane.put_batch(s.local, s.remote, items, kItems, silent).ok() ? 0 : 1;
      bad += lane.put_values(
                     7, s.remote, [](std::uint64_t k) { return static_cast<std::uint32_t>(0x12345678 * (k + 1)); },
                     [](std::uint64_t k) { return 4 * k; })
                     .ok()
                 ? 0
                 : 1;
      if constexpr (members) {
        const std::uint64_t rank = group.rank();
        bad +=
            lane.put_each(s.local, 64 * rank, s.remote, 96 * rank, rank % 5 == 4 ? 0 : 8 + rank, counted).ok() ? 0 : 1;
        lane.fence();
        bad += lane.put_value_each(std::uint64_t{0x0102030405060708} * rank, s.remote, 8 * rank).ok() ? 0 : 1;
      }
    }
    if (group.rank() == 0) s.answers[0] = bad;
  }
  static constexpr std::uint64_t kItems = 40;  // more than a warp has members
};

// A wrong key in the middle. Answers: before it, itself, behind it, counter 1, counter 2, a wait for counter 1, what
// the queue failed of before and after, and what each member is told of that.
template <Sharing S, class G>
struct Failing {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned thread) const {
    Lane<S, G> lane(s.a);
    const auto say = [&](unsigned n, std::uint64_t what) {
      if (thread == 0) s.answers[n] = what;
    };
    say(6, code(lane.failure()));
    const Deadline d = Deadline::after_ns(s.patience_ns);
    How first, second;
    first.counter = 1;
    second.counter = 2;
    const Pending fine = lane.put_value(std::uint64_t{1}, s.remote, 0, first);
    const Pending wrong = lane.put_value(std::uint64_t{2}, s.wrong, 0, first);
    const Pending behind = lane.put_value(std::uint64_t{3}, s.remote, 8, second);
    const Outcome last = lane.wait(behind, d);
    say(0, code(lane.wait(fine, d)));
    say(1, code(lane.wait(wrong, d)));
    say(2, code(last));
    say(3, lane.counter(1).succeeded << 8 | lane.counter(1).failed);
    say(4, lane.counter(2).succeeded << 8 | lane.counter(2).failed);
    say(5, code(lane.wait_counter(1, 2, d)));
    const Outcome failure = lane.failure();
    say(7, failure.cause_index << 8 | failure.vendor_syndrome);
    s.answers[8 + thread] = code(failure);
  }
};

// Messages from a to b: thread 0 receives, thread 1 sends (two warps, so that neither waits for the other's turn).
struct Messages {
  Stage s;
  unsigned count;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    const Deadline d = Deadline::after_ns(s.patience_ns);
    if (thread != 0) return;
    if (block == 0) {
      Lane<Sharing::one_thread> lane(s.b);
      std::uint64_t bad = 0, posted = 0;
      for (unsigned i = 0; i < 4; ++i, ++posted) bad += lane.receive(s.local, 4096 + 64 * posted, 64).ok() ? 0 : 1;
      for (unsigned i = 0; i < count; ++i) {
        const Received got = lane.wait_receive(d);
        bad += got.waited == Waited::ok && got.bytes == 16 && got.has_imm && got.imm.value() == i && got.index == i ? 0
                                                                                                                    : 1;
        if (posted < count) bad += lane.receive(s.local, 4096 + 64 * posted++, 64).ok() ? 0 : 1;
      }
      s.answers[0] = bad;
    } else {
      Lane<Sharing::one_thread> lane(s.a);
      std::uint64_t bad = 0;
      for (unsigned i = 0; i < count; ++i)
        bad += lane.wait(lane.send_imm(s.local, 16 * i, 16, i), d).waited == Waited::ok ? 0 : 1;
      s.answers[1] = bad;
    }
  }
};

// Messages from a to b, where the threads of block 0 share the receives: each is taken by one of them. Answers: what
// went wrong, by thread of block 0, then of the sender; from kTaken on how often each receive was used, from kSeen on
// how often each message was seen.
struct MessagesOfMany {
  Stage s;
  std::uint64_t each;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    const Deadline d = Deadline::after_ns(s.patience_ns);
    const std::uint64_t receivers = Block{}.size();
    std::uint64_t bad = 0;
    if (block == 0) {
      Lane<Sharing::many_threads> lane(s.b);
      for (std::uint64_t i = 0; i < each; ++i) {
        bad += lane.receive(s.local, 4096 + 64 * (thread * each + i), 64).ok() ? 0 : 1;
        const Received got = lane.wait_receive(d);
        const bool fine = got.waited == Waited::ok && got.bytes == 16 && got.has_imm && got.index < receivers * each &&
                          got.imm.value() < receivers * each;
        bad += fine ? 0 : 1;
        if (!fine) break;
        ++s.answers[kTaken + got.index];
        ++s.answers[kSeen + got.imm.value()];
      }
      s.answers[thread] = bad;
    } else if (thread == 0) {
      Lane<Sharing::many_threads> lane(s.a);
      for (std::uint64_t i = 0; i < receivers * each; ++i)
        bad += lane.wait(lane.send_imm(s.local, 16 * i, 16, static_cast<std::uint32_t>(i)), d).waited == Waited::ok ? 0
                                                                                                                    : 1;
      s.answers[receivers] = bad;
    }
  }
  static constexpr unsigned kTaken = 64, kSeen = 1024;
};

// Refusals: nothing of this reaches the ring.
struct Refused {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    unsigned n = 0;
    Queue older = s.a;
    older.head.abi_version += 1;
    Lane<Sharing::one_thread> strange(older);
    s.answers[n++] = code(strange.put_value(1, s.remote, 0));
    Lane<Sharing::many_threads> other(s.a);
    s.answers[n++] = code(other.put_value(1, s.remote, 0));
    Lane<Sharing::one_thread> lane(s.a);
    s.answers[n++] = code(lane.put(s.local, s.local.length_bytes, s.remote, 0, 1));
    s.answers[n++] = code(lane.put(s.local, 0, s.remote, s.remote.length_bytes - 7, 8));
    s.answers[n++] = code(lane.put(s.local, ~std::uint64_t{0}, s.remote, 0, 2));
    s.answers[n++] = code(lane.get(s.local, 0, s.remote, 0, ~std::uint64_t{0}));
    s.answers[n++] = code(lane.fetch_add(s.remote, 4, 1, s.local, 0));
    s.answers[n++] = code(lane.fetch_add(s.remote, 0, 1, s.local, s.local.length_bytes - 7));
    s.answers[n++] = code(lane.signal(s.remote, s.remote.signals, 1));
    How odd;
    odd.flags = 0x01;
    s.answers[n++] = code(lane.put_value(1, s.remote, 0, odd));
    LocalRegion stranger = s.local;
    stranger.head.struct_size = 0;
    s.answers[n++] = code(lane.put(stranger, 0, s.remote, 0, 8));
    s.answers[n++] = code(lane.receive(s.local, 0, s.local.length_bytes + 1));
  }
  static constexpr unsigned kAnswers = 12;
};

}  // namespace bodies
