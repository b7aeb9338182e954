// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/announce.hpp"

#include "soft/kernel/driver.h"

// Weak: the table is libstrait-soft.so's own, and this code is also linked where that is not, in tests of one folder.
// There nobody needs to be told.
extern "C" std::int32_t strait_soft_driver_add(const strait_soft_driver_memory*) __attribute__((weak));
extern "C" std::int32_t strait_soft_driver_remove(std::uint64_t, std::uint64_t) __attribute__((weak));

namespace strait::soft::accel {

Status announce(const Allocation& allocation, std::uint32_t vendor, std::uint32_t device) {
  if (strait_soft_driver_add == nullptr) return {};
  strait_soft_driver_memory memory{};
  memory.struct_size = sizeof memory;
  memory.vendor = vendor;
  memory.device = device;
  memory.flags = STRAIT_SOFT_P2P_CAPABLE;
  memory.base = allocation.base;
  memory.length_bytes = allocation.length_bytes;
  memory.identity = allocation.identity;
  memory.memfd = allocation.memfd.get();
  const std::int32_t failed = strait_soft_driver_add(&memory);
  if (failed == 0) return {};
  return fail_errno(-failed,
                    fmt::format("the software machine's kernel did not take {} bytes of device memory at {:#x}",
                                memory.length_bytes, memory.base));
}

void retract(const Found& allocation) {
  if (strait_soft_driver_remove != nullptr) (void)strait_soft_driver_remove(allocation.base, allocation.identity);
}

}  // namespace strait::soft::accel
