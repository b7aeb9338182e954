// SPDX-License-Identifier: Apache-2.0
// The measured loops of strait perf, both ends. Nothing is allocated, printed or verified inside the timed part.
#pragma once

#include <cstdint>
#include <functional>

#include "tool/perf_link.hpp"
#include "tool/samples.hpp"

namespace strait::tool {

// Everything one end needs while it measures. The loops use the C calls, as the C++ ones make a text of the path for
// every operation that ends.
struct Bench {
  Node& node;
  Peer& peer;
  Lane& lane;
  Arena& own;
  const Target& other;  // the other side's arena
  std::uint64_t bytes;
  std::int64_t deadline_ns;
  // Host memory and at most a word: the receiver polls the word itself. Everything else is ordered by a signal.
  bool polls_word;
};

// When the client has had enough: after so many operations, or so much time.
struct Goal {
  std::uint64_t iterations = 0;  // 0: by time
  std::int64_t duration_ns = 0;
  std::uint64_t warmup = 0;
  std::uint32_t window = 1;
  std::function<void(std::uint64_t done, double seconds)> tick{};  // now and then, from inside long runs
};

struct Timed {
  std::uint64_t iterations = 0;
  std::uint64_t operations = 0;  // warm-up included
  double seconds = 0;
  Samples samples;
};

[[nodiscard]] Result<Timed> ping_put(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> ping_send(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> time_get(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> time_fetch_add(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> time_compare_swap(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> stream_put(const Bench& bench, const Goal& goal);
[[nodiscard]] Result<Timed> stream_get(const Bench& bench, const Goal& goal);

// The server's part, until `over` says so. `over` is asked while nothing arrives.
[[nodiscard]] Status pong_put(const Bench& bench, const std::function<bool()>& over);
[[nodiscard]] Status pong_send(const Bench& bench, Operation first, const std::function<bool()>& over);
[[nodiscard]] Status stay_reachable(const Bench& bench, const std::function<bool()>& over);

}  // namespace strait::tool
