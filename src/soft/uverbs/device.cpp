// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/device.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "soft/host/report.hpp"
#include "soft/uverbs/hooks.hpp"
#include "sys/clock.hpp"

namespace strait::soft::uverbs {

namespace {
constexpr std::int64_t kLingerNs = 50'000'000;
// While a program ends its other threads still run, and some take what they find then for an error: not for long.
constexpr std::int64_t kLingerAtExitNs = 4'000'000;
constexpr std::int64_t kFreeAtExitNs = 200'000'000;
std::string with_comma(std::string first, const std::string& more) {
  return more.empty() ? first : std::move(first) + "," + more;
}
std::atomic<bool> g_ending{false};
constexpr std::chrono::milliseconds kLook{2};
}  // namespace

Device::Device(DeviceSettings settings)
    : settings_(std::move(settings)),
      memory_(settings_.memory != nullptr ? settings_.memory : &own_memory_),
      kernel_(kernel::machine_drivers(), settings_.kernel) {}

kernel::DmaDevice Device::dma_device() const {
  kernel::DmaDevice out;
  out.name = fmt::format("strait{}", settings_.index);
  return out;
}

Device::~Device() {
  if (progress_) unhook(*progress_);
  finish();
}

void Device::finish() {
  const std::scoped_lock lock(mutex_);
  if (!engine_ || in_child()) return;
  // An acknowledgement goes out in one pass; what comes of it to this process is handed on in the next; and what the
  // other one has no room for yet waits here. All would be lost with the sockets. Armed and woken, the engine looks at
  // its ports even when no queue pair is left.
  const sys::Deadline deadline = sys::Deadline::after_ns(g_ending ? kLingerAtExitNs : kLingerNs);
  const bool talked = engine_->has_sent_packets();
  do {
    (void)engine_->arm();
    while (engine_->drive(0) != 0 && !deadline.passed()) {
    }
    if (talked) std::this_thread::sleep_for(kLook);
  } while (talked && !deadline.passed());
  if (settings_.root.empty()) return;
  std::string counters = with_comma(engine_->counters_text(), kernel_.counters_text());
  if (progress_ && progress_->traps()) counters += fmt::format(",doorbells_trapped={}", progress_->trapped());
  host::leave_report(settings_.root, fmt::format("strait{}", settings_.index), counters);
}

void Device::finish_at_exit() {
  g_ending = true;
  {
    // exit() in a signal handler: what it interrupted may hold these.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || (engine_ && !in_child() && !engine_->free_within(kFreeAtExitNs))) return;
  }
  finish();
}

Result<nic::Engine*> Device::engine() {
  const std::scoped_lock lock(mutex_);
  if (engine_) return engine_.get();
  nic::EngineConfig config = settings_.engine;
  config.name = fmt::format("strait{}", settings_.index);
  config.packet_address = gids().front().address.text();
  for (std::size_t i = 1; i < gids().size(); ++i) config.more_addresses.push_back(gids()[i].address.text());
  STRAIT_TRY(auto engine, settings_.open_engine ? settings_.open_engine(config) : nic::Engine::open(config));
  engine->set_event_sink(&events_);
  if (!settings_.alone) {
    STRAIT_TRY(progress_, Progress::start(*engine, {.background = settings_.background,
                                                    .spin_ns = settings_.spin_ns,
                                                    .traps = settings_.trap_doorbells}));
  }
  engine_ = std::move(engine);
  return engine_.get();
}

}  // namespace strait::soft::uverbs
