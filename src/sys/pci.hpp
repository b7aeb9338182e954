// SPDX-License-Identifier: Apache-2.0
// Where a device sits among the PCI bridges, as sysfs shows it. Every call takes the folder that stands for /sys, so
// that a recorded machine can be looked at in place of this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace strait::sys {

inline constexpr const char* kSysfs = "/sys";

struct PciPlace {
  std::string address;            // "0000:1b:00.0"
  std::vector<std::string> path;  // root complex first ("pci0000:17"), then bridges, the device last
  int numa_node = -1;             // -1: the machine does not say
  std::vector<double> link_gb_s;  // of each of `path`: what the PCIe link it names carries each way; 0: not said
};

// "0000:1B:00.0", "1b:00.0", "00000000:1B:00.0" (as CUDA writes it) as sysfs has it: "0000:1b:00.0".
[[nodiscard]] Result<std::string> pci_address(std::string_view text);
// Code::gone when sysfs has no such device.
[[nodiscard]] Result<PciPlace> pci_place(const std::string& sysfs, std::string_view address);
// Of the device behind a class entry: pci_place_of("/sys", "class/infiniband/mlx5_0"). Code::unsupported when it is no
// PCI device.
[[nodiscard]] Result<PciPlace> pci_place_of(const std::string& sysfs, const std::string& entry);

// What the first port of an RDMA device carries each way: port_gb_s("/sys", "class/infiniband/mlx5_0"). 0: not said.
[[nodiscard]] double port_gb_s(const std::string& sysfs, const std::string& entry);

}  // namespace strait::sys
