// SPDX-License-Identifier: Apache-2.0
// Memory files that peers map: who may map what of them, and how their owner gets away from who will not let go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::sys {

// A memfd that can neither shrink nor grow; seal_for_peers() says later for whom it is.
[[nodiscard]] Result<Fd> make_grantable_memfd(const char* name, std::size_t length_bytes,
                                              const Calls& calls = real_calls());

// For good: peers may map it for reading and writing, or for reading only. A descriptor for reading alone would not do,
// it is reopened through /proc; the seal leaves the mappings that exist as they are and refuses new writable ones.
// Code::denied: it was sealed for the other before.
[[nodiscard]] Status seal_for_peers(int fd, bool writable);

[[nodiscard]] bool is_writable_for_peers(int fd);

// Has as many whole pages as `length_bytes` takes, and no others.
[[nodiscard]] bool holds_exactly(int fd, std::uint64_t length_bytes);

// Written here, read by everybody who gets the descriptor.
struct PublishedFile {
  Fd fd;
  Mapping memory;
};
[[nodiscard]] Result<PublishedFile> make_published_file(const char* name, std::size_t length_bytes,
                                                        const Calls& calls = real_calls());

// [address, address + length_bytes) is a shared mapping of the file from its beginning. Afterwards it has the same
// bytes on pages of its own, and no process that maps the file sees or changes them any more. Threads of this process
// may use the memory meanwhile; nothing they write is lost. Whole pages.
[[nodiscard]] Status leave_file(std::uint64_t address, std::size_t length_bytes, int fd,
                                const Calls& calls = real_calls());

}  // namespace strait::sys
