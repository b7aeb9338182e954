// SPDX-License-Identifier: Apache-2.0
// Pieces of a stream: what a poll(2) loop over many sockets needs. None of these blocks but wait_any.
#pragma once

#include <poll.h>

#include <cstddef>
#include <span>

#include "base/error.hpp"

namespace strait::sys {

// How many bytes moved. Code::again when nothing can move now, Code::gone when the other side closed.
[[nodiscard]] Result<std::size_t> receive_some(int socket, std::span<std::byte> into);
[[nodiscard]] Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes);
// The other side reads the end of the stream; it may still send.
void finish_sending(int socket);
// The other side closed and nothing is left to read.
[[nodiscard]] bool at_end(int socket);
// poll(2); interrupted counts as nothing ready.
void wait_any(std::span<pollfd> entries, int timeout_ms);

}  // namespace strait::sys
