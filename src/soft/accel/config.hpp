// SPDX-License-Identifier: Apache-2.0
// Config: what a software accelerator is to look like, read from "devices=2,memory=268435456,export=1".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "soft/kernel/driver.h"
#include "sys/udmabuf.hpp"

namespace strait::soft::accel {

struct Config {
  std::uint32_t devices = 2;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  // of each device
  bool can_export = true;                                 // false: a device whose memory no NIC can reach
  std::string udmabuf = sys::kUdmabufDevice;              // "off": always a memfd
  std::uint32_t vendor = STRAIT_SOFT_VENDOR_SOFT;         // as whose memory the machine's kernel is told of it
};

// Code::invalid names the item that is wrong and what would be right.
[[nodiscard]] Result<Config> parse_config(std::string_view text);

}  // namespace strait::soft::accel
