// SPDX-License-Identifier: Apache-2.0
// How long it takes until somebody who sleeps has seen what another process put: a put of 8 bytes with a signal, beside
// a bare futex and a bare eventfd, in turn.
//
//   signal_wake wake [--milliseconds N] [--cpu A] [--owner-cpu B] [limit=futex|eventfd] [grant=...]
//
// One way: the word that is put is the time it was put at, and the owner looks at the clock when it has woken up and
// read the word. Before each, the owner is left alone for longer than anything of strait's looks around by itself.
// Nodes have the default progress, a thread of their own.
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <strait/strait.hpp>

#include <algorithm>
#include <chrono>
#include <climits>

#include "workload.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kAloneNs = 3'000'000;
constexpr std::uint32_t kMost = 4096;
enum Way : std::uint32_t { kStrait, kFutex, kEventfd, kWays };

// What both processes see.
struct Bell {
  alignas(64) std::atomic<std::uint32_t> rung;   // the futex
  alignas(64) std::atomic<std::uint64_t> stamp;  // the bare ways' word
  alignas(64) std::atomic<std::uint32_t> lies_down;
  alignas(64) std::atomic<std::uint32_t> got_up;
  std::uint64_t put[kWays][kMost];
  std::uint64_t seen[kWays][kMost];
  std::uint64_t woke[kWays][kMost];
};

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, nullptr, nullptr, 0);
}

void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const std::uint64_t until = now_ns() + 30'000'000'000u;
  while (word.load() != value) {
    if (now_ns() > until) give_up("the other process did not come within 30 s");
  }
}

std::vector<std::pair<std::string, std::string>> settings_of(const Workload& w) {
  const std::string grant = w.option("grant", "");
  if (grant.empty()) return {};
  return {{"grant", grant}};
}

// Who sleeps.
void owner(const Workload& w, Meeting* meeting, Bell& bell, int event) {
  auto node = strait::Node::open({.settings = settings_of(w)}).value();
  auto memory = node.allocate(4096).value();
  auto region = node.share(memory, strait::access::remote_write).value();
  auto published = node.publish("bell", region).value();
  std::snprintf(meeting->name[1], sizeof meeting->name[1], "%s", node.address().c_str());
  meet(meeting, 1);
  auto peer = node.accept(10s).value();
  meet(meeting, 1);
  const auto count = static_cast<std::uint32_t>(meeting->count.load());
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      bell.lies_down.store(++number);
      std::uint64_t word = 0;
      if (way == kStrait) {
        region.signal(0).wait_until_at_least(i + 1, 30s).value();
        word = load_word(static_cast<std::uint8_t*>(memory.data()));
      } else if (way == kFutex) {
        while (bell.rung.load() == i) futex(&bell.rung, FUTEX_WAIT, i);
        word = bell.stamp.load();
      } else {
        std::uint64_t rings = 0;
        if (read(event, &rings, sizeof rings) != sizeof rings) give_up("cannot read an eventfd");
        word = bell.stamp.load();
      }
      bell.woke[way][i] = now_ns();
      bell.seen[way][i] = word;
      bell.got_up.store(number);
    }
  }
  meet(meeting, 1);
}

void initiator(const Workload& w, Meeting* meeting, Bell& bell, int event) {
  auto node = strait::Node::open({.settings = settings_of(w)}).value();
  auto memory = node.allocate(4096).value();
  auto region = node.share(memory, strait::access::local).value();
  meet(meeting, 0);
  auto peer = node.connect(meeting->name[1], {.deadline = 10s}).value();
  const strait::Place there = peer.lookup("bell", 10s).value().at(0);
  const auto wanted = static_cast<std::uint64_t>(w.seconds * 1e9 / static_cast<double>(kAloneNs));
  const auto count = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 21, kMost));
  meeting->count.store(count);
  meet(meeting, 0);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      wait_for(bell.lies_down, ++number);
      const std::uint64_t alone = now_ns() + kAloneNs;
      while (now_ns() < alone) {
      }
      const std::uint64_t stamp = bell.put[way][i] = now_ns();
      if (way == kStrait) {
        store_word(static_cast<std::uint8_t*>(memory.data()), stamp);
        peer.put(region.slice(0, 8), there, {.signal = 0}).wait(30s).value();
      } else if (way == kFutex) {
        bell.stamp.store(stamp);
        bell.rung.store(i + 1);
        futex(&bell.rung, FUTEX_WAKE, INT_MAX);
      } else {
        bell.stamp.store(stamp);
        const std::uint64_t one = 1;
        if (write(event, &one, sizeof one) != sizeof one) give_up("cannot write an eventfd");
      }
      wait_for(bell.got_up, number);
    }
  }
  meet(meeting, 0);
  std::uint64_t wrong = 0;
  double medians[kWays];
  for (std::uint32_t way = 0; way < kWays; ++way) {
    std::vector<double> took;
    for (std::uint32_t i = 0; i < count; ++i) {
      wrong += bell.seen[way][i] != bell.put[way][i] ? 8u : 0u;
      took.push_back(static_cast<double>(bell.woke[way][i] - bell.put[way][i]) / 1e3);
    }
    medians[way] = median(took);
  }
  const std::string limit = w.option("limit", "futex");
  if (limit != "futex" && limit != "eventfd") give_up("limit takes futex or eventfd");
  print_result(w, medians[kStrait], "us", count, wrong,
               peer.path() + "; futex " + std::to_string(medians[kFutex]) + " us, eventfd " +
                   std::to_string(medians[kEventfd]) + " us",
               limit == "futex" ? medians[kFutex] : medians[kEventfd]);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  if (workload.test != bench::Test::wake) bench::give_up("only wake is measured here");
  void* pages = mmap(nullptr, sizeof(bench::Bell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int event = eventfd(0, EFD_CLOEXEC);
  if (pages == MAP_FAILED || event < 0) bench::give_up("no memory or descriptor for both processes");
  auto& bell = *new (pages) bench::Bell{};
  bench::Meeting* meeting = nullptr;
  if (bench::split(workload, &meeting) == 1) {
    bench::owner(workload, meeting, bell, event);
  } else {
    bench::initiator(workload, meeting, bell, event);
    bench::join();
  }
  return 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
