// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/family.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include "base/options.hpp"
#include "soft/uverbs/context.hpp"
#include "soft/uverbs/tree.hpp"
#include "sys/host.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::string_view kPrefix = "/dev/infiniband/uverbs";
// Doorbell pages at the offsets that libmlx5 computes: page * (command << 8 | index). Sparse, so its size costs
// nothing.
constexpr std::size_t kPagesBytes = std::size_t{64} << 20;

std::optional<unsigned> index_of(std::string_view node) {
  if (!node.starts_with(kPrefix)) return {};
  const std::string_view digits = node.substr(kPrefix.size());
  unsigned index = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return {};
  if (index >= kMostDevices) return {};
  return index;
}

Result<nic::EngineConfig> engine_options(unsigned index) {
  STRAIT_TRY(const Options options, Options::read());
  nic::EngineConfig out;
  out.packet_bytes = static_cast<std::uint32_t>(options.integer("roce_mtu"));
  out.capture = options.text("capture");
  if (const std::size_t at = out.capture.find("%p"); at != std::string::npos)
    out.capture.replace(at, 2, fmt::format("{}-{}", sys::process_id(), index));
  else if (!out.capture.empty() && index != 0)
    out.capture += fmt::format(".{}", index);  // two writers of one file would leave neither's packets
  if (options.flag("strict")) {
    out.strict.emplace();
    out.strict->report = options.text("strict_report");
  }
  if (const std::string& faults = options.text("faults"); !faults.empty()) {
    STRAIT_TRY(out.faults, FaultPlan::parse(faults));
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
        if (const auto alive = open.lock()) alive->finish();
      }
    });
  }
  devices.push_back(device);
}

class UverbsFamily final : public host::Family {
 public:
  explicit UverbsFamily(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] bool owns(std::string_view node) const override { return index_of(node).has_value(); }

  [[nodiscard]] std::uint64_t device_number(std::string_view node) const override {
    return uverbs::device_number(index_of(node).value_or(0));
  }

  [[nodiscard]] Result<host::Opened> open(std::string_view node, int /*flags*/) override {
    const auto index = index_of(node);
    if (!index) return fail_errno(ENOENT, fmt::format("there is no device behind {}", node));
    STRAIT_TRY(auto device, device_at(*index));
    STRAIT_TRY(auto pages, sys::make_sealed_memfd("strait-uverbs", kPagesBytes));
    return host::Opened{std::move(pages), std::make_shared<Context>(std::move(device))};
  }

 private:
  // The one that lives, or a new one. A child of fork gets its own: an engine is not inherited.
  [[nodiscard]] Result<std::shared_ptr<Device>> device_at(unsigned index) {
    const std::scoped_lock lock(mutex_);
    if (auto alive = devices_[index].lock(); alive && !alive->in_child()) return alive;
    DeviceSettings settings;
    settings.index = index;
    settings.root = root_;
    STRAIT_TRY(settings.engine, engine_options(index));
    auto gids = read_gids(root_, index);
    if (!gids) {
      Error error = std::move(gids).error();
      error.sys_errno = ENXIO;
      return error;
    }
    settings.gids = std::move(*gids);
    auto device = std::make_shared<Device>(std::move(settings));
    devices_[index] = device;
    at_exit(device);
    return device;
  }

  std::string root_;
  std::mutex mutex_;
  std::array<std::weak_ptr<Device>, kMostDevices> devices_;
};

}  // namespace

std::unique_ptr<host::Family> make_family(std::string root) {
  return std::make_unique<UverbsFamily>(std::move(root));
}

}  // namespace strait::soft::uverbs
