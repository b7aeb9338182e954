// SPDX-License-Identifier: Apache-2.0
// Hooks: where a program calls libibverbs on its data path it calls through pointers in structs of its own. Some of
// them are led through here, so that the program's own thread drives the engine; libmlx5 still does what it does.
//
// The structs are public (infiniband/verbs.h), and their addresses are what the kernel interface calls "user handle".
// Nothing is believed: what does not look like such a struct is left alone.
#pragma once

#include <cstdint>

#include "soft/uverbs/progress.hpp"
#include "soft/uverbs/user_memory.hpp"

namespace strait::soft::uverbs {

// Whether the program will read from the completions of this queue when they happened. libmlx5 does not tell the
// kernel: hardware always writes it.
[[nodiscard]] bool wants_timestamps(const UserMemory& memory, std::uint64_t user_handle);

// Both take the user handle of a completion queue or queue pair that was just created.
void hook_cq(const UserMemory& memory, std::uint64_t user_handle, Progress& progress);
void hook_qp(const UserMemory& memory, std::uint64_t user_handle, Progress& progress);
// Before a Progress ends: its hooks do no more than call on.
void unhook(Progress& progress);

}  // namespace strait::soft::uverbs
