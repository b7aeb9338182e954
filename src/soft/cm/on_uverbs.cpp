// SPDX-License-Identifier: Apache-2.0
#include "soft/cm/on_uverbs.hpp"

#include <mutex>
#include <optional>

#include "soft/cm/engine_device.hpp"
#include "soft/cm/family.hpp"
#include "soft/cm/several.hpp"
#include "soft/uverbs/device.hpp"
#include "soft/uverbs/tree.hpp"
#include "soft/uverbs/user_memory.hpp"

namespace strait::soft::cm {
namespace {

class ProgramMemory final : public Memory {
 public:
  [[nodiscard]] bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const override {
    return memory().copy_in(from, into, bytes);
  }
  [[nodiscard]] bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const override {
    return memory().copy_out(to, from, bytes);
  }

 private:
  // Made for the first command: it keeps a descriptor, and a program that opens another family's node only has none of
  // ours.
  const uverbs::OwnMemory& memory() const {
    std::call_once(made_, [&] { memory_.emplace(); });
    return *memory_;
  }
  mutable std::once_flag made_;
  mutable std::optional<uverbs::OwnMemory> memory_;
};

std::shared_ptr<Device> device_of(std::shared_ptr<uverbs::Device> nic) {
  EngineDeviceSettings settings;
  settings.node_guid = uverbs::node_guid(nic->index());
  for (const uverbs::GidEntry& gid : nic->gids())
    settings.gids.push_back({gid.address, uverbs::mtu_code(gid.mtu_bytes)});
  settings.engine = [nic = std::move(nic)] { return nic->engine(); };
  return std::make_shared<EngineDevice>(std::move(settings));
}

Result<std::shared_ptr<Device>> all_of(uverbs::Devices& devices) {
  STRAIT_TRY(auto first, devices.at(0));
  std::vector<std::shared_ptr<Device>> nics = {device_of(std::move(first))};
  for (unsigned index = 1; index < uverbs::kMostDevices; ++index) {
    auto more = devices.at(index);
    if (!more) break;  // there are no more
    nics.push_back(device_of(std::move(*more)));
  }
  if (nics.size() == 1) return nics.front();
  return std::shared_ptr<Device>(std::make_shared<SeveralDevices>(std::move(nics)));
}

}  // namespace

std::unique_ptr<host::Family> make_family_on(std::shared_ptr<uverbs::Devices> devices) {
  FamilySettings settings;
  settings.device = [devices] { return all_of(*devices); };
  settings.memory = std::make_shared<ProgramMemory>();
  return make_family(std::move(settings));
}

}  // namespace strait::soft::cm
