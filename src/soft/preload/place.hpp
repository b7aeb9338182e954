// SPDX-License-Identifier: Apache-2.0
// Paths of the program, placed in the root of this run.
#pragma once

#include <cstdint>

#include "soft/host/path.hpp"

namespace strait::preload {

using soft::host::Place;
using soft::host::Placed;

// Claims and root of this run, read when first needed. Empty where there is no run.
[[nodiscard]] const soft::host::PathMap& map();
// The folder of the run, or null.
[[nodiscard]] const char* root();

// A folder, or the working one for AT_FDCWD, as the kernel names it; false when there is no name for it.
[[nodiscard]] bool folder_name(int folder, char* into, std::size_t capacity);

// Cheap, and no for nearly everything a program opens. Frames with paths in them are only made after a yes: signal
// handlers have small stacks.
[[nodiscard]] bool concerned(int folder, const char* path);
[[nodiscard]] Placed place(int folder, const char* path, bool follow, Place& out);

// As programs know it: /sys/class/infiniband/strait0.
[[nodiscard]] const char* logical(const Place& place);

// Is this placed path a device node? Its number, as st_rdev has it.
[[nodiscard]] bool is_node(const Place& place, std::uint64_t* number);

// A file that a family answers for although it is none of /dev?
[[nodiscard]] bool is_live(const Place& place);

}  // namespace strait::preload
