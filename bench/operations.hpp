// SPDX-License-Identifier: Apache-2.0
// The timed loops of operations other than puts, written once for each library that has them, as transfer.hpp is for
// puts.
//
// get, fetch_add: one after the other, each waited for, from and to random places; the time of one.
// send_latency: every message is answered by one, both waited for; half the time of a round.
// send_bandwidth: `window` messages under way; the receiver has its receives posted ahead.
//
// Transport: what transfer.hpp asks for, and
//   void get(Place into, Place from)                  into its own target regions, from the owner's; waits
//   std::uint64_t fetch_add(Place at, std::uint64_t)  on the owner's target regions; waits
//   Handle send(Place from), receive(Place into)      from its sources, into its targets
//   void wait(Handle&)
//   void take_back(Handle&)                           a receive that nothing will come for; optional
#pragma once

#include "transfer.hpp"

namespace bench {

// The bytes that every process loads into its region r.
inline std::vector<std::vector<std::uint8_t>> all_sources(const Workload& w) {
  std::vector<std::vector<std::uint8_t>> bytes;
  for (std::uint32_t r = 0; r < w.regions; ++r) {
    bytes.emplace_back(w.region_bytes);
    fill_source(bytes.back().data(), r, w.region_bytes);
  }
  return bytes;
}

inline std::uint64_t count_differences(const std::uint8_t* a, const std::uint8_t* b, std::uint64_t length) {
  if (std::memcmp(a, b, length) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < length; ++i) wrong += a[i] != b[i] ? 1u : 0u;
  return wrong;
}

// ---- get: the initiator's regions end as the same gets made again by memcpy ----------------------------------------

template <class Transport>
std::uint64_t run_gets(const Workload& w, Meeting* meeting, int side, Transport& t, Phases& phases) {
  // What is read lies in the owner's published regions.
  if (side == 1) {
    const auto bytes = all_sources(w);
    for (std::uint32_t r = 0; r < w.regions; ++r) std::memcpy(t.target(r), bytes[r].data(), w.region_bytes);
  }
  phases = run_phases(w, meeting, side, t, [&](std::uint32_t phase, std::uint64_t count) {
    if (side == 1) return;
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Place from = places.from.next();
      t.get(places.to_initiator.next(), from);
    }
  });
  if (side == 1) return 0;
  const auto source = all_sources(w);
  std::vector<std::vector<std::uint8_t>> expected(w.regions, std::vector<std::uint8_t>(w.region_bytes));
  for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < phases.counts[phase]; ++i) {
      const Place from = places.from.next();
      const Place into = places.to_initiator.next();
      std::memcpy(expected[into.region].data() + into.offset, source[from.region].data() + from.offset, w.size_bytes);
    }
  }
  std::uint64_t wrong = 0;
  for (std::uint32_t r = 0; r < w.regions; ++r)
    wrong += count_differences(expected[r].data(), t.target(r), w.region_bytes);
  return wrong;
}

// ---- fetch_add: the sum of the values that came back, and every word of the owner, must be right -------------------

template <class Transport>
std::uint64_t run_adds(const Workload& w, Meeting* meeting, int side, Transport& t, Phases& phases) {
  std::uint64_t sum = 0;
  phases = run_phases(w, meeting, side, t, [&](std::uint32_t phase, std::uint64_t count) {
    if (side == 1) return;
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < count; ++i) sum += t.fetch_add(places.to_owner.next(), i + 1);
  });
  std::vector<std::vector<std::uint64_t>> expected(w.regions, std::vector<std::uint64_t>(w.region_bytes / 8));
  std::uint64_t expected_sum = 0;
  for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < phases.counts[phase]; ++i) {
      const Place at = places.to_owner.next();
      std::uint64_t& word = expected[at.region][at.offset / 8];
      expected_sum += word;
      word += i + 1;
    }
  }
  if (side == 0) return sum == expected_sum ? 0 : 8;
  std::uint64_t wrong = 0;
  for (std::uint32_t r = 0; r < w.regions; ++r) {
    wrong += count_differences(reinterpret_cast<const std::uint8_t*>(expected[r].data()), t.target(r),
                               expected[r].size() * 8);
  }
  return wrong;
}

// ---- messages ------------------------------------------------------------------------------------------------------

// Receives are posted ahead, into places taken in turn: none is overwritten before it was looked at.
template <class Transport>
class Inbox {
 public:
  Inbox(const Workload& w, Transport& t, std::uint64_t ahead) : workload_(w), t_(t), pending_(ahead) {
    if (ahead / (w.region_mask + 1) * w.size_bytes > w.region_bytes) give_up("--region-bytes holds too few messages");
    for (std::uint64_t i = 0; i < ahead; ++i) post();
  }
  ~Inbox() {
    if constexpr (requires(typename Transport::Handle& op) { t_.take_back(op); }) {
      for (; taken_ != posted_; ++taken_) t_.take_back(pending_[taken_ & (pending_.size() - 1)]);
    }
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  // The next message. Its first word; and room for another one.
  std::uint64_t take() {
    typename Transport::Handle& op = pending_[taken_ & (pending_.size() - 1)];
    t_.wait(op);
    const Place at = place(taken_++);
    const std::uint64_t word = load_word(t_.target(at.region) + at.offset);
    post();
    return word;
  }
  [[nodiscard]] Place place(std::uint64_t i) const {
    if (workload_.one_place) return {0, 0};
    const std::uint64_t slot = i & (pending_.size() - 1);
    return {static_cast<std::uint32_t>(slot & workload_.region_mask),
            slot / (workload_.region_mask + 1) * workload_.size_bytes};
  }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }

