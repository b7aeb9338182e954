// SPDX-License-Identifier: Apache-2.0
// The families of device nodes that a run has. Part of libstrait-soft.so, which libstrait-host.so opens.
#include <cstdlib>
#include <vector>

#include "soft/cassini_host/family.hpp"
#include "soft/gaudi/nodes.hpp"
#include "soft/host/backend.hpp"
#ifdef STRAIT_HAS_UVERBS
#include "soft/cm/on_uverbs.hpp"
#include "soft/uverbs/family.hpp"
#endif

namespace strait::soft::host {
namespace {

std::string root() {
  const char* const path = std::getenv("STRAIT_HOST_ROOT");
  return path != nullptr ? path : "";
}

// One line each; the first that owns a node has it. Never destroyed: the program's threads may be in them to the end.
std::vector<Family*> make_families() {
  std::vector<Family*> all;
#ifdef STRAIT_HAS_UVERBS
  const auto devices = std::make_shared<uverbs::Devices>(root());
  all.push_back(uverbs::make_family(devices).release());
  all.push_back(cm::make_family_on(devices).release());
#endif
  all.push_back(gaudi::make_node_family(root()).release());
  all.push_back(cassini::make_cxi_family(root()).release());
  return all;
}

std::span<Family* const> families() {
  static const auto& all = *new std::vector<Family*>(make_families());
  return all;
}

int open_any(const char* node, int flags, strait_host_file** file) {
  return open_node(families(), node, flags, file);
}

constexpr strait_host_ops kOps = make_ops(open_any);

}  // namespace
}  // namespace strait::soft::host

extern "C" __attribute__((visibility("default"))) const strait_host_ops* strait_host_devices(void) {
  return &strait::soft::host::kOps;
}
