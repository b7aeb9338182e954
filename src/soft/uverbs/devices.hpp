// SPDX-License-Identifier: Apache-2.0
// Devices: the software ConnectX devices of this process, shared by the families of nodes that speak of them.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "soft/uverbs/device.hpp"
#include "soft/uverbs/tree.hpp"

namespace strait::soft::uverbs {

class Devices {
 public:
  // `root`: with the tree that write_tree() wrote. The engines take their options (faults, strict, capture, roce_mtu)
  // from the environment, as `strait run` passes them on.
  explicit Devices(std::string root) : root_(std::move(root)) {}
  // The one that lives, or a new one. A child of fork gets its own: an engine is not inherited. ENXIO: there is none.
  [[nodiscard]] Result<std::shared_ptr<Device>> at(unsigned index);

 private:
  std::string root_;
  std::mutex mutex_;
  std::array<std::weak_ptr<Device>, kMostDevices> devices_;
};

}  // namespace strait::soft::uverbs
