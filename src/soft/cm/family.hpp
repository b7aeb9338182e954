// SPDX-License-Identifier: Apache-2.0
// The family of /dev/infiniband/rdma_cm, for the layer that answers for device nodes, and what sysfs says about it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "soft/cm/service.hpp"
#include "soft/host/device.hpp"
#include "soft/host/root.hpp"

namespace strait::soft::cm {

inline constexpr const char* kNode = "/dev/infiniband/rdma_cm";
inline constexpr unsigned kMajor = 10, kMinor = 57;  // a misc device

struct FamilySettings {
  // The NIC that connections are made on. Asked once in a process, and again in a child of fork.
  std::function<Result<std::shared_ptr<Device>>()> device;
  std::shared_ptr<Memory> memory;
};
[[nodiscard]] std::unique_ptr<host::Family> make_family(FamilySettings settings);

// ROOT/sys/class/misc/rdma_cm and the node.
[[nodiscard]] Status write_tree(host::Root& root);

}  // namespace strait::soft::cm
