// SPDX-License-Identifier: Apache-2.0
// libhl-thunk of 2021: the names that have another shape today. What came later is not in this library at all.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "soft/gaudi/hlthunk_shared.hpp"

namespace strait::soft::gaudi::hl {

#define HL_DECLARE_2021(returns, name, arguments) STRAIT_HL_API returns name arguments;
HL_2021(HL_DECLARE_2021)
STRAIT_HL_API char* hlthunk_get_version();

char* hlthunk_get_version() {
  constexpr char kVersion[] = "strait software hl-thunk, 2021";
  char* text = static_cast<char*>(std::malloc(sizeof kVersion));
  if (text != nullptr) std::memcpy(text, kVersion, sizeof kVersion);
  return text;
}

// By the handle that the allocation gave; the flags are not looked at, as there.
int export_first_generation(Driver& driver, int fd, std::uint64_t handle, std::uint64_t length_bytes, std::uint32_t) {
  return driver.export_handle(fd, handle, length_bytes);
}

void* hlthunk_malloc(int size) {
  return size < 0 ? nullptr : std::malloc(static_cast<std::size_t>(size));
}

int hlthunk_get_hw_ip_info(int fd, HwIpInfo2021* info) {
  Driver* driver = Driver::get();
  const auto node = driver == nullptr ? std::nullopt : driver->node_of(fd);
  if (!node || info == nullptr) return answer(node ? -EINVAL : -EBADF);
  fill_hw_ip(*driver, node->slot, *info);
  return 0;
}

std::uint64_t hlthunk_device_memory_alloc(int fd, std::uint64_t size, bool, bool) {
  Driver* driver = Driver::get();
  return driver == nullptr ? 0 : driver->allocate(fd, size);
}

}  // namespace strait::soft::gaudi::hl
