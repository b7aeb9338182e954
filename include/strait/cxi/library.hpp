// SPDX-License-Identifier: Apache-2.0
// The devices of cxi.h as libstrait opens them: nodes /dev/cxiN, or software devices. Link libstrait.
#pragma once

#include <cerrno>
#include <new>

#include "strait/c.h"
#include "strait/cxi/host.hpp"

namespace strait::cxi {

namespace detail {
// What went wrong is an errno here; libstrait's sentence is lost, except to who calls it directly.
inline int errno_of(std::int32_t code, const strait_error& error) {
  if (code == 0) return 0;
  return error.sys_errno != 0 ? error.sys_errno : EIO;
}
}  // namespace detail

inline void cxi_dev_close(cxi_dev* dev) {
  if (dev == nullptr) return;
  strait_cxi_close(static_cast<strait_cxi_device*>(dev->device));
  delete dev;
}

// "cxi0": that node; "soft0": a software device that all processes of this user share; "local0": one of this process
// alone; null: the first node there is, else "soft0". Null and errno if it cannot be opened.
inline cxi_dev* cxi_dev_open(const char* name) {
  cxi_dev* const dev = detail::made<cxi_dev>();
  if (dev == nullptr) return nullptr;
  strait_error error{};
  error.struct_size = sizeof error;
  strait_cxi_device* device = nullptr;
  if (const std::int32_t code = strait_cxi_open(name, &device, &error); code != 0) {
    delete dev;
    errno = detail::errno_of(code, error);
    return nullptr;
  }
  dev->device = device;
  dev->command = [](void* self, const void* command, std::size_t length) {
    strait_error why{};
    why.struct_size = sizeof why;
    return detail::errno_of(strait_cxi_command(static_cast<strait_cxi_device*>(self), command, length, &why), why);
  };
  dev->map = [](void* self, std::uint64_t offset, std::uint64_t length, void** address) {
    strait_error why{};
    why.struct_size = sizeof why;
    return detail::errno_of(strait_cxi_map(static_cast<strait_cxi_device*>(self), offset, length, address, &why), why);
  };
  dev->unmap = [](void* self, void* address, std::uint64_t length) {
    strait_cxi_unmap(static_cast<strait_cxi_device*>(self), address, length);
  };
  strait_cxi_about about{};
  about.struct_size = sizeof about;
  if (strait_cxi_about_device(device, &about, &error) == 0 && (about.flags & STRAIT_CXI_ADDS_TO_DOORBELLS) != 0)
    dev->doorbell_flags = device::cxi::kMemoryDoorbell;
  return dev;
}

}  // namespace strait::cxi
