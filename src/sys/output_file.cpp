// SPDX-License-Identifier: Apache-2.0
#include "sys/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace strait::sys {

Result<OutputFile> OutputFile::create(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot create \"{}\"", path));
  return OutputFile(std::move(fd), path);
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(errno, fmt::format("cannot write to \"{}\"", path_));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace strait::sys
