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
  std::uint32_t tag;     // as given to guard_pages()
};

// Installs the handler, once. Faults that are not ours go to the handler that was there before.
void catch_guarded_reads();
// The pages that lie wholly inside the range; nothing when there are none, or too many ranges are guarded at once.
void guard_pages(std::byte* where, std::uint64_t length, std::uint32_t tag);
void unguard_pages(std::byte* where, std::uint64_t length);
// Takes one of the touches noted so far.
[[nodiscard]] bool take_guarded_read(GuardedRead& out);

}  // namespace strait::sys
