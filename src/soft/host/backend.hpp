// SPDX-License-Identifier: Apache-2.0
// Families of devices as the C table that libstrait-host.so calls.
#pragma once

#include <span>

#include "soft/host/backend.h"
#include "soft/host/device.hpp"

namespace strait::soft::host {

// Opens in the first family that owns the node; -ENXIO when none does. Nothing that a family throws gets further.
[[nodiscard]] int open_node(std::span<Family* const> families, const char* node, int flags, strait_host_file** file);
[[nodiscard]] long ioctl_node(strait_host_file* file, unsigned long request, void* argument);
[[nodiscard]] long write_node(strait_host_file* file, const void* bytes, std::size_t length);
[[nodiscard]] long read_node(strait_host_file* file, void* bytes, std::size_t length);
void close_node(strait_host_file* file);
[[nodiscard]] long read_node_at(strait_host_file* file, void* bytes, std::size_t length, std::uint64_t offset);
[[nodiscard]] long map_node(strait_host_file* file, void* address, std::size_t length, int protect, int flags,
                            std::uint64_t offset);
void unmapped_node(strait_host_file* file, void* address, std::size_t length);

// The table around an open() of one's own.
[[nodiscard]] constexpr strait_host_ops make_ops(int (*open)(const char*, int, strait_host_file**)) {
  return {STRAIT_HOST_ABI,
          sizeof(strait_host_ops),
          open,
          ioctl_node,
          write_node,
          read_node,
          close_node,
          read_node_at,
          map_node,
          unmapped_node};
}

}  // namespace strait::soft::host
