// SPDX-License-Identifier: Apache-2.0
// What the devices look like: names, PCI addresses, UUIDs. The same in every process of the machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strait::soft::cuda {

inline constexpr const char* kDeviceName = "NVIDIA H200 (software, strait)";

[[nodiscard]] std::uint32_t pci_bus(std::uint32_t index);
// "0000:21:00.0"; hexadecimal digits in upper case.
[[nodiscard]] std::string pci_bus_id(std::uint32_t index);
[[nodiscard]] std::array<char, 16> device_uuid(std::uint32_t index);
// Names the memory files of a device, so that another process knows what it was given.
[[nodiscard]] std::string memory_name(std::uint32_t index);
[[nodiscard]] std::optional<std::uint32_t> device_by_memory_name(std::string_view name);
// An entry of CUDA_VISIBLE_DEVICES: a number, or the beginning of "GPU-..." with a UUID.
[[nodiscard]] std::optional<std::uint32_t> device_by_name(std::string_view name, std::uint32_t count);

}  // namespace strait::soft::cuda