 private:
  void post() {
    pending_[posted_ & (pending_.size() - 1)] = t_.receive(place(posted_));
    ++posted_;
  }
  const Workload& workload_;
  Transport& t_;
  std::vector<typename Transport::Handle> pending_;  // a power of two
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
};

// Word i of a phase, both ways.
inline std::uint64_t sum_of_tags(const Phases& phases) {
  std::uint64_t sum = 0;
  for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
    for (std::uint64_t i = 0; i < phases.counts[phase]; ++i) sum += tag(phase, i);
  }
  return sum;
}

template <class Transport>
std::uint64_t run_messages_to_and_fro(const Workload& w, Meeting* meeting, int side, Transport& t, Phases& phases) {
  if (w.size_bytes != 8) give_up("send_latency is measured with messages of 8 bytes");
  Inbox inbox(w, t, 64);
  std::uint64_t sum = 0;
  phases = run_phases(w, meeting, side, t, [&](std::uint32_t phase, std::uint64_t count) {
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (side == 1) sum += inbox.take();
      const Place from = places.from.next();
      store_word(t.source(from.region) + from.offset, tag(phase, i));
      typename Transport::Handle sent = t.send(from);
      if (side == 0) sum += inbox.take();
      t.wait(sent);
    }
  });
  return sum == sum_of_tags(phases) ? 0 : 8;
}

// The last messages still lie where they were received.
template <class Transport>
std::uint64_t verify_last(const Workload& w, const Inbox<Transport>& inbox, Transport& t, const Phases& phases,
                          std::uint64_t slots) {
  const auto source = all_sources(w);
  std::vector<Place> froms;
  for (std::uint32_t phase = 1; phase <= kPhases; ++phase) {
    PhasePlaces places(w, phase);
    for (std::uint64_t i = 0; i < phases.counts[phase]; ++i) froms.push_back(places.from.next());
  }
  if (froms.size() != inbox.taken()) return 1;
  std::uint64_t wrong = 0;
  const std::uint64_t last = std::min<std::uint64_t>(w.one_place ? 1 : slots, froms.size());
  for (std::uint64_t i = froms.size() - last; i < froms.size(); ++i) {
    const Place at = inbox.place(i);
    wrong += count_differences(source[froms[i].region].data() + froms[i].offset, t.target(at.region) + at.offset,
                               w.size_bytes);
  }
  return wrong;
}

template <class Transport>
std::uint64_t run_messages(const Workload& w, Meeting* meeting, int side, Transport& t, Phases& phases) {
  constexpr std::uint64_t kAhead = 64;
  if (side == 1) {
    Inbox inbox(w, t, kAhead);
    std::uint64_t sum = 0;
    phases = run_phases(w, meeting, side, t, [&](std::uint32_t, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) sum += inbox.take();
    });
    asm volatile("" ::"r"(sum));  // every message is looked at, as a program would
    return verify_last(w, inbox, t, phases, kAhead);
  }
  std::vector<typename Transport::Handle> under_way(w.window_mask + 1);
  phases = run_phases(w, meeting, side, t, [&](std::uint32_t phase, std::uint64_t count) {
    PhasePlaces places(w, phase);
    std::uint64_t waited = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i - waited == w.window) t.wait(under_way[waited++ & w.window_mask]);
      under_way[i & w.window_mask] = t.send(places.from.next());
    }
    while (waited < count) t.wait(under_way[waited++ & w.window_mask]);
  });
  return 0;
}

template <class Transport>
void run_operations(const Workload& w, Meeting* meeting, int side, Transport& t) {
  if (w.test < Test::get || w.test > Test::send_bandwidth) give_up("this is measured by another program");
  if (w.test != Test::send_bandwidth && w.size_bytes != 8) give_up("--size must be 8 here");
  load_sources(w, t);
  Phases phases;
  const auto body = w.test == Test::get            ? run_gets<Transport>
                    : w.test == Test::fetch_add    ? run_adds<Transport>
                    : w.test == Test::send_latency ? run_messages_to_and_fro<Transport>
                                                   : run_messages<Transport>;
  meeting->wrong.fetch_add(body(w, meeting, side, t, phases));
  meet(meeting, side);
  if (side == 0) {
    const auto count = static_cast<double>(phases.counts[kPhases]);
    const auto ns = static_cast<double>(phases.took_ns);
    const bool stream = w.test == Test::send_bandwidth;
    const double each_us = ns / count / 1e3 / (w.test == Test::send_latency ? 2 : 1);
    print_result(w, stream ? count * static_cast<double>(w.size_bytes) / ns : each_us, stream ? "GB/s" : "us",
                 phases.counts[kPhases], meeting->wrong.load(), t.path());
  }
  meet(meeting, side);
}

}  // namespace bench
