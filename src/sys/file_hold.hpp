// SPDX-License-Identifier: Apache-2.0
// Who still holds a file: descriptions that count as holders, whatever process has them.
//
// A holder is an open file description with a shared flock on it. The lock lives as long as the last descriptor or
// mapping of that description, also one that was duplicated, inherited by a child or sent to another process; so
// "nobody holds it" is exact, and a leak is seen wherever it is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

// A new description of the same file, read-write and close-on-exec, where duplicate() would share the old one.
[[nodiscard]] Result<Fd> open_again(int fd);
// The same of a descriptor of another process of this user. Code::gone: there is no such process or descriptor.
[[nodiscard]] Result<Fd> open_of_process(pid_t pid, int fd);
[[nodiscard]] Result<Fd> open_path(const std::string& path);

// Makes this description a holder. False: somebody is about to take the file for himself alone.
[[nodiscard]] bool hold_file(int fd);
// The same, waiting out others who look whether anybody holds it.
[[nodiscard]] bool hold_file_before(int fd, const Deadline& deadline);
// True when no other description holds the file; this one then excludes all until it lets go or holds.
[[nodiscard]] bool take_file_alone(int fd);
void let_go_of_file(int fd);
// Does any other description hold it? Asked through one that is no holder itself.
[[nodiscard]] bool is_held_elsewhere(int fd);

// Gives the pages of a file without a disk back: they read as zero afterwards.
[[nodiscard]] Status drop_file_pages(int fd, std::uint64_t offset, std::uint64_t length_bytes);

}  // namespace strait::sys
