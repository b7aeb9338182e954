// SPDX-License-Identifier: Apache-2.0
// What the kernel's tests share: a machine with device memory of any vendor, and a view of its bytes from the device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "soft/kernel/kernel.hpp"

namespace strait::soft::kernel::testing {

class Machine {
 public:
  struct Memory {
    sys::Fd file;
    sys::Mapping bytes;  // as the accelerator sees them
    std::uint64_t base = 0;
    std::uint64_t length_bytes = 0;
    std::uint64_t identity = 0;
  };

  Memory& allocate(std::uint32_t vendor, std::uint64_t length_bytes, std::uint32_t flags = STRAIT_SOFT_P2P_CAPABLE) {
    auto made = std::make_unique<Memory>();
    made->file = sys::make_sealed_memfd("kernel test", sys::round_up(length_bytes, sys::page_bytes())).value();
    made->bytes = sys::map_file(made->file.get(), 0, length_bytes, sys::Protect::read_write).value();
    made->base = next_base_;
    made->length_bytes = length_bytes;
    made->identity = ++identity_;
    next_base_ += sys::round_up(length_bytes + 1, std::uint64_t{2} << 20);
    strait_soft_driver_memory said{};
    said.struct_size = sizeof said;
    said.vendor = vendor;
    said.flags = flags;
    said.base = made->base;
    said.length_bytes = length_bytes;
    said.identity = made->identity;
    said.memfd = made->file.get();
    EXPECT_EQ(drivers.add(said), 0);
    memories_.push_back(std::move(made));
    return *memories_.back();
  }
  void free(Memory& memory) { EXPECT_EQ(drivers.remove(memory.base, memory.identity), 0); }

  Drivers drivers;
  DmaDevice nic{"strait0"};

 private:
  std::vector<std::unique_ptr<Memory>> memories_;
  std::uint64_t next_base_ = std::uint64_t{0x10} << 40;  // nowhere in this process
  std::uint64_t identity_ = 0;
};

inline KernelSettings settings(std::string_view peer_memory, std::string_view faults = "") {
  return KernelSettings::parse(peer_memory, faults).value();
}

inline std::int32_t put(const NicMemory& memory, std::uint64_t address, std::string_view text) {
  return memory.port()->write(memory.port()->context, address, text.data(), text.size());
}
inline std::string get(const NicMemory& memory, std::uint64_t address, std::size_t length) {
  std::string out(length, '?');
  const std::int32_t failed = memory.port()->read(memory.port()->context, address, out.data(), length);
  return failed == 0 ? out : "failed with " + std::to_string(failed);
}
inline std::string device_text(const Machine::Memory& memory, std::uint64_t offset, std::size_t length) {
  return {reinterpret_cast<const char*>(memory.bytes.data()) + offset, length};
}

}  // namespace strait::soft::kernel::testing
