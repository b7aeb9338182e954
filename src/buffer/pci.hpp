// SPDX-License-Identifier: Apache-2.0
// What sysfs says about a PCI device: where it sits and how large its window for peers is.
#pragma once

#include <string>

#include "strait/plugin.h"

namespace strait::buffer {

// Fills in address, NUMA node and the largest prefetchable window. `root` goes before /sys, for recorded trees.
void fill_pci(const std::string& address, strait_device_info& out, const std::string& root = {});

}  // namespace strait::buffer
