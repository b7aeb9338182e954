// SPDX-License-Identifier: Apache-2.0
#include "sys/udmabuf.hpp"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace strait::sys {

Result<Fd> make_udmabuf(int memfd, std::uint64_t offset, std::uint64_t length_bytes, const char* device) {
  const Fd door(::open(device, O_RDWR | O_CLOEXEC));
  if (!door.valid()) {
    if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
      const int why = errno;
      Error error = fail(Code::unsupported, "there is no {} on this machine: {}", device, errno_text(why));
      error.sys_errno = why;
      return error;
    }
    return fail_errno(errno, fmt::format("cannot open {}", device));
  }
  udmabuf_create request{};
  request.memfd = static_cast<std::uint32_t>(memfd);
  request.flags = UDMABUF_FLAGS_CLOEXEC;
  request.offset = offset;
  request.size = length_bytes;
  const int fd = ::ioctl(door.get(), UDMABUF_CREATE, &request);
  if (fd < 0) return fail_errno(errno, fmt::format("{} refused {} bytes", device, length_bytes));
  return Fd(fd);
}

}  // namespace strait::sys
