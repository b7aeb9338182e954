// SPDX-License-Identifier: Apache-2.0
// Spec: which software accelerators a run has, read from "cuda:2,rocm:1x64M@bar,gaudi:8": how many of each vendor, and
// optionally the memory of each and a variant. `strait run --accelerators` checks it, every stand-in library reads its
// own part.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace strait::soft::accel {

enum class Vendor { cuda = 0, rocm = 1, gaudi = 2 };
inline constexpr std::size_t kVendors = 3;
[[nodiscard]] const char* vendor_name(Vendor vendor);

inline constexpr const char* kSpecVariable = "STRAIT_SOFT_ACCELERATORS";
inline constexpr std::uint32_t kMostSpecDevices = 64;

struct VendorSpec {
  std::uint32_t devices = 0;                            // 0: this vendor is not in the machine
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // of each device; pages are taken when first touched
  // cuda: "map", dma-bufs can be mapped, as by driver 13.3. rocm: "bar", the CPU reaches all device memory. gaudi:
  // "2021", the first generation and its library of that year.
  std::string variant;
};

struct Spec {
  std::array<VendorSpec, kVendors> vendors;
  [[nodiscard]] const VendorSpec& of(Vendor vendor) const { return vendors[static_cast<std::size_t>(vendor)]; }
};

// Code::invalid names the part that is wrong and what would be right. Empty text: no accelerators.
[[nodiscard]] Result<Spec> parse_spec(std::string_view text);

// This vendor's part of STRAIT_SOFT_ACCELERATORS; unset or unreadable: no devices, as on a machine without any.
[[nodiscard]] VendorSpec spec_from_environment(Vendor vendor);

}  // namespace strait::soft::accel
