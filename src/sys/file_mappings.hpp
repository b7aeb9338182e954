// SPDX-License-Identifier: Apache-2.0
// Where this process has mapped a file, whoever did it and by whatever call.
#pragma once

#include <cstdint>
#include <vector>

namespace strait::sys {

struct FileMapping {
  std::uint64_t address = 0, length_bytes = 0;
  std::uint64_t offset = 0;  // in the file
  bool writable = false;
};

// The shared mappings of the file behind `fd`, by their addresses. Empty also where there is no /proc.
[[nodiscard]] std::vector<FileMapping> mappings_of(int fd);

// Whole mapped pages: whether they can be written. May be called in a signal handler.
bool set_writable(std::uint64_t address, std::uint64_t length_bytes, bool writable);

}  // namespace strait::sys
