// SPDX-License-Identifier: Apache-2.0
// The client's loops: post, see it end, note the time.
#include "tool/perf_loops.hpp"

#include <atomic>
#include <cstring>
#include <vector>

#include "sys/clock.hpp"
#include "tool/perf_arrival.hpp"

namespace strait::tool {
namespace {

constexpr std::int64_t kTickNs = 250'000'000;

// Counts operations, ends the loop, and lets the progress line breathe.
class Pace {
 public:
  explicit Pace(const Goal& goal) : goal_(goal), start_ns_(sys::now_ns()), next_tick_ns_(start_ns_ + kTickNs) {}
  [[nodiscard]] bool more(std::uint64_t done, std::int64_t now_ns) {
    if (now_ns >= next_tick_ns_) {
      if (goal_.tick) goal_.tick(done, static_cast<double>(now_ns - start_ns_) * 1e-9);
      next_tick_ns_ = now_ns + kTickNs;
    }
    if (goal_.iterations != 0) return done < goal_.iterations;
    return now_ns - start_ns_ < goal_.duration_ns;
  }
  [[nodiscard]] double seconds(std::int64_t now_ns) const { return static_cast<double>(now_ns - start_ns_) * 1e-9; }

 private:
  const Goal& goal_;
  std::int64_t start_ns_;
  std::int64_t next_tick_ns_;
};

// `once(n)` does operation number n and answers how long it took. n goes on through the warm-up, since both ends count.
template <class Once>
Result<Timed> sample(const Goal& goal, Once once) {
  Timed timed;
  for (; timed.operations < goal.warmup; ++timed.operations) {
    if (auto ns = once(timed.operations); !ns) return std::move(ns).error();
  }
  Pace pace(goal);
  std::int64_t now_ns = sys::now_ns();
  while (pace.more(timed.iterations, now_ns)) {
    auto ns = once(timed.operations);
    if (!ns) return std::move(ns).error();
    timed.samples.add(*ns);
    ++timed.iterations;
    ++timed.operations;
    now_ns = sys::now_ns();
  }
  timed.seconds = pace.seconds(now_ns);
  return timed;
}

// Keeps `window` operations under way and counts those that ended.
template <class Post>
Result<Timed> stream(const Bench& bench, const Goal& goal, Post post) {
  Timed timed{.samples = Samples(2)};
  const std::uint32_t window = std::max(goal.window, 1u);
  std::vector<strait_op> slots(window);
  strait_done done{};
  done.struct_size = sizeof done;
  strait_error error{};
  error.struct_size = sizeof error;

  std::uint64_t posted = 0;
  std::uint64_t ended = 0;
  const auto post_one = [&]() -> bool {
    return post(&slots[posted % window], &error) == STRAIT_OK && (++posted, true);
  };
  const auto end_one = [&]() -> bool {
    return strait_wait(&slots[ended % window], bench.deadline_ns, &done, &error) == STRAIT_OK && (++ended, true);
  };
  const auto drain = [&]() -> bool {
    while (ended != posted) {
      if (!end_one()) return false;
    }
    return true;
  };

  bool good = true;
  while (good && posted < goal.warmup) {
    if (posted - ended == window) good = end_one();
    if (good) good = post_one();
  }
  good = good && drain();
  const std::uint64_t base = posted;
  Pace pace(goal);
  std::int64_t now_ns = sys::now_ns();
  // The clock is read once a window: at 10 million operations a second it would be a tenth of what is measured.
  while (good && pace.more(posted - base, now_ns)) {
    std::uint64_t round = window;
    if (goal.iterations != 0) round = std::min<std::uint64_t>(round, goal.iterations - (posted - base));
    for (std::uint64_t i = 0; good && i < round; ++i) {
      if (posted - ended == window) good = end_one();
      if (good) good = post_one();
    }
    now_ns = sys::now_ns();
  }
  good = good && drain();
  timed.seconds = pace.seconds(sys::now_ns());
  timed.operations = posted;
  timed.iterations = posted - base;
  if (!good) {
    // What is still under way holds its memory by itself; only our names for it go.
    for (; ended != posted; ++ended) strait_detach(&slots[ended % window]);
    return detail::to_error(error);
  }
  return timed;
}

template <class Post>
Result<Timed> time_whole(const Bench& bench, const Goal& goal, Post post,
                         const std::function<Status(std::uint64_t, std::uint64_t)>& check) {
  strait_done done{};
  done.struct_size = sizeof done;
  strait_error error{};
  error.struct_size = sizeof error;
  return sample(goal, [&](std::uint64_t n) -> Result<std::int64_t> {
    strait_op op{};
    const std::int64_t start_ns = sys::now_ns();
    if (post(n, &op, &error) != STRAIT_OK) return detail::to_error(error);
    if (strait_wait(&op, bench.deadline_ns, &done, &error) != STRAIT_OK) {
      strait_detach(&op);
      return detail::to_error(error);
    }
    const std::int64_t ns = sys::now_ns() - start_ns;
    STRAIT_CHECK(check(n, done.value));
    return ns;
  });
}

Status old_value_is(std::uint64_t expected, std::uint64_t found) {
  if (expected == found) return {};
  return fail(Code::device, "an atomic found {} where {} must have been: somebody else wrote there, or one was lost",
              found, expected);
}

}  // namespace

Result<Timed> ping_put(const Bench& bench, const Goal& goal) {
  Arrival arrival(bench);
  PutBack put(bench);
  return sample(goal, [&](std::uint64_t n) -> Result<std::int64_t> {
    const std::int64_t start_ns = sys::now_ns();
    STRAIT_CHECK(put.once(n + 1));
    STRAIT_CHECK(arrival.wait(n + 1, nullptr));
    return (sys::now_ns() - start_ns) / 2;
  });
}

Result<Timed> ping_send(const Bench& bench, const Goal& goal) {
  const Slice out = bench.own.region.slice(0, bench.bytes);
  const Slice in = bench.own.region.slice(bench.own.capacity, bench.bytes);
  auto timed = sample(goal, [&](std::uint64_t) -> Result<std::int64_t> {
    Operation receive = bench.peer.receive(in);  // posted before the clock starts, as a program would
    const std::int64_t start_ns = sys::now_ns();
    auto sent = bench.peer.send(out, {.imm = kMore}).wait(Duration(bench.deadline_ns));
    if (!sent) return sent.error();
    auto received = receive.wait(Duration(bench.deadline_ns));
    if (!received) return received.error();
    return (sys::now_ns() - start_ns) / 2;
  });
  if (!timed) return timed;
  auto last = bench.peer.send(out, {.imm = kLast}).wait(Duration(bench.deadline_ns));
  if (!last) return last.error();
  return timed;
}

Result<Timed> time_get(const Bench& bench, const Goal& goal) {
  const strait_slice into = bench.own.region.slice(bench.own.capacity, bench.bytes).raw;
  return time_whole(
      bench, goal,
      [&](std::uint64_t, strait_op* op, strait_error* error) {
        return strait_get(bench.lane.raw(), &into, &bench.other.raw(), 0, nullptr, op, error);
      },
      [](std::uint64_t, std::uint64_t) { return Status(); });
}

Result<Timed> time_fetch_add(const Bench& bench, const Goal& goal) {
  return time_whole(
      bench, goal,
      [&](std::uint64_t, strait_op* op, strait_error* error) {
        return strait_fetch_add(bench.lane.raw(), &bench.other.raw(), bench.own.capacity, 1, nullptr, op, error);
      },
      old_value_is);
}

Result<Timed> time_compare_swap(const Bench& bench, const Goal& goal) {
  return time_whole(
      bench, goal,
      [&](std::uint64_t n, strait_op* op, strait_error* error) {
        return strait_compare_swap(bench.lane.raw(), &bench.other.raw(), bench.own.capacity, n, n + 1, nullptr, op,
                                   error);
      },
      old_value_is);
}

Result<Timed> stream_put(const Bench& bench, const Goal& goal) {
  const strait_slice from = bench.own.region.slice(0, bench.bytes).raw;
  return stream(bench, goal, [&](strait_op* op, strait_error* error) {
    return strait_put(bench.lane.raw(), &from, &bench.other.raw(), bench.own.capacity, nullptr, op, error);
  });
}

Result<Timed> stream_get(const Bench& bench, const Goal& goal) {
  const strait_slice into = bench.own.region.slice(bench.own.capacity, bench.bytes).raw;
  return stream(bench, goal, [&](strait_op* op, strait_error* error) {
    return strait_get(bench.lane.raw(), &into, &bench.other.raw(), 0, nullptr, op, error);
  });
}

}  // namespace strait::tool
