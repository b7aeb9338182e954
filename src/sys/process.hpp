// SPDX-License-Identifier: Apache-2.0
// Other processes: reading and writing their memory, ordering against their stores, random bytes.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sys/calls.hpp"

namespace strait::sys {

// Copies all bytes between two lists of the same total length, in as many system calls as it takes. Code::denied: the
// kernel forbids it here; Code::gone: there is no such process; after any error part of the bytes may have moved.
[[nodiscard]] Status read_process(pid_t pid, std::span<const iovec> into, std::span<const iovec> from,
                                  const Calls& calls = real_calls());
[[nodiscard]] Status write_process(pid_t pid, std::span<const iovec> from, std::span<const iovec> into,
                                   const Calls& calls = real_calls());

// Lets that process (another of this user) read and write the memory of this one where Yama would refuse it.
void allow_access_by(pid_t pid);

// Store-then-load ordering against every process that called register_for_barriers(), paid by the one who is about to
// sleep instead of by every sender. False: this kernel has no such call, sleep with a time limit instead.
[[nodiscard]] bool register_for_barriers();
[[nodiscard]] bool barrier_everywhere();

// From the kernel's generator. Never leaves part of a key unfilled without saying so.
[[nodiscard]] Status fill_random(std::span<std::byte> bytes, const Calls& calls = real_calls());

}  // namespace strait::sys
