// SPDX-License-Identifier: Apache-2.0
// Devices that take commands by write(2), and files of sysfs that tell of something by POLLPRI.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

// For reading and writing, close-on-exec. Code::unsupported with ENOENT's errno: there is no such device.
[[nodiscard]] Result<Fd> open_char_device(const std::string& path);

// One write(2) of all of it: 0, or an errno. A device that takes less answers EIO.
[[nodiscard]] int write_command(int fd, std::span<const std::byte> command);

// A file that is ready with POLLPRI, for reading.
[[nodiscard]] Result<Fd> open_notifier(const std::string& path);
// Takes back what it has told so far. Never blocks.
void clear_notifier(int fd);

}  // namespace strait::sys
