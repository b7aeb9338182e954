// SPDX-License-Identifier: Apache-2.0
// Notes: memory files that say something to who gets their descriptor, instead of holding data.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

// A memory file of that length which begins with `start`, and which nobody can change, or map writable and shared.
[[nodiscard]] Result<Fd> make_note(const char* name, std::size_t length_bytes, const void* start,
                                   std::size_t start_bytes);
// The name of a memory file; empty for any other file.
[[nodiscard]] std::string memfd_name(int fd);
// Bytes at the start of a file; how many were read, 0 when it cannot be.
[[nodiscard]] std::size_t read_start(int fd, void* into, std::size_t capacity);

}  // namespace strait::sys
