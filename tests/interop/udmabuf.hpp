// SPDX-License-Identifier: Apache-2.0
// A dma-buf that is one: the kernel's, over pages of a memfd.
#pragma once

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>

#include "verbs_objects.hpp"

namespace strait::interop {

// Of whole pages of a file that is sealed against shrinking. Needs /dev/udmabuf.
inline int make_udmabuf(int memfd, std::uint64_t offset, std::uint64_t bytes) {
  const int door = ::open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  require(door >= 0, "there is a /dev/udmabuf");
  udmabuf_create create{};
  create.memfd = static_cast<std::uint32_t>(memfd);
  create.flags = UDMABUF_FLAGS_CLOEXEC;
  create.offset = offset;
  create.size = bytes;
  const int made = ::ioctl(door, UDMABUF_CREATE, &create);
  require(made >= 0, "the kernel makes a dma-buf");
  ::close(door);
  return made;
}

}  // namespace strait::interop
