// SPDX-License-Identifier: Apache-2.0
// The timed loops, written once and instantiated for each library that moves bytes, so that a difference between two
// programs is a difference between the libraries.
//
// Transport: what a library must do.
//   void post(Place from, Place to)       one put of workload.size_bytes; reaps by itself when the library is full
//   void progress()                       lets the library work: polls once
//   void reap_down_to(std::uint32_t n)    until at most n puts are not yet known to be complete
//   std::uint8_t* source(r), target(r)    this process's memory; null when the CPU cannot reach it
//   void load_source(r, bytes), read_target(r, bytes)   outside the timed part, for any memory
//   std::string path()
//   kLastWordLast, if it has one: the last word of a put of any size arrives last, so that latency may poll it. Without
//   it latency is measured with one word.
#pragma once

#include <algorithm>

#include "workload.hpp"

namespace bench {

// The places of one phase: where puts land on either side, and where the bytes come from.
struct PhasePlaces {
  Places to_owner, to_initiator, from;
  PhasePlaces(const Workload& w, std::uint64_t phase)
      : to_owner(w, 3 * phase + 1), to_initiator(w, 3 * phase + 2), from(w, 3 * phase + 3) {}
};

// Small puts take their source in turn, so that no source is rewritten while it is under way; large ones at random.
inline Place source_place(const Workload& w, PhasePlaces& places, std::uint64_t i) {
  if (w.size_bytes != 8) return places.from.next();
  return {static_cast<std::uint32_t>(i & w.region_mask), (i & w.window_mask) * 8};
}

// The last word of the put carries the value.
template <class Transport>
void put_word(Transport& t, const Workload& w, Place from, Place to, std::uint64_t value) {
  store_word(t.source(from.region) + from.offset + w.size_bytes - 8, value);
  t.post(from, to);
}

template <class Transport>
void await_word(Transport& t, const Workload& w, Place at, std::uint64_t value, Patience& patience) {
  const std::uint8_t* word = t.target(at.region) + at.offset + w.size_bytes - 8;
  while (load_word(word) != value) {
    t.progress();
    patience.spent();
  }
  patience.again();
}

// Every put is answered by one, and completed and reaped before the next.
template <class Transport>
void ping(Transport& t, const Workload& w, PhasePlaces& places, std::uint64_t phase, std::uint64_t count) {
  Patience patience;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Place there = places.to_owner.next();
    const Place here = places.to_initiator.next();
    put_word(t, w, there, there, tag(phase, i));
    await_word(t, w, here, tag(phase, i), patience);
    t.reap_down_to(0);
  }
}

template <class Transport>
void pong(Transport& t, const Workload& w, PhasePlaces& places, std::uint64_t phase, std::uint64_t count) {
  Patience patience;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Place here = places.to_owner.next();
    const Place there = places.to_initiator.next();
    await_word(t, w, here, tag(phase, i), patience);
    put_word(t, w, there, there, tag(phase, i));
    t.reap_down_to(0);
  }
}

// `window` puts under way at any time; ends when all of them are complete.
template <class Transport>
void stream(Transport& t, const Workload& w, PhasePlaces& places, std::uint64_t phase, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    t.reap_down_to(w.window - 1);
    const Place from = source_place(w, places, i);
    const Place to = places.to_owner.next();
    if (w.size_bytes == 8) {
      put_word(t, w, from, to, tag(phase, i));
    } else {
      t.post(from, to);
    }
  }
  t.reap_down_to(0);
}

// What one phase was like.
struct Phase {
  std::uint64_t count;
  std::uint64_t took_ns;  // initiator
};

// `work(phase, count)`: this side's part.
template <class Transport, class Work>
Phase run_phase(Meeting* meeting, int side, Transport& t, std::uint32_t phase, Work work) {
  meet(meeting, side);
  const std::uint64_t count = meeting->count.load();
  meet(meeting, side);
  const std::uint64_t start = now_ns();
  work(phase, count);
  const std::uint64_t took = now_ns() - start;
  meeting->over[side].store(phase);
  // The other side's last puts may still need this side's engine.
  while (meeting->over[1 - side].load(std::memory_order_relaxed) != phase) t.progress();
  // Where completion only means that the source is free, the last puts lie in this side's queue and are landed now.
  for (int i = 0; i < 1000; ++i) t.progress();
  return {count, took};
}

