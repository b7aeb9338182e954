// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/devices.hpp"

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/options.hpp"
#include "sys/host.hpp"

namespace strait::soft::uverbs {
namespace {

Result<nic::EngineConfig> engine_options(unsigned index) {
  STRAIT_TRY(const Options options, Options::read());
  nic::EngineConfig out;
  out.packet_bytes = static_cast<std::uint32_t>(options.integer("roce_mtu"));
  out.capture = options.text("capture");
  if (const std::size_t at = out.capture.find("%p"); at != std::string::npos)
    out.capture.replace(at, 2, fmt::format("{}-{}", sys::process_id(), index));
  else if (!out.capture.empty() && index != 0)
    out.capture += fmt::format(".{}", index);  // two writers of one file would leave neither's packets
  const std::string& carrier = options.text("carrier");
  out.carrier = carrier == "roce"    ? nic::Carrier::packets
                : carrier == "grant" ? nic::Carrier::grant
                                     : nic::Carrier::any;
  out.cross_copies = options.text("cross_memory") != "off";
  if (const std::string& faults = options.text("faults"); !faults.empty()) {
    STRAIT_TRY(out.faults, FaultPlan::parse(faults));
  }
  if (options.flag("strict")) {
    out.strict.emplace();
    out.strict->report = options.text("strict_report");
    // `strait run --seed` is both of theirs
    out.strict->seed = nic::strict_seed_of(static_cast<std::uint64_t>(options.integer("strict_seed")), out.faults);
  }
  return out;
}

// Programs end without closing anything. What a NIC would still have done, ours does then.
void at_exit(const std::shared_ptr<Device>& device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& devices = *new std::vector<std::weak_ptr<Device>>;
  const std::scoped_lock lock(mutex);
  if (devices.empty()) {
    std::atexit([] {
      for (const auto& open : devices) {
        if (const auto alive = open.lock()) alive->finish_at_exit();
      }
    });
  }
  devices.push_back(device);
}

}  // namespace

Result<std::shared_ptr<Device>> Devices::at(unsigned index) {
  if (index >= kMostDevices) return fail_errno(ENXIO, fmt::format("there is no device {}", index));
  const std::scoped_lock lock(mutex_);
  if (auto alive = devices_[index].lock(); alive && !alive->in_child()) return alive;
  DeviceSettings settings;
  settings.index = index;
  settings.root = root_;
  STRAIT_TRY(settings.engine, engine_options(index));
  STRAIT_TRY(const Options options, Options::read());
  settings.background = options.flag("background");
  settings.spin_ns = options.duration_ns("spin");
  settings.trap_doorbells = options.flag("trap_doorbells");
  auto gids = read_gids(root_, index);
  if (!gids) {
    Error error = std::move(gids).error();
    error.sys_errno = ENXIO;
    return error;
  }
  settings.gids = std::move(*gids);
  STRAIT_TRY(settings.kernel,
             kernel::KernelSettings::parse(options.text("peer_memory"), options.text("kernel_faults")));
  auto device = std::make_shared<Device>(std::move(settings));
  devices_[index] = device;
  at_exit(device);
  return device;
}

}  // namespace strait::soft::uverbs
