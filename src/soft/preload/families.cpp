// SPDX-License-Identifier: Apache-2.0
// The families of device nodes that a run has. Part of libstrait-soft.so, which libstrait-host.so opens.
#include <array>

#include "soft/host/backend.hpp"

namespace strait::soft::host {
namespace {

// One line each; the first that owns a node has it.
std::span<Family* const> families() {
  static const std::array<Family*, 0> all = {};
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
