// SPDX-License-Identifier: Apache-2.0
// What sysfs and /dev say about the devices, as a tree of real files below a root: ROOT/sys/class/infiniband/strait0
// and the rest. Programs read it through the preload; libibverbs, UCX and NCCL each look at other parts of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "soft/host/root.hpp"
#include "soft/uverbs/gids.hpp"

namespace strait::soft::uverbs {

inline constexpr unsigned kMostDevices = 16;
inline constexpr unsigned kMajor = 231;  // of uverbs nodes in Linux
inline constexpr unsigned kFirstMinor = 192;

struct TreeSettings {
  unsigned devices = 1;  // strait0, strait1, ...
  std::vector<GidEntry> gids;
};
[[nodiscard]] Status write_tree(host::Root& root, const TreeSettings& settings);

// What the tree says of one device's GIDs.
[[nodiscard]] Result<std::vector<GidEntry>> read_gids(const std::string& root, unsigned device);

// st_rdev of its node, as makedev() packs it.
[[nodiscard]] std::uint64_t device_number(unsigned device);
// As ibv_devinfo and sysfs show it.
[[nodiscard]] std::uint64_t node_guid(unsigned device);
inline constexpr std::uint32_t kVendorPart = 0x1019;  // ConnectX-5 Ex: libmlx5 chooses itself by it
inline constexpr const char* kFirmware = "16.35.1012";
inline constexpr std::uint64_t kFirmwareNumber = std::uint64_t{16} << 32 | 35u << 16 | 1012;

}  // namespace strait::soft::uverbs
