// SPDX-License-Identifier: Apache-2.0
// The progress thread.
//
// Three tempos. Callers poll: look in every two milliseconds and touch nothing, they drive the engine themselves and a
// second driver would only take cache lines from them. Recently busy: poll for `spin`, then with short sleeps. Quiet:
// arm every NIC and sleep until one has work; that costs nothing.
#include "node/progress.hpp"

#include "node/core.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::node {
namespace {

constexpr std::int64_t kCallerTempoNs = 2'000'000;
constexpr std::int64_t kWarmNs = 1'000'000;  // how long after the last work short sleeps go on
constexpr std::int64_t kWarmNapNs = 100'000;
constexpr std::int64_t kKnockNapNs = 1'000'000;  // others sleep on the same descriptors, and may take the event
constexpr std::int64_t kBusyNapNs = 50'000;
constexpr int kPassesAtOnce = 64;
constexpr std::int64_t kDrainTempoNs = 5'000'000;  // while a dropped region waits for its operations

}  // namespace

Result<std::unique_ptr<Progress>> Progress::start(Core& core) {
  std::unique_ptr<Progress> progress(new Progress(core));
  STRAIT_TRY(progress->events_, sys::EventSet::make());
  STRAIT_CHECK(progress->events_.add(core.sleeper().wake().fd()));
  if (core.door() != nullptr && core.settings().progress == ProgressMode::eventfd)
    STRAIT_CHECK(progress->events_.add(core.door()->wake().fd()));
  for (const Rail& rail : core.rails()) {
    if (const int fd = rail.nic->event_fd(); fd >= 0) STRAIT_CHECK(progress->events_.add(fd));
  }
  if (core.settings().progress == ProgressMode::thread) {
    Progress* self = progress.get();
    STRAIT_TRY(progress->thread_, sys::start_quiet_thread([self] { self->run(); }));
  }
  return progress;
}

Progress::~Progress() {
  stop();
}

void Progress::stop() {
  stopping_.store(true, std::memory_order_release);
  if (core_.sleeper().wake().valid()) core_.sleeper().wake().raise();
  if (thread_.joinable()) thread_.join();
}

void Progress::abandon() {
  // The thread object names a thread of the parent: detaching it is the only way to let go of it without joining.
  if (thread_.joinable()) thread_.detach();
}

bool Progress::arm() {
  core_.sleeper().lie_down();
  bool armed = true;
  for (const Rail& rail : core_.rails()) armed = rail.nic->arm() && armed;
  if (!armed) core_.sleeper().get_up();
  return armed;
}

void Progress::run() {
  core_.placement().place_thread();
  std::uint64_t polls_before = core_.caller_polls();
  std::int64_t last_work_ns = sys::now_ns();
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t polls = core_.caller_polls();
    if (polls != polls_before) {
      polls_before = polls;
      if (core_.draining() != 0) core_.sweep();
      last_work_ns = sys::now_ns();
      if (sys::nap_on(core_.sleeper().wake().fd(), kCallerTempoNs)) core_.sleeper().get_up();
      continue;
    }
    if (core_.drive_all() > 0) {
      last_work_ns = sys::now_ns();
      continue;
    }
    if (core_.draining() != 0) core_.sweep();
    const std::int64_t quiet_ns = sys::now_ns() - last_work_ns;
    if (quiet_ns < core_.settings().spin_ns) continue;
    if (quiet_ns < kWarmNs) {
      (void)events_.wait_ns(kWarmNapNs);
      core_.sleeper().get_up();
      continue;
    }
    if (!arm()) continue;
    (void)events_.wait_ns(core_.draining() != 0 ? kDrainTempoNs : -1);
    core_.sleeper().get_up();
  }
}

DriveMeanwhile::DriveMeanwhile(Core& core) {
  const auto drive = [&core]() -> std::int64_t {
    for (int i = 0; core.drive_all() > 0; ++i) {
      if (i == kPassesAtOnce) return 0;  // others keep it busy, and whoever ends this is to be heard
    }
    // Armed, it looks at its sockets when it is driven next: that is where a stranger knocks.
    bool armed = true;
    for (const Rail& rail : core.rails()) armed = rail.nic->event_fd() >= 0 && rail.nic->arm() && armed;
    return armed ? kKnockNapNs : kBusyNapNs;
  };
  // Without a thread the call may only take longer: the peer's side is bounded by the same deadline.
  if (!thread_.start(drive, 0)) return;
  for (const Rail& rail : core.rails()) {
    if (const int fd = rail.nic->event_fd(); fd >= 0) (void)thread_.add(fd);
  }
}

}  // namespace strait::node
