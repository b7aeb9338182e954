// SPDX-License-Identifier: Apache-2.0
#include "soft/cuda/identity.hpp"

#include <fmt/format.h>

#include <charconv>

namespace strait::soft::cuda {
namespace {

constexpr std::string_view kMemoryName = "strait cuda memory ";

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string uuid_text(std::uint32_t index) {
  std::string text = "GPU-";
  const std::array<char, 16> uuid = device_uuid(index);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid[i]));
  }
  return text;
}

}  // namespace

std::uint32_t pci_bus(std::uint32_t index) {
  return 0x21 + 3 * index;
}

std::string pci_bus_id(std::uint32_t index) {
  return fmt::format("0000:{:02X}:00.0", pci_bus(index));
}

std::array<char, 16> device_uuid(std::uint32_t index) {
  std::array<char, 16> uuid{'s', 't', 'r', 'a', 'i', 't', ' ', 's', 'o', 'f', 't', ' ', 'c', 'u', 'd', 0};
  uuid[15] = static_cast<char>(index);
  return uuid;
}

std::string memory_name(std::uint32_t index) {
  return fmt::format("{}{}", kMemoryName, index);
}

std::optional<std::uint32_t> device_by_memory_name(std::string_view name) {
  if (!name.starts_with(kMemoryName)) return std::nullopt;
  return whole_number(name.substr(kMemoryName.size()));
}

std::optional<std::uint32_t> device_by_name(std::string_view name, std::uint32_t count) {
  std::optional<std::uint32_t> found;
  if (name.starts_with("GPU-")) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!uuid_text(i).starts_with(name)) continue;
      if (found) return std::nullopt;  // not unique
      found = i;
    }
    return found;
  }
  found = whole_number(name);
  return found && *found < count ? found : std::nullopt;
}

}  // namespace strait::soft::cuda
