// SPDX-License-Identifier: Apache-2.0
// Pages that must not be touched for a while: who does is noted and may go on. Process-wide by nature, like the signal
// handler behind it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::sys {

struct GuardedRead {
  std::uint64_t address;  // of the guarded range
  std::uint64_t length;
  std::uint64_t offset;  // of the byte that was touched
  std::uint64_t tag;     // as given to guard_pages()
};

// Installs the handler, once. Faults that are not ours go to the handler that was there before; without one the process
// dies of them, as always.
void catch_guarded_reads();
// The pages that lie wholly inside the range; nothing when there are none, when too many ranges are guarded at once, or
// when the program has put a handler of its own in the place of ours. `owner` is who takes the notes.
void guard_pages(const void* owner, std::byte* where, std::uint64_t length, std::uint64_t tag);
void unguard_pages(const void* owner, std::byte* where, std::uint64_t length);
// Whoever guards them: pages that this range reaches into can be touched from now on, and nothing is noted.
void open_guarded_pages(const std::byte* where, std::uint64_t length);
// The same for who may not touch them: noted as if it had. For accesses that are made later or by somebody else.
void touch_guarded_pages(const std::byte* where, std::uint64_t length);
// Takes one of the touches noted so far for this owner.
[[nodiscard]] bool take_guarded_read(const void* owner, GuardedRead& out);

}  // namespace strait::sys
