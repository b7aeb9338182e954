// SPDX-License-Identifier: Apache-2.0
// The Gaudis' device nodes, and what sysfs says about them: /dev/accel/accel0, /dev/accel/accel_controlD0 and
// /sys/class/accel/accel0; of the first generation /dev/hl0, /dev/hl_controlD0 and /sys/class/habanalabs/hl0.
//
// They can be listed, looked at and opened: a compute node has one owner, whoever opened it. No ioctl is answered; what
// a device does is behind libhl-thunk.so.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"
#include "soft/accel/spec.hpp"
#include "soft/host/device.hpp"
#include "soft/host/root.hpp"

namespace strait::soft::gaudi {

// Nodes in /dev itself are claimed one by one, and claims are few: of the first generation this many devices have some.
inline constexpr std::uint32_t kMostOldNodes = 8;

[[nodiscard]] std::string bus_id_of(std::uint32_t slot);

// The part of the tree, for `strait run`.
[[nodiscard]] Status write_nodes(host::Root& root, const accel::VendorSpec& spec);
// What opens them, in the programs of that run.
[[nodiscard]] std::unique_ptr<host::Family> make_node_family(std::string root);

}  // namespace strait::soft::gaudi
