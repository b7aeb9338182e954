// SPDX-License-Identifier: Apache-2.0
// strait run --accelerators: the vendors' libraries in software, put in front of those that may be installed.
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "soft/accel/spec.hpp"
#include "soft/gaudi/nodes.hpp"
#include "strait/c.h"
#include "sys/beside.hpp"
#include "tool/run.hpp"

namespace strait::tool {
namespace {

// They lie in a folder of their own, so that nobody finds them by chance.
constexpr const char* kStandIns = "strait/";
constexpr std::pair<soft::accel::Vendor, const char*> kVendorLibraries[] = {
    {soft::accel::Vendor::cuda, "libcuda.so.1"},
    {soft::accel::Vendor::rocm, "libhsa-runtime64.so.1"},
    {soft::accel::Vendor::gaudi, "libhl-thunk.so"},
};

}  // namespace

std::string check_accelerators(const std::string& text) {
  const auto spec = soft::accel::parse_spec(text);
  if (spec) return {};
  return spec.error().text + ". " + spec.error().remedy;
}

Result<Hardware> add_accelerators(const std::string& text, soft::host::Root& root, Settings& settings) {
  Hardware hardware;
  if (text.empty()) return hardware;
  STRAIT_TRY(const soft::accel::Spec spec, soft::accel::parse_spec(text));
  std::filesystem::path folder;
  for (const auto& [vendor, library] : kVendorLibraries) {
    if (spec.of(vendor).devices == 0) continue;
    const std::string wanted = std::string(kStandIns) + library;
    const std::string found = sys::beside_library_of(reinterpret_cast<const void*>(&strait_version), wanted);
    if (found == wanted)
      return with_remedy(fail(Code::unsupported, "{} in software is not where libstrait.so is", library),
                         "It is part of the installation: build or install strait again.");
    folder = std::filesystem::absolute(found).parent_path();
  }
  settings.emplace_back(soft::accel::kSpecVariable, text);
  if (folder.empty()) return hardware;
  std::string folders = folder.string();
  if (const soft::accel::VendorSpec& gaudi = spec.of(soft::accel::Vendor::gaudi); gaudi.devices != 0) {
    STRAIT_TRY(soft::gaudi::Machine machine, soft::gaudi::Machine::create(root.path(), gaudi));
    STRAIT_CHECK(soft::gaudi::write_nodes(root, gaudi));
    hardware.gaudis = std::make_unique<soft::gaudi::Machine>(std::move(machine));
    if (gaudi.variant == "2021") folders = (folder / "gaudi2021").string() + ":" + folders;
  }
  if (const char* const others = std::getenv("LD_LIBRARY_PATH"); others != nullptr && *others != '\0')
    folders += std::string(":") + others;
  settings.emplace_back("LD_LIBRARY_PATH", folders);
  return hardware;
}

}  // namespace strait::tool
