// SPDX-License-Identifier: Apache-2.0
#include "buffer/pci.hpp"

#include <algorithm>
#include <cstdio>

#include "base/plugin_answer.hpp"
#include "sys/files.hpp"

namespace strait::buffer {

void fill_pci(const std::string& address, strait_device_info& out, const std::string& root) {
  if (address.empty()) return;
  plugin::put_text(address, out.pci_address, sizeof out.pci_address);
  const std::string folder = root + "/sys/bus/pci/devices/" + address;
  const std::string node = sys::read_small_file((folder + "/numa_node").c_str());
  if (!node.empty()) {
    out.numa_node = std::atoi(node.c_str());
    out.numa_known = out.numa_node >= 0 ? 1 : 0;
  }
  // One line for each of the six windows and the ROM: first address, last address, flags.
  const std::string windows = sys::read_small_file((folder + "/resource").c_str());
  constexpr unsigned long long kPrefetchable = 0x2000;
  std::size_t at = 0;
  for (int line = 0; line < 6 && at < windows.size(); ++line) {
    unsigned long long first = 0;
    unsigned long long last = 0;
    unsigned long long flags = 0;
    const bool read = std::sscanf(windows.c_str() + at, "%llx %llx %llx", &first, &last, &flags) == 3;
    if (read && last > first && (flags & kPrefetchable) != 0) {
      out.bar_bytes = std::max<std::uint64_t>(out.bar_bytes, last - first + 1);
    }
    const std::size_t end = windows.find('\n', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
}

}  // namespace strait::buffer