constexpr std::uint32_t kPhases = 3;
struct Phases {
  std::uint64_t counts[kPhases + 1] = {};
  std::uint64_t took_ns = 0;  // of the last one, which counts
};

// Warm up, then size the timed phase so that it takes w.seconds. The second phase is a tenth of the third: caches,
// pages and clocks are warm when it counts.
template <class Transport, class Work>
Phases run_phases(const Workload& w, Meeting* meeting, int side, Transport& t, Work work) {
  Phases phases;
  std::uint64_t next = w.size_bytes > (1u << 20) ? 4 : w.size_bytes > 4096 ? 64 : 2000;
  for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
    if (side == 0) meeting->count.store(next);
    const Phase done = run_phase(meeting, side, t, phase, work);
    phases.counts[phase] = done.count;
    phases.took_ns = done.took_ns;
    const double each = static_cast<double>(std::max<std::uint64_t>(done.took_ns, 1)) / static_cast<double>(done.count);
    const double wanted = w.seconds * 1e9 * (phase == 1 ? 0.1 : 1.0) / each;
    next = static_cast<std::uint64_t>(std::clamp(wanted, 8.0, 5e7));
  }
  return phases;
}

// This side's part of a phase of puts.
template <class Transport>
void put_phase(const Workload& w, int side, Transport& t, std::uint32_t phase, std::uint64_t count) {
  PhasePlaces places(w, phase);
  if (w.test == Test::latency) {
    if (side == 0) ping(t, w, places, phase, count);
    if (side == 1) pong(t, w, places, phase, count);
  } else if (side == 0) {
    stream(t, w, places, phase, count);
  }
}

// The side that was written to compares what lies there with the same puts made again.
template <class Transport>
std::uint64_t verify(const Workload& w, int side, Transport& t, const std::uint64_t* counts, std::uint32_t phases) {
  Expected expected(w);
  for (std::uint32_t phase = 1; phase <= phases; ++phase) {
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < counts[phase]; ++i) {
      // A ping comes from where it goes to, in the other side's memory.
      const Place from = w.test == Test::latency ? Place{0, 0} : source_place(w, places, i);
      const Place to = side == 1 ? places.to_owner.next() : places.to_initiator.next();
      expected.put(tag(phase, i), w.test == Test::latency ? to : from, to);
    }
  }
  std::uint64_t wrong = 0;
  std::vector<std::uint8_t> found(w.region_bytes);
  for (std::uint32_t r = 0; r < w.regions; ++r) {
    t.read_target(r, found.data());
    wrong += expected.differences(r, found.data());
  }
  return wrong;
}

// Every source says where its bytes come from.
template <class Transport>
void load_sources(const Workload& w, Transport& t) {
  std::vector<std::uint8_t> bytes(w.region_bytes);
  for (std::uint32_t r = 0; r < w.regions; ++r) {
    fill_source(bytes.data(), r, w.region_bytes);
    t.load_source(r, bytes.data());
  }
}

template <class Transport>
int run_transfer(const Workload& w, Meeting* meeting, int side, Transport& t) {
  if (!is_put(w.test)) give_up("only puts are measured here: latency, rate, bandwidth");
  if constexpr (!requires { Transport::kLastWordLast; }) {
    if (w.test == Test::latency && w.size_bytes != 8) give_up("latency is measured with puts of 8 bytes");
  }
  load_sources(w, t);
  const Phases phases = run_phases(
      w, meeting, side, t, [&](std::uint32_t phase, std::uint64_t count) { put_phase(w, side, t, phase, count); });
  const std::uint64_t wrong = verify(w, side, t, phases.counts, kPhases);
  if (side == 1 || w.test == Test::latency) meeting->wrong.fetch_add(wrong);
  meet(meeting, side);
  if (side == 1) return 0;
  const auto count = static_cast<double>(phases.counts[kPhases]);
  const auto ns = static_cast<double>(phases.took_ns);
  const auto bad = meeting->wrong.load();
  if (w.test == Test::latency) print_result(w, ns / count / 2 / 1e3, "us", phases.counts[kPhases], bad, t.path());
  if (w.test == Test::rate) print_result(w, count / ns * 1e3, "M/s", phases.counts[kPhases], bad, t.path());
  if (w.test == Test::bandwidth)
    print_result(w, count * static_cast<double>(w.size_bytes) / ns, "GB/s", phases.counts[kPhases], bad, t.path());
  return 0;
}

}  // namespace bench
