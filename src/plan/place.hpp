// SPDX-License-Identifier: Apache-2.0
// How near two devices are to each other, from their places among the PCI bridges.
#pragma once

#include <string>
#include <vector>

namespace strait::plan {

// Made by the Node from sysfs, or from a recorded machine.
struct Place {
  std::vector<std::string> path;  // root complex first, the device itself last; empty: unknown (software, or a machine
                                  // that does not show it)
  int numa_node = -1;
  std::vector<double> link_gb_s = {};  // of each of `path`, the PCIe link that it names; 0, or missing: not said
};

// From near to far. What peer-to-peer DMA can be expected to do: fast below a switch, depends on the processor at one
// root complex, slow or refused beyond.
enum class Nearness { same_device, one_switch, switches, root_complex, numa_node, machine, unknown };

struct Distance {
  Nearness nearness = Nearness::unknown;
  unsigned bridges = 0;  // crossed on the way
  friend auto operator<=>(const Distance&, const Distance&) = default;
};

[[nodiscard]] Distance distance(const Place& a, const Place& b);
// "below one PCIe switch", for reasons; empty for unknown.
[[nodiscard]] std::string distance_text(const Distance& distance);
// As in `nvidia-smi topo`: PIX, PXB, PHB, NODE, SYS; "-" for unknown.
[[nodiscard]] const char* distance_word(Nearness nearness);

}  // namespace strait::plan
