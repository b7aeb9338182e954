// SPDX-License-Identifier: Apache-2.0
// A thread that waits for what does not come sleeps: waiting is begun by polling, for as long as option `spin` says.
#include <ctime>
#include <thread>

#include "flow.hpp"

namespace strait::flow {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  EXPECT_EQ(::clock_gettime(clock, &now), 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Spent {
  double seconds = 0;  // by the clock on the wall
  double cpu = 0;      // of this thread
};

template <class Wait>
Spent spent_in(Wait wait) {
  const double began = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  wait();
  return {seconds_of(CLOCK_MONOTONIC) - began, seconds_of(CLOCK_THREAD_CPUTIME_ID) - used};
}

// Who spins uses all that it is given. A share of what has passed: on a busy machine both say less, never more. With
// ThreadSanitizer a look costs ten times as much, and strict NICs are looked at often.
#if defined(__SANITIZE_THREAD__)
constexpr double kMostShare = 0.8;
#else
constexpr double kMostShare = 0.3;
#endif
void expect_slept(const Spent& spent, const char* call) {
  EXPECT_GE(spent.seconds, 1.0) << call;
  EXPECT_LT(spent.cpu, kMostShare * spent.seconds)
      << call << " used " << spent.cpu << " s of " << spent.seconds << " s";
}

class Waiting : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Progress, Waiting, ::testing::Values("thread", "caller", "eventfd"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Waiting, UsesLittleOfTheProcessor) {
  Pair pair(settings(), settings({{"progress", GetParam()}}));
  Block into(pair.asker, "host", 4096, access::all);
  Operation receive = pair.far.receive(into.region.all());  // nobody sends
  Spent message, signal;
  std::thread other([&] {
    signal = spent_in([&] {
      const auto seen = into.region.signal(0).wait_until_at_least(1, 1s);
      EXPECT_EQ(seen.error().code, Code::timeout);
    });
  });
  message = spent_in([&] {
    const auto done = receive.wait(1s);
    EXPECT_EQ(done.error().code, Code::timeout);
  });
  other.join();
  expect_slept(message, "wait()");
  expect_slept(signal, "wait_until_at_least()");
}

}  // namespace
}  // namespace strait::flow
