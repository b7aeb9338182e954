// SPDX-License-Identifier: Apache-2.0
// Config: what a software accelerator is to look like, read from "devices=2,memory=268435456,export=1".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sys/udmabuf.hpp"

namespace strait::soft::accel {

struct Config {
  std::uint32_t devices = 2;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  // of each device
  bool can_export = true;                                 // false: a device whose memory no NIC can reach
  std::string udmabuf = sys::kUdmabufDevice;              // "off": always a memfd
};

// Code::invalid names the item that is wrong and what would be right.
[[nodiscard]] Result<Config> parse_config(std::string_view text);

}  // namespace strait::soft::accel
