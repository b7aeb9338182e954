// SPDX-License-Identifier: Apache-2.0
#include "sys/pci.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "sys/files.hpp"

namespace strait::sys {
namespace {

namespace fs = std::filesystem;

bool is_pci_address(const std::string& text) {
  const auto spelt = pci_address(text);
  return spelt && *spelt == text;
}

// The number that a small file begins with; 0: no such file, or no number.
double leading_number(const fs::path& file) {
  const std::string text = read_small_file(file.c_str());
  double number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc() && number > 0 ? number : 0;
}

// "16.0 GT/s PCIe" and "16" lanes. The width as it is, for a card may sit in a narrower slot; the speed as it can be,
// for a device that has nothing to do runs its link slower (both ends of a link are asked, so the lesser counts).
double link_gb_s(const fs::path& device) {
  const double transfers = leading_number(device / "max_link_speed");
  const double lanes = leading_number(device / "current_link_width");
  // 8b/10b up to 5 GT/s, 128b/130b after that.
  return transfers * lanes / 8 * (transfers > 5 ? 128.0 / 130 : 0.8);
}

Result<PciPlace> place_at(const fs::path& link) {
  std::error_code failed;
  const fs::path where = fs::canonical(link, failed);
  if (failed) return fail(Code::gone, "{} is not there: {}", link.string(), failed.message());
  PciPlace place;
  fs::path at;
  for (const fs::path& part : where) {
    at /= part;
    const std::string name = part.string();
    const bool root = name.starts_with("pci") && place.path.empty();
    if (!root && (!is_pci_address(name) || place.path.empty())) continue;
    place.path.push_back(name);
    place.link_gb_s.push_back(root ? 0 : link_gb_s(at));
  }
  if (place.path.size() < 2)
    return fail(Code::unsupported, "{} is no PCI device: it is {}", link.string(), where.string());
  place.address = place.path.back();
  // What hangs below the device (infiniband/mlx5_0) is not of it.
  fs::path device = where;
  while (device.filename() != place.address) device = device.parent_path();
  const std::string node = read_small_file((device / "numa_node").c_str());
  int number = -1;
  const auto [end, wrong] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (wrong == std::errc() && number >= 0) place.numa_node = number;
  return place;
}

}  // namespace

Result<std::string> pci_address(std::string_view text) {
  const std::string whole(text);
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  int used = 0;  // set only when everything before it matched
  if (std::sscanf(whole.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &used) < 4) {
    domain = 0;
    used = 0;
    (void)std::sscanf(whole.c_str(), "%2x:%2x.%1x%n", &bus, &slot, &function, &used);
  }
  if (used == 0 || static_cast<std::size_t>(used) != whole.size() || slot > 31 || function > 7)
    return fail(Code::invalid, "\"{}\" is not a PCI address like 0000:1b:00.0", text);
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

Result<PciPlace> pci_place(const std::string& sysfs, std::string_view address) {
  STRAIT_TRY(const std::string name, pci_address(address));
  return place_at(fs::path(sysfs) / "bus/pci/devices" / name);
}

Result<PciPlace> pci_place_of(const std::string& sysfs, const std::string& entry) {
  return place_at(fs::path(sysfs) / entry / "device");
}

double port_gb_s(const std::string& sysfs, const std::string& entry) {
  return leading_number(fs::path(sysfs) / entry / "ports/1/rate") / 8;  // "100 Gb/sec (4X EDR)"
}

}  // namespace strait::sys
